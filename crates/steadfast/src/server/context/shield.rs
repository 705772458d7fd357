//! Steps of a handler that a cancellation does not interrupt.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

use super::Context;
use crate::runtime::ShieldFuture;

impl Context {
    /// Runs `future` to its end even if this request is cancelled and its handler dropped meanwhile. After the
    /// connection is closed, the shielded future has until the drain deadline.
    ///
    /// Use a shield for a step that must not be left half done, such as a write after a read, or a commit.
    ///
    /// # Panics
    ///
    /// Panics if `future` panics, or is aborted at the drain deadline while this call still waits for it.
    pub async fn shield<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> T {
        let Some(execution) = &self.execution else { return future.await };
        let Some(guard) = execution.start_shield() else { return future.await };
        let slot = Arc::new(Mutex::new(ShieldResultSlot { value: None, sender_dropped: false, waker: None }));
        let sender = ShieldResultSender(Arc::clone(&slot));
        let shielded = async move {
            let value = future.await;
            sender.send(value);
        };
        execution.runtime.spawn(Box::pin(ShieldFuture::new(shielded, guard)));
        let received = std::future::poll_fn(move |cx| {
            let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            match slot.value.take() {
                Some(value) => Poll::Ready(Some(value)),
                None if slot.sender_dropped => Poll::Ready(None),
                None => {
                    slot.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await;
        match received {
            Some(value) => value,
            // The shielded future panicked: panic here too, as if it had been awaited in place.
            None => std::panic::resume_unwind(Box::new("the shielded future did not finish")),
        }
    }
}

/// The slot through which a shielded future passes its value to the handler.
struct ShieldResultSlot<T> {
    value: Option<T>,
    sender_dropped: bool,
    waker: Option<Waker>,
}

/// Sends the value of a shielded future to the handler. Dropping the sender without a value wakes the handler, which
/// then panics.
struct ShieldResultSender<T>(Arc<Mutex<ShieldResultSlot<T>>>);

impl<T> ShieldResultSender<T> {
    fn send(&self, value: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).value = Some(value);
    }
}

impl<T> Drop for ShieldResultSender<T> {
    fn drop(&mut self) {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slot.sender_dropped = true;
        let waker = slot.waker.take();
        drop(slot);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
