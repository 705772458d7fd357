//! The executor as the environment of the shell, and the wakers of its tasks.

use std::sync::Arc;
use std::task::Wake;

use steadfast::runtime::{Runtime, RuntimeTask, Timer};
use steadfast_proto::Moment;

use super::timer::VirtualTimer;
use super::{Executor, Job, THREAD_DELAY, TaskId};

impl Runtime for Executor {
    fn now(&self) -> Moment {
        Executor::now(self)
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(VirtualTimer { executor: self.clone(), when: None, entry: None })
    }

    fn spawn(&self, task: RuntimeTask) {
        self.add(task, false);
    }

    fn spawn_quick(&self, task: RuntimeTask) {
        let mut state = self.lock();
        if state.first_polls.is_some() {
            return state.first_poll_queue.push_back(task);
        }
        drop(state);
        self.spawn(task);
    }

    fn spawn_thread(&self, job: Job) {
        let mut state = self.lock();
        let when = state.now + state.random.delay(THREAD_DELAY);
        let number = state.number();
        state.jobs.insert((when, number), job);
    }

    fn fill_random(&self, bytes: &mut [u8]) -> std::io::Result<()> {
        let mut state = self.lock();
        for chunk in bytes.chunks_mut(8) {
            let random = state.random.next().to_be_bytes();
            for (byte, random) in chunk.iter_mut().zip(random) {
                *byte = random;
            }
        }
        Ok(())
    }
}

pub(super) struct TaskWaker {
    pub(super) executor: Executor,
    pub(super) id: TaskId,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.executor.wake(self.id);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.executor.wake(self.id);
    }
}
