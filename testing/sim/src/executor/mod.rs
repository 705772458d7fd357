//! A world of one thread for the real shell: which ready task runs next, when a thread gets its turn and how time passes
//! all come from a seed.
//!
//! Time stands still while something can run, but for small steps forward that the seed takes now and then, so that timers
//! also fire in the middle of work. A job of `Runtime::spawn_thread` waits for a while and then runs in one go; where it
//! would block its thread it calls [`Executor::block`], and the rest of the world goes on underneath it. Nothing here looks
//! at a clock or starts a thread.
//!
//! Under half of the seeds a handler of `Runtime::spawn_quick` is polled for the first time as the thread of an I/O loop does
//! it: in the order of the requests, between the drivers, with a waker that does nothing, and as a task only if it is pending. Some
//! of these polls block ([`Executor::block_in_first_poll`]). What goes on underneath is what another thread does that has taken
//! over the loop. No job begins there: its block would have to end before the first poll could, however much longer it is.

mod runtime;
mod timer;

pub(crate) mod line_buffer;
pub(crate) mod link;
pub(crate) mod world;

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use steadfast::runtime::{RuntimeTask, Timer};
use steadfast_proto::Moment;

use crate::panics;
use crate::script::rng::Random;
use runtime::TaskWaker;
pub(crate) use timer::Sleep;
use timer::VirtualTimer;

/// So many jobs may block at once, one on top of the other; one more does not block.
const NESTED: usize = 4;

/// The longest that a first poll blocks.
const FIRST_POLL_BLOCK: Duration = Duration::from_millis(50);

/// The longest that a job waits for its thread.
const THREAD_DELAY: Duration = Duration::from_millis(200);

type Job = Box<dyn FnOnce() + Send>;
type Hook = Arc<dyn Fn() + Send + Sync>;

/// The world's tasks, threads and time. Clones are the same world.
#[derive(Clone)]
pub(crate) struct Executor(Arc<Mutex<State>>);

/// Names a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TaskId(u64);

struct State {
    now: Moment,
    random: Random,
    tasks: BTreeMap<TaskId, Slot>,
    /// In the order of their numbers: that in which they were woken may come from randomness of others.
    ready: Vec<TaskId>,
    timers: BTreeMap<(Moment, u64), Waker>,
    jobs: BTreeMap<(Moment, u64), Job>,
    blocking: usize,
    /// Decides which first polls block and for how long; `None` if handlers are only polled as tasks.
    first_polls: Option<Random>,
    /// Handlers to be polled for the first time.
    first_poll_queue: VecDeque<RuntimeTask>,
    /// The calls whose first polls block, one on top of the other.
    blocked_first_polls: Vec<u64>,
    next: u64,
    steps: u64,
    on_idle: Option<Hook>,
    /// The message of a panic that escaped from a task.
    escaped: Option<String>,
}

struct Slot {
    /// Not there while it is polled.
    task: Option<RuntimeTask>,
    waker: Waker,
    queued: bool,
    /// Part of the simulator, not of what is simulated.
    harness: bool,
}

impl Executor {
    pub(crate) fn new(random: Random) -> Self {
        Self(Arc::new(Mutex::new(State {
            now: Moment::ORIGIN,
            random,
            tasks: BTreeMap::new(),
            ready: Vec::new(),
            timers: BTreeMap::new(),
            jobs: BTreeMap::new(),
            blocking: 0,
            first_polls: None,
            first_poll_queue: VecDeque::new(),
            blocked_first_polls: Vec::new(),
            next: 0,
            steps: 0,
            on_idle: None,
            escaped: None,
        })))
    }

    /// Polls handlers for the first time as an I/O loop does, under half of the seeds.
    pub(crate) fn with_first_polls(self, mut random: Random) -> Self {
        self.lock().first_polls = random.chance(50).then_some(random);
        self
    }

    pub(crate) fn now(&self) -> Moment {
        self.lock().now
    }

    /// Polls of tasks and runs of jobs so far.
    pub(crate) fn steps(&self) -> u64 {
        self.lock().steps
    }

    /// Tasks that are left of what is simulated, jobs that have not begun, and timers that are set.
    pub(crate) fn left(&self) -> (usize, usize, usize) {
        let state = self.lock();
        let tasks = state.tasks.values().filter(|slot| !slot.harness).count();
        (tasks + state.first_poll_queue.len(), state.jobs.len(), state.timers.len())
    }

    /// The message of a panic that escaped from a task, if one did.
    pub(crate) fn escaped(&self) -> Option<String> {
        self.lock().escaped.clone()
    }

    /// Calls `hook` whenever nothing can run, before time goes on.
    pub(crate) fn on_idle(&self, hook: impl Fn() + Send + Sync + 'static) {
        self.lock().on_idle = Some(Arc::new(hook));
    }

    /// Adds a task of the simulator itself.
    pub(crate) fn spawn_harness_task(&self, task: impl Future<Output = ()> + Send + 'static) -> TaskId {
        self.add(Box::pin(task), true)
    }

    /// Adds a task that is simulated.
    pub(crate) fn spawn_task(&self, task: impl Future<Output = ()> + Send + 'static) -> TaskId {
        self.add(Box::pin(task), false)
    }

    /// Drops a task where it stands.
    pub(crate) fn cancel(&self, task: TaskId) {
        let slot = self.lock().tasks.remove(&task);
        drop(slot);
    }

    /// Completes after a while of virtual time.
    pub(crate) fn sleep(&self, duration: Duration) -> Sleep {
        let mut timer = VirtualTimer { executor: self.clone(), when: None, entry: None };
        timer.reset(Some(self.now() + duration));
        Sleep(timer)
    }

    /// Blocks the thread of the job that calls it: everything else goes on meanwhile.
    pub(crate) fn block(&self, duration: Duration) {
        let until = {
            let mut state = self.lock();
            if state.blocking >= NESTED {
                return;
            }
            state.blocking += 1;
            state.now + duration
        };
        while self.now() < until {
            if !self.run_one() {
                self.idle();
                self.advance(Some(until));
            }
        }
        self.lock().blocking -= 1;
    }

    /// Blocks the thread now and then, if the handler of this call is in its first poll: see the [module](self). The poll began
    /// at that number of [`steps`](Executor::steps).
    pub(crate) fn block_in_first_poll(&self, tag: u64, first_poll: &mut u64) {
        let mut state = self.lock();
        let is_first_poll = state.steps == *first_poll;
        let random = state.first_polls.as_mut().filter(|_| is_first_poll);
        let duration = random.and_then(|random| random.chance(20).then(|| random.delay(FIRST_POLL_BLOCK)));
        let Some(duration) = duration else { return };
        state.blocked_first_polls.push(tag);
        drop(state);
        self.block(duration);
        let mut state = self.lock();
        state.blocked_first_polls.pop();
        *first_poll = state.steps;
    }

    /// The calls whose handlers block their thread in their first poll now: they cannot be stopped and do not go on.
    pub(crate) fn blocked_in_first_poll(&self) -> Vec<u64> {
        self.lock().blocked_first_polls.clone()
    }

    /// Polls a handler for the first time, and adds it as a task if it is pending.
    fn poll_first(&self, mut task: RuntimeTask) {
        let polled = catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(&mut Context::from_waker(Waker::noop()))));
        match polled {
            Ok(Poll::Pending) => drop(self.add(task, false)),
            Ok(Poll::Ready(())) => {}
            Err(panic) => self.lock().escaped = Some(panics::text(&*panic)),
        }
    }

    /// Runs one thing, or lets time pass until something can run. False if nothing ever will.
    pub(crate) fn turn(&self) -> bool {
        if self.run_one() {
            return true;
        }
        self.idle();
        self.advance(None)
    }

    /// How many refer to this world.
    pub(crate) fn references(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// Drops everything, so that nothing refers to itself in a circle.
    pub(crate) fn clear(&self) {
        self.lock().on_idle = None;
        loop {
            let mut state = self.lock();
            let (tasks, jobs) = (std::mem::take(&mut state.tasks), std::mem::take(&mut state.jobs));
            let timers = std::mem::take(&mut state.timers);
            let handlers = std::mem::take(&mut state.first_poll_queue);
            state.ready.clear();
            drop(state);
            if tasks.is_empty() && jobs.is_empty() && timers.is_empty() && handlers.is_empty() {
                return;
            }
            // What they drop may panic, and may add others.
            let _ = catch_unwind(AssertUnwindSafe(|| drop((tasks, jobs, timers, handlers))));
        }
    }

    fn add(&self, task: RuntimeTask, harness: bool) -> TaskId {
        let mut state = self.lock();
        let id = TaskId(state.number());
        let waker = Waker::from(Arc::new(TaskWaker { executor: self.clone(), id }));
        state.tasks.insert(id, Slot { task: Some(task), waker, queued: true, harness });
        state.make_ready(id);
        id
    }

    /// Runs one thing that is ready. False if nothing is.
    fn run_one(&self) -> bool {
        let mut state = self.lock();
        if state.random.chance(3) {
            let step = Duration::from_micros(state.random.below(20));
            state.now = state.now + step;
        }
        let fired = state.fire();
        if !fired.is_empty() {
            drop(state);
            fired.into_iter().for_each(Waker::wake);
            state = self.lock();
        }
        let now = state.now;
        let due = if state.blocked_first_polls.is_empty() { state.jobs.range(..=(now, u64::MAX)).count() } else { 0 };
        let ready = state.ready.len();
        let first_poll = usize::from(!state.first_poll_queue.is_empty());
        if ready + due + first_poll == 0 {
            return false;
        }
        state.steps += 1;
        let chosen = state.random.index(ready + due + first_poll);
        if chosen < ready {
            let id = state.ready.remove(chosen);
            drop(state);
            self.poll(id);
        } else if chosen == ready + due {
            let handler = state.first_poll_queue.pop_front();
            drop(state);
            if let Some(handler) = handler {
                self.poll_first(handler);
            }
        } else {
            let key = state.jobs.keys().nth(chosen - ready).copied();
            let job = key.and_then(|key| state.jobs.remove(&key));
            drop(state);
            if let Some(job) = job
                && let Err(panic) = catch_unwind(AssertUnwindSafe(job))
            {
                self.lock().escaped = Some(panics::text(&*panic));
            }
        }
        true
    }

    fn poll(&self, id: TaskId) {
        let Some((task, waker)) = self.lock().tasks.get_mut(&id).and_then(|slot| {
            // Without a task: it is being polled, and blocks. Then it stays queued until that poll is over.
            let task = slot.task.take()?;
            slot.queued = false;
            Some((task, slot.waker.clone()))
        }) else {
            return;
        };
        let mut task = task;
        match catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(&mut Context::from_waker(&waker)))) {
            Ok(Poll::Pending) => {
                let mut state = self.lock();
                let Some(slot) = state.tasks.get_mut(&id) else {
                    // It was cancelled while it ran.
                    drop(state);
                    return drop(task);
                };
                slot.task = Some(task);
                if slot.queued {
                    state.make_ready(id);
                }
            }
            Ok(Poll::Ready(())) => {
                drop(task);
                self.lock().tasks.remove(&id);
            }
            Err(panic) => {
                let _ = catch_unwind(AssertUnwindSafe(|| drop(task)));
                let mut state = self.lock();
                state.tasks.remove(&id);
                state.escaped = Some(panics::text(&*panic));
            }
        }
    }

    fn idle(&self) {
        let hook = self.lock().on_idle.clone();
        if let Some(hook) = hook {
            hook();
        }
    }

    /// Goes on to the next moment at which something happens, but not past `most`.
    fn advance(&self, most: Option<Moment>) -> bool {
        let mut state = self.lock();
        let timer = state.timers.keys().next().map(|(when, _)| *when);
        let job = state.jobs.keys().next().filter(|_| state.blocked_first_polls.is_empty()).map(|(when, _)| *when);
        let Some(next) = [timer, job, most].into_iter().flatten().min() else { return false };
        state.now = state.now.max(next);
        true
    }

    fn wake(&self, id: TaskId) {
        let mut state = self.lock();
        if let Some(slot) = state.tasks.get_mut(&id)
            && !slot.queued
        {
            slot.queued = true;
            state.make_ready(id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn make_ready(&mut self, id: TaskId) {
        if let Err(position) = self.ready.binary_search(&id) {
            self.ready.insert(position, id);
        }
    }

    /// Takes the timers whose moment has come.
    fn fire(&mut self) -> Vec<Waker> {
        let mut fired = Vec::new();
        while let Some(first) = self.timers.first_entry()
            && first.key().0 <= self.now
        {
            fired.push(first.remove());
        }
        fired
    }
}

#[cfg(test)]
mod tests {
    use steadfast::runtime::Runtime;

    use super::*;

    #[test]
    fn time_passes_only_when_nothing_can_run() {
        let executor = Executor::new(Random::new(1, 0));
        let seen = Arc::new(Mutex::new(Vec::new()));
        for seconds in [3, 1, 2] {
            let (executor, seen) = (executor.clone(), Arc::clone(&seen));
            let sleep = executor.sleep(Duration::from_secs(seconds));
            executor.clone().spawn_task(async move {
                sleep.await;
                seen.lock().unwrap().push((seconds, executor.now().since_origin().as_secs()));
            });
        }
        while executor.turn() {}
        assert_eq!(*seen.lock().unwrap(), [(1, 1), (2, 2), (3, 3)]);
        assert_eq!(executor.left(), (0, 0, 0));
    }

    #[test]
    fn a_first_poll_that_blocks_does_not_stop_the_world_and_a_pending_one_goes_on_as_a_task() {
        let mut blocked = 0;
        for seed in 0..100 {
            let executor = Executor::new(Random::new(seed, 0)).with_first_polls(Random::new(seed, 1));
            let order = Arc::new(Mutex::new(Vec::new()));
            let (world, seen) = (executor.clone(), Arc::clone(&order));
            executor.spawn_quick(Box::pin(async move {
                seen.lock().unwrap().push("begin");
                let mut first_poll = world.steps();
                for _ in 0..10 {
                    world.block_in_first_poll(1, &mut first_poll);
                }
                seen.lock().unwrap().push("wait");
                let now = world.now();
                world.sleep(Duration::from_secs(1)).await;
                assert_eq!(world.now().since(now).as_secs(), 1);
                seen.lock().unwrap().push("end");
            }));
            let (sleep, seen) = (executor.sleep(Duration::from_millis(1)), Arc::clone(&order));
            executor.spawn_task(async move {
                sleep.await;
                seen.lock().unwrap().push("other");
            });
            while executor.turn() {}
            let order = order.lock().unwrap();
            assert_eq!(order.last(), Some(&"end"), "{order:?}");
            assert_eq!(executor.left(), (0, 0, 0));
            blocked += u32::from(*order == ["begin", "other", "wait", "end"]);
        }
        assert!(blocked > 0);
    }

    #[test]
    fn a_task_that_is_woken_while_its_poll_blocks_is_polled_again() {
        let executor = Executor::new(Random::new(3, 0));
        let polls = Arc::new(Mutex::new(0));
        let (world, counted, mut sleep) =
            (executor.clone(), Arc::clone(&polls), executor.sleep(Duration::from_secs(1)));
        executor.spawn_task(std::future::poll_fn(move |cx| {
            *counted.lock().unwrap() += 1;
            let slept = std::pin::Pin::new(&mut sleep).poll(cx);
            if slept.is_pending() {
                world.block(Duration::from_secs(2));
            }
            slept
        }));
        while executor.turn() {}
        assert_eq!((*polls.lock().unwrap(), executor.left()), (2, (0, 0, 0)));
    }

    #[test]
    fn a_thread_that_blocks_does_not_stop_the_world() {
        let executor = Executor::new(Random::new(2, 0));
        let order = Arc::new(Mutex::new(Vec::new()));
        let (world, first) = (executor.clone(), Arc::clone(&order));
        executor.spawn_thread(Box::new(move || {
            world.block(Duration::from_secs(5));
            first.lock().unwrap().push("thread");
        }));
        let (sleep, second) = (executor.sleep(Duration::from_secs(2)), Arc::clone(&order));
        executor.spawn_task(async move {
            sleep.await;
            second.lock().unwrap().push("task");
        });
        while executor.turn() {}
        assert_eq!(*order.lock().unwrap(), ["task", "thread"]);
    }
}
