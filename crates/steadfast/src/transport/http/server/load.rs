//! The load of an HTTP service over all its connections: the limits of requests and bytes (law L7), and the number of
//! requests and sessions that have not ended yet (law L5).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use steadfast_proto::connection::Limits;
use tokio::sync::Notify;

use crate::runtime::RequestExchangeGuard;

/// Counts the requests that are being read or run, their bytes, and everything that a shutdown waits for.
pub(crate) struct ServerLoadLimiter {
    requests: AtomicUsize,
    bytes: AtomicUsize,
    /// The current number of requests, of cleanups that outlive them, and of sessions. A shutdown waits until this
    /// number is zero, because not all requests, cleanups and sessions have an HTTP connection that it could wait for.
    live: AtomicUsize,
    /// The number of handlers that had not ended by the drain deadline of their connections.
    abandoned: AtomicUsize,
    /// Notified when `live` becomes zero, that is, when no request, cleanup or session is left. Only one task may
    /// wait for `idle`.
    idle: Notify,
    max_requests: usize,
    max_bytes: usize,
}

impl ServerLoadLimiter {
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            requests: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            live: AtomicUsize::new(0),
            abandoned: AtomicUsize::new(0),
            idle: Notify::new(),
            max_requests: limits.in_flight,
            max_bytes: limits.in_flight_bytes,
        })
    }

    /// Takes a permit to read one more message of a client; `None` if the limit is reached. The limit of messages is
    /// twice the limit of requests, because it is only known after reading a message whether it is a request:
    /// cancellations must not wait for requests to end.
    pub(crate) fn try_acquire(self: &Arc<Self>) -> Option<ServerLoadPermit> {
        let before = self.requests.fetch_add(1, Ordering::Relaxed);
        // Counted in any case, because dropping the permit subtracts it again.
        let permit = ServerLoadPermit { guard: self.guard(), bytes: 0, for_request: before < self.max_requests };
        (before < self.max_requests.saturating_mul(2)).then_some(permit)
    }

    /// Creates a guard for something that a shutdown of the HTTP server waits for.
    pub(crate) fn guard(self: &Arc<Self>) -> ServerLoadGuard {
        self.live.fetch_add(1, Ordering::Relaxed);
        ServerLoadGuard(Arc::clone(self))
    }

    /// Waits until all requests, cleanups and sessions have ended. Only one caller may wait at a time.
    pub(crate) async fn idle(&self) {
        while self.live.load(Ordering::Acquire) > 0 {
            self.idle.notified().await;
        }
    }

    /// Whether a handler did not end by the drain deadline: it blocks its thread.
    pub(crate) fn has_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed) > 0
    }
}

/// A shutdown of the HTTP server waits until this guard is dropped.
pub(crate) struct ServerLoadGuard(Arc<ServerLoadLimiter>);

impl ServerLoadGuard {
    pub(crate) fn abandoned(&self, count: usize) {
        self.0.abandoned.fetch_add(count, Ordering::Relaxed);
    }
}

impl Drop for ServerLoadGuard {
    fn drop(&mut self) {
        if self.0.live.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.idle.notify_one();
        }
    }
}

/// Counts one message and its bytes towards the limits of the HTTP service, until this permit is dropped.
pub(crate) struct ServerLoadPermit {
    guard: ServerLoadGuard,
    bytes: usize,
    for_request: bool,
}

impl ServerLoadPermit {
    /// Whether a request still fits the limit of concurrent requests: if not, only other messages are accepted.
    pub(crate) fn is_for_request(&self) -> bool {
        self.for_request
    }

    /// Counts more bytes of this message. Returns whether the messages that the server is processing are together within its limit of
    /// bytes.
    pub(crate) fn add_bytes(&mut self, bytes: usize) -> bool {
        let load = &self.guard.0;
        let before = load.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        before.saturating_add(bytes) <= load.max_bytes
    }
}

impl RequestExchangeGuard for ServerLoadPermit {
    fn abandoned(&mut self, count: usize) {
        self.guard.abandoned(count);
    }
}

impl Drop for ServerLoadPermit {
    fn drop(&mut self) {
        self.guard.0.requests.fetch_sub(1, Ordering::Relaxed);
        self.guard.0.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_and_dropped_permits_are_not_counted() {
        let mut limits = Limits::default();
        (limits.in_flight, limits.in_flight_bytes) = (1, 10);
        let load = ServerLoadLimiter::new(&limits);
        let mut first = load.try_acquire().unwrap();
        assert!(first.is_for_request());
        let more = load.try_acquire().unwrap();
        assert!(!more.is_for_request() && load.try_acquire().is_none());
        drop(more);
        assert!(first.add_bytes(10) && !first.add_bytes(1));
        drop(first);
        let mut second = load.try_acquire().unwrap();
        assert!(second.add_bytes(10));
    }
}
