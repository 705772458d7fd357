//! The resources that the server of one connection may send notifications about (up to 2025-11-25), each with a lock.
//!
//! Over HTTP, requests overtake each other. If a `resources/unsubscribe` reached the server after a later
//! `resources/subscribe`, the new subscriber would get no notifications (law L9). To keep the order, the client sends
//! one request to subscribe or unsubscribe at a time for each resource: the lock of the resource is held from the
//! decision to send a request until the server has responded.
//!
//! The number of unsubscribe requests in flight is limited to the number of calls that the connection allows: if one
//! were refused for that limit, the subscription would remain on the server (law L5).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedMutexGuard, Semaphore, SemaphorePermit};

/// See the [module](self).
pub(crate) struct ClientResourceSubscriptions {
    resources: Mutex<BTreeMap<String, ResourceSubscriptionState>>,
    /// One permit for each request to unsubscribe that may be in flight.
    unsubscribe_permits: Semaphore,
}

/// True if the server may send notifications about the resource.
type ResourceSubscriptionState = Arc<tokio::sync::Mutex<bool>>;

/// A guard that holds the lock of the [`ResourceSubscriptionState`] of one resource.
pub(crate) type ResourceSubscriptionLockGuard = OwnedMutexGuard<bool>;

impl ClientResourceSubscriptions {
    /// `max_unsubscribes`: the maximum number of requests to unsubscribe that may be in flight.
    pub(crate) fn new(max_unsubscribes: usize) -> Self {
        let unsubscribe_permits = Semaphore::new(max_unsubscribes.clamp(1, Semaphore::MAX_PERMITS));
        Self { resources: Mutex::default(), unsubscribe_permits }
    }

    /// Waits for a permit to send a request to unsubscribe. Permits to unsubscribe are given in the order of the calls
    /// of this function.
    pub(crate) async fn unsubscribe_permit(&self) -> Option<SemaphorePermit<'_>> {
        // Never an error: the semaphore is never closed.
        self.unsubscribe_permits.acquire().await.ok()
    }

    /// Locks the subscription of a resource. Locks of a resource are given in the order of the calls of this function.
    pub(crate) async fn lock(&self, uri: &str) -> ResourceSubscriptionLockGuard {
        let resource = {
            let mut resources = self.resources.lock().unwrap_or_else(PoisonError::into_inner);
            // Resources that are neither locked nor subscribed to are removed.
            resources.retain(|_, resource| {
                Arc::strong_count(resource) > 1 || resource.try_lock().is_ok_and(|subscribed| *subscribed)
            });
            Arc::clone(resources.entry(uri.to_owned()).or_default())
        };
        resource.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn locks_of_one_resource_are_given_one_at_a_time_and_in_order() {
        let subscribed = ClientResourceSubscriptions::new(1);
        let mut first = subscribed.lock("a:1").await;
        *first = true;
        let mut second = Box::pin(subscribed.lock("a:1"));
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(second.as_mut().poll(&mut cx).is_pending());
        assert!(!*subscribed.lock("a:2").await, "another resource has a lock of its own");
        drop(first);
        assert!(*second.await, "the second holder sees the value of the first");
    }

    #[tokio::test]
    async fn resources_without_a_subscription_are_removed() {
        let subscribed = ClientResourceSubscriptions::new(1);
        *subscribed.lock("subscribed").await = true;
        for number in 0..100 {
            *subscribed.lock(&number.to_string()).await = false;
        }
        drop(subscribed.lock("subscribed").await);
        assert_eq!(subscribed.resources.lock().unwrap().keys().collect::<Vec<_>>(), ["subscribed"]);
    }
}
