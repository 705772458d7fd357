//! Pings that a server sends by itself, by a clock that the test moves.

use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll, Waker};

use steadfast::runtime::{Runtime, Task, Timer, TokioRuntime};
use steadfast_proto::Moment;

use super::*;

pub(crate) const EVERY: Duration = Duration::from_secs(30);

/// A clock that stands still until it is moved.
#[derive(Clone)]
pub(crate) struct Clock {
    runtime: TokioRuntime,
    times: Arc<Mutex<Times>>,
}

struct Times {
    now: Moment,
    timers: Vec<(Option<Moment>, Option<Waker>)>,
}

impl Clock {
    pub(crate) fn new() -> Self {
        let times = Times { now: Moment::after_origin(Duration::ZERO), timers: Vec::new() };
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

impl Runtime for Clock {
    fn now(&self) -> Moment {
        self.times.lock().unwrap().now
    }

    fn timer(&self) -> Box<dyn Timer> {
        let mut times = self.times.lock().unwrap();
        times.timers.push((None, None));
        Box::new(Hand { times: Arc::clone(&self.times), index: times.timers.len() - 1 })
    }

    fn spawn(&self, task: Task) {
        self.runtime.spawn(task);
    }

    fn spawn_thread(&self, job: Box<dyn FnOnce() + Send>) {
        self.runtime.spawn_thread(job);
    }
}

struct Hand {
    times: Arc<Mutex<Times>>,
    index: usize,
}

impl Timer for Hand {
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

/// A server that pings, in the hands of a clock.
fn pinging() -> (Raw, Clock) {
    let clock = Clock::new();
    let (here, there) = memory::pair(1 << 16);
    let serving = server([echo()]).serve(there).ping_every(EVERY).with_runtime(Arc::new(clock.clone()));
    tokio::spawn(serving.into_future());
    (Raw::new(here), clock)
}

#[tokio::test]
async fn a_peer_is_pinged_at_the_interval_that_was_set_and_given_up_when_it_does_not_answer() {
    let heard = Heard::default();
    let _guard = tracing::subscriber::set_default(heard.clone());
    let (mut raw, clock) = pinging();
    soon(raw.open("2025-11-25")).await;
    // A result or an error: both are signs of life.
    for answer in [json!({"result": {}}), json!({"error": {"code": -32601, "message": "no"}}), json!({"result": {}})] {
        clock.beat(false).await;
        let ping = soon(raw.line()).await.expect("the connection goes on while pings are answered");
        assert_eq!(ping["method"], "ping", "{ping}");
        let mut message = json!({"jsonrpc": "2.0", "id": ping["id"]});
        message.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
        raw.send(&message).await;
    }
    clock.beat(false).await;
    assert_eq!(soon(raw.line()).await.unwrap()["method"], "ping");
    assert!(!heard.text().contains("ping"), "{}", heard.text());
    // This one is not answered.
    clock.beat(true).await;
    while soon(raw.line()).await.is_some() {}
    assert!(heard.text().contains("a ping was not answered"), "{}", heard.text());
}

#[tokio::test]
async fn peers_of_a_revision_without_pings_are_not_pinged() {
    let (raw, clock) = pinging();
    let mut peer = Peer::modern(&server([]), json!({}));
    peer.raw = raw;
    for _ in 0..5 {
        clock.beat(false).await;
        peer.ask("tools/list", json!({})).await;
        assert!(peer.before.is_empty(), "{:?}", peer.before);
    }
}
