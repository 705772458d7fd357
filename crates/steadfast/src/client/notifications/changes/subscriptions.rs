//! Which resources a server of the older revisions may tell of, on one connection, and whose turn it is to change that.
//!
//! Over HTTP requests overtake each other. If one that takes a subscription back arrives behind one that makes it again, whoever
//! made it hears nothing (L9). So there is one at a time for each resource, from when it is decided what to ask until the
//! server has answered.
//!
//! Those that take something back also wait for each other when there are as many as the connection has room for: to be refused
//! for want of room would leave the subscription on the server (L5).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedMutexGuard, Semaphore, SemaphorePermit};

/// The resources of one connection.
pub(crate) struct SubscribedResources {
    resources: Mutex<BTreeMap<String, Resource>>,
    /// One permit for each request to unsubscribe that may be in flight.
    unsubscribing: Semaphore,
}

type Resource = Arc<tokio::sync::Mutex<bool>>;

/// The turn of whoever holds it with one resource: true if the server may tell of it.
pub(crate) type SubscriptionTurn = OwnedMutexGuard<bool>;

impl SubscribedResources {
    /// With room for as many requests to unsubscribe at a time.
    pub(crate) fn new(room: usize) -> Self {
        let unsubscribing = Semaphore::new(room.clamp(1, Semaphore::MAX_PERMITS));
        Self { resources: Mutex::default(), unsubscribing }
    }

    /// Waits for room for another request to unsubscribe, in the order in which it is asked for.
    pub(crate) async fn room_to_unsubscribe(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.unsubscribing.acquire().await.ok()
    }

    /// Waits for a turn with a resource, in the order in which they are asked for.
    pub(crate) async fn turn(&self, uri: &str) -> SubscriptionTurn {
        let resource = {
            let mut resources = self.resources.lock().unwrap_or_else(PoisonError::into_inner);
            // Those that nobody is at, and that the server does not tell of, are as if they had never been.
            resources.retain(|_, known| Arc::strong_count(known) > 1 || known.try_lock().is_ok_and(|has| *has));
            Arc::clone(resources.entry(uri.to_owned()).or_default())
        };
        resource.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_has_its_turn_at_a_time_and_in_order() {
        let subscribed = SubscribedResources::new(1);
        let mut first = subscribed.turn("a:1").await;
        *first = true;
        let mut second = Box::pin(subscribed.turn("a:1"));
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(second.as_mut().poll(&mut cx).is_pending());
        assert!(!*subscribed.turn("a:2").await, "another resource is nobody's concern");
        drop(first);
        assert!(*second.await, "what the first has done is known");
    }

    #[tokio::test]
    async fn what_nobody_subscribes_to_is_forgotten() {
        let subscribed = SubscribedResources::new(1);
        *subscribed.turn("kept").await = true;
        for number in 0..100 {
            *subscribed.turn(&number.to_string()).await = false;
        }
        drop(subscribed.turn("kept").await);
        assert_eq!(subscribed.resources.lock().unwrap().keys().collect::<Vec<_>>(), ["kept"]);
    }
}
