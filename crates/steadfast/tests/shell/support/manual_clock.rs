//! A clock that the test moves.

use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use steadfast::runtime::{Runtime, RuntimeTask, Timer, TokioRuntime};
use steadfast_proto::Moment;

use crate::soon;

pub(crate) const EVERY: Duration = Duration::from_secs(30);

/// A clock that stands still until it is moved.
#[derive(Clone)]
pub(crate) struct ManualClock {
    runtime: TokioRuntime,
    times: Arc<Mutex<ClockState>>,
}

struct ClockState {
    now: Moment,
    timers: Vec<(Option<Moment>, Option<Waker>)>,
}

impl ManualClock {
    pub(crate) fn new() -> Self {
        let times = ClockState { now: Moment::after_origin(Duration::ZERO), timers: Vec::new() };
        Self { runtime: TokioRuntime::current().unwrap(), times: Arc::new(Mutex::new(times)) }
    }

    /// Waits until the next ping, or the end of the one that is out, is due at the next beat, and moves the clock there. The
    /// heartbeat's timer is the last that was made.
    pub(crate) async fn beat(&self, waits_for_an_answer: bool) {
        let next = self.now() + EVERY;
        let is_set = || {
            let times = self.times.lock().unwrap();
            let heartbeat = times.timers.last().is_some_and(|(when, _)| *when == Some(next));
            let any = times.timers.iter().any(|(when, _)| *when == Some(next));
            if waits_for_an_answer { any } else { heartbeat }
        };
        soon(async {
            while !is_set() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        self.move_to(next);
    }

    pub(crate) fn move_to(&self, moment: Moment) {
        let mut times = self.times.lock().unwrap();
        times.now = moment;
        let wakers: Vec<Waker> = times.timers.iter_mut().filter_map(|(_, waker)| waker.take()).collect();
        drop(times);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Runtime for ManualClock {
    fn now(&self) -> Moment {
        self.times.lock().unwrap().now
    }

    fn timer(&self) -> Box<dyn Timer> {
        let mut times = self.times.lock().unwrap();
        times.timers.push((None, None));
        Box::new(ManualTimer { times: Arc::clone(&self.times), index: times.timers.len() - 1 })
    }

    fn spawn(&self, task: RuntimeTask) {
        self.runtime.spawn(task);
    }

    fn spawn_thread(&self, job: Box<dyn FnOnce() + Send>) {
        self.runtime.spawn_thread(job);
    }
}

struct ManualTimer {
    times: Arc<Mutex<ClockState>>,
    index: usize,
}

impl Timer for ManualTimer {
    fn reset(&mut self, when: Option<Moment>) {
        self.times.lock().unwrap().timers[self.index].0 = when;
    }

    fn poll(&mut self, cx: &mut TaskContext<'_>) -> Poll<()> {
        let mut times = self.times.lock().unwrap();
        let now = times.now;
        let (when, waker) = &mut times.timers[self.index];
        if when.is_some_and(|when| when <= now) {
            *when = None;
            return Poll::Ready(());
        }
        *waker = Some(cx.waker().clone());
        Poll::Pending
    }
}
