//! Threads for plain functions, which may block them.
//!
//! Not tokio's pool: a program that returns from `main` waits for that one, and a tool that blocks for an hour would keep
//! the process for an hour. These are ours, bounded, started when there is work and ended when there is none for a while.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

type Job = Box<dyn FnOnce() + Send>;

/// How long a thread waits for more work.
const IDLE: Duration = Duration::from_secs(10);

/// A bounded set of threads. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Threads {
    shared: Arc<Shared>,
}

/// Does not keep the threads.
pub(crate) struct WeakThreads(Weak<Shared>);

impl WeakThreads {
    pub(crate) fn upgrade(&self) -> Option<Threads> {
        self.0.upgrade().map(|shared| Threads { shared })
    }
}

struct Shared {
    most: usize,
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

impl Default for Threads {
    fn default() -> Self {
        Self::new(256)
    }
}

impl Threads {
    pub(crate) fn new(most: usize) -> Self {
        Self { shared: Arc::new(Shared { most: most.max(1), state: Mutex::default(), work: Condvar::new() }) }
    }

    pub(crate) fn downgrade(&self) -> WeakThreads {
        WeakThreads(Arc::downgrade(&self.shared))
    }

    /// Runs a job on a thread of its own, or behind others if there are as many threads as there may be.
    pub(crate) fn run(&self, job: Job) {
        let mut state = self.shared.lock();
        state.jobs.push_back(job);
        if state.idle >= state.jobs.len() {
            self.shared.work.notify_one();
            return;
        }
        if state.threads >= self.shared.most {
            return;
        }
        state.threads += 1;
        drop(state);
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name("steadfast-blocking".to_owned()).spawn(move || shared.work());
        if let Err(error) = thread {
            tracing::error!(%error, "no thread could be started for a blocking tool");
            let mut state = self.shared.lock();
            state.threads -= 1;
            // The job waits for a thread that is there. If there is none it is dropped, and whoever waits for it learns so.
            let lost = if state.threads == 0 { std::mem::take(&mut state.jobs) } else { VecDeque::new() };
            drop(state);
            drop(lost);
        }
    }
}

impl Shared {
    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                // A job is behind a fence already; this is for the thread's sake.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
                state = self.lock();
                continue;
            }
            state.idle += 1;
            let (woken, timeout) = self.work.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if timeout.timed_out() && state.jobs.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::mpsc;

    #[test]
    fn jobs_run_side_by_side_up_to_the_bound_and_the_rest_behind_them() {
        let threads = Threads::new(4);
        let together = Arc::new(Barrier::new(4));
        let (done, count) = mpsc::channel();
        for number in 0..12 {
            let (together, done) = (Arc::clone(&together), done.clone());
            threads.run(Box::new(move || {
                // Passes only if four are here at once.
                together.wait();
                done.send(number).unwrap();
            }));
        }
        assert_eq!(count.iter().take(12).count(), 12);
        assert!(threads.shared.lock().threads <= 4);
    }

    #[test]
    fn a_job_that_panics_leaves_its_thread_in_use() {
        let threads = Threads::new(1);
        let (done, ran) = mpsc::channel();
        threads.run(Box::new(|| std::panic::resume_unwind(Box::new("on purpose"))));
        threads.run(Box::new(move || done.send(()).unwrap()));
        ran.recv().unwrap();
    }
}
