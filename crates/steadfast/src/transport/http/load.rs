//! How much a service holds at once, over all its connections (law L7).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use steadfast_proto::connection::Limits;

/// Counts the requests that are being read or run, and their bytes.
pub(super) struct Load {
    requests: AtomicUsize,
    bytes: AtomicUsize,
    most_requests: usize,
    most_bytes: usize,
}

impl Load {
    pub(super) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            requests: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            most_requests: limits.in_flight,
            most_bytes: limits.in_flight_bytes,
        })
    }

    /// Room for one more request, held until it is dropped.
    pub(super) fn enter(self: &Arc<Self>) -> Option<Permit> {
        let before = self.requests.fetch_add(1, Ordering::Relaxed);
        // Counted in any case, so that dropping it takes back what was added.
        let permit = Permit { load: Arc::clone(self), bytes: 0 };
        (before < self.most_requests).then_some(permit)
    }
}

/// One request's share.
pub(super) struct Permit {
    load: Arc<Load>,
    bytes: usize,
}

impl Permit {
    /// Room for more bytes of this request.
    pub(super) fn hold(&mut self, bytes: usize) -> bool {
        let before = self.load.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        before.saturating_add(bytes) <= self.load.most_bytes
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.load.requests.fetch_sub(1, Ordering::Relaxed);
        self.load.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
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
        assert!(load.enter().is_none() && load.enter().is_none());
        assert!(first.hold(10) && !first.hold(1));
        drop(first);
        let mut second = load.enter().unwrap();
        assert!(second.hold(10));
    }
}
