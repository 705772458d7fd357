//! How much a service holds at once, over all its connections (law L7), and what of it has not ended (law L5).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use steadfast_proto::connection::Limits;
use tokio::sync::Notify;

use crate::runtime::ExchangeGuard;

/// Counts the requests that are being read or run, their bytes, and the sessions.
pub(crate) struct Load {
    requests: AtomicUsize,
    bytes: AtomicUsize,
    /// Requests, what they left behind, and sessions. Not all of them have a connection that could be waited for.
    live: AtomicUsize,
    /// Executions that were given up at the end of their connections.
    abandoned: AtomicUsize,
    /// Told when nothing is live; by one, since one waits.
    idle: Notify,
    most_requests: usize,
    most_bytes: usize,
}

impl Load {
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            requests: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            live: AtomicUsize::new(0),
            abandoned: AtomicUsize::new(0),
            idle: Notify::new(),
            most_requests: limits.in_flight,
            most_bytes: limits.in_flight_bytes,
        })
    }

    /// Room to read one more message, held until it is dropped. As many again as there may be requests are read, because
    /// it has to be read to be known for one: a cancellation makes room, and is not to wait for it.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Permit> {
        let before = self.requests.fetch_add(1, Ordering::Relaxed);
        // Counted in any case, so that dropping it takes back what was added.
        let permit = Permit { stay: self.stay(), bytes: 0, for_request: before < self.most_requests };
        (before < self.most_requests.saturating_mul(2)).then_some(permit)
    }

    /// Something that has to end before the service has.
    pub(crate) fn stay(self: &Arc<Self>) -> LoadGuard {
        self.live.fetch_add(1, Ordering::Relaxed);
        LoadGuard(Arc::clone(self))
    }

    /// Waits until everything has ended. One waits at a time.
    pub(crate) async fn idle(&self) {
        while self.live.load(Ordering::Acquire) > 0 {
            self.idle.notified().await;
        }
    }

    /// Whether something was given up: a thread or a worker is blocked.
    pub(crate) fn has_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed) > 0
    }
}

/// Lasts as long as what it was given to.
pub(crate) struct LoadGuard(Arc<Load>);

impl LoadGuard {
    pub(crate) fn abandoned(&self, count: usize) {
        self.0.abandoned.fetch_add(count, Ordering::Relaxed);
    }
}

impl Drop for LoadGuard {
    fn drop(&mut self) {
        if self.0.live.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.idle.notify_one();
        }
    }
}

/// One request's share.
pub(crate) struct Permit {
    stay: LoadGuard,
    bytes: usize,
    for_request: bool,
}

impl Permit {
    /// Whether there is room for it if it is a request.
    pub(crate) fn is_for_request(&self) -> bool {
        self.for_request
    }

    /// Room for more bytes of this request.
    pub(crate) fn hold(&mut self, bytes: usize) -> bool {
        let load = &self.stay.0;
        let before = load.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        before.saturating_add(bytes) <= load.most_bytes
    }
}

impl ExchangeGuard for Permit {
    fn abandoned(&mut self, count: usize) {
        self.stay.abandoned(count);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.stay.0.requests.fetch_sub(1, Ordering::Relaxed);
        self.stay.0.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_and_what_is_dropped_takes_no_room() {
        let mut limits = Limits::default();
        (limits.in_flight, limits.in_flight_bytes) = (1, 10);
        let load = Load::new(&limits);
        let mut first = load.enter().unwrap();
        assert!(first.is_for_request());
        let more = load.enter().unwrap();
        assert!(!more.is_for_request() && load.enter().is_none());
        drop(more);
        assert!(first.hold(10) && !first.hold(1));
        drop(first);
        let mut second = load.enter().unwrap();
        assert!(second.hold(10));
    }
}
