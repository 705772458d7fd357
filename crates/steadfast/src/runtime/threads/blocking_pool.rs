//! A pool of threads for handlers that are plain functions, which may block.
//!
//! The library's blocking pool is not tokio's: a program that returns from `main` waits for the threads of tokio's
//! blocking pool, so a tool that blocks for an hour would keep the process alive for an hour. The threads of the
//! library's blocking pool are limited in number, started when there is work, and end when they have been idle for a
//! while.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::runtime::handler::catch_panic::{call_catching_panics, drop_catching_panics};

type BlockingJob = Box<dyn FnOnce() + Send>;

/// How long a thread without work waits for more before it ends.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// A pool with a maximum number of threads. Cheap to clone.
#[derive(Clone)]
pub(crate) struct BlockingPool {
    shared: Arc<SharedBlockingPool>,
}

/// A weak reference to a pool.
pub(crate) struct WeakBlockingPool(Weak<SharedBlockingPool>);

impl WeakBlockingPool {
    pub(crate) fn upgrade(&self) -> Option<BlockingPool> {
        self.0.upgrade().map(|shared| BlockingPool { shared })
    }
}

struct SharedBlockingPool {
    max_threads: usize,
    state: Mutex<BlockingPoolState>,
    has_work: Condvar,
}

#[derive(Default)]
struct BlockingPoolState {
    jobs: VecDeque<BlockingJob>,
    threads: usize,
    idle_threads: usize,
}

impl Default for BlockingPool {
    fn default() -> Self {
        Self::new(256)
    }
}

impl BlockingPool {
    pub(crate) fn new(max_threads: usize) -> Self {
        let max_threads = max_threads.max(1);
        Self { shared: Arc::new(SharedBlockingPool { max_threads, state: Mutex::default(), has_work: Condvar::new() }) }
    }

    pub(crate) fn downgrade(&self) -> WeakBlockingPool {
        WeakBlockingPool(Arc::downgrade(&self.shared))
    }

    /// Runs a job on an idle or new thread. If all threads are busy and there are as many as allowed, the job is queued.
    pub(crate) fn run(&self, job: BlockingJob) {
        let mut state = self.shared.lock();
        state.jobs.push_back(job);
        if state.idle_threads >= state.jobs.len() {
            self.shared.has_work.notify_one();
            return;
        }
        if state.threads >= self.shared.max_threads {
            return;
        }
        state.threads += 1;
        drop(state);
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name("steadfast-blocking".to_owned()).spawn(move || shared.run_jobs());
        if let Err(error) = thread {
            tracing::error!(%error, "failed to start a thread for a blocking handler");
            let mut state = self.shared.lock();
            state.threads -= 1;
            // The job waits for one of the threads that exist. If none does it is dropped, and its destructor ends the request.
            let lost = if state.threads == 0 { std::mem::take(&mut state.jobs) } else { VecDeque::new() };
            drop(state);
            drop_catching_panics(lost);
        }
    }
}

impl SharedBlockingPool {
    fn run_jobs(&self) {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                // The handler task catches the panics of handlers; this protects the thread from all others.
                let _ = call_catching_panics(job);
                state = self.lock();
                continue;
            }
            state.idle_threads += 1;
            let waited = self.has_work.wait_timeout(state, IDLE_TIMEOUT);
            let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle_threads -= 1;
            if timeout.timed_out() && state.jobs.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BlockingPoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::mpsc;

    #[test]
    fn jobs_run_in_parallel_up_to_the_limit_and_the_others_after_them() {
        let pool = BlockingPool::new(4);
        let barrier = Arc::new(Barrier::new(4));
        let (done, count) = mpsc::channel();
        for number in 0..12 {
            let (barrier, done) = (Arc::clone(&barrier), done.clone());
            pool.run(Box::new(move || {
                // Passes only if four jobs run at once.
                barrier.wait();
                done.send(number).unwrap();
            }));
        }
        assert_eq!(count.iter().take(12).count(), 12);
        assert!(pool.shared.lock().threads <= 4);
    }

    #[test]
    fn a_thread_survives_a_job_that_panics() {
        let pool = BlockingPool::new(1);
        let (done, ran) = mpsc::channel();
        struct PanicOnDrop;
        impl Drop for PanicOnDrop {
            fn drop(&mut self) {
                std::panic::resume_unwind(Box::new("in the destructor"));
            }
        }
        pool.run(Box::new(|| std::panic::resume_unwind(Box::new("on purpose"))));
        pool.run(Box::new(|| std::panic::resume_unwind(Box::new(PanicOnDrop))));
        pool.run(Box::new(move || done.send(()).unwrap()));
        ran.recv().unwrap();
    }
}
