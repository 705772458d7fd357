//! Whether the server may have received a message.
//!
//! Each message is a POST of its own, and one may overtake another. The cancellation of a request must not overtake the request
//! (L9): a server ignores the cancellation of a request that it has not seen, and then works on the request.

use std::sync::Arc;
use std::time::Duration;

use steadfast_proto::Moment;
use tokio::sync::watch;

use crate::runtime::Runtime;
use crate::runtime::timeout::{timeout_at, unless_stopped};
use crate::transport::http::client::task::HttpTaskHandle;

/// How long the cancellation of a request waits for the request to be delivered. A server that responds with JSON sends no head
/// before its response, so its cancellations wait this long; a server that sends the head of an event stream gets them at once.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(1);

/// How far the delivery of one message has come.
pub(crate) struct DeliveryState(watch::Sender<DeliveryStage>);

#[derive(Clone, Copy, PartialEq)]
enum DeliveryStage {
    /// The server cannot have seen the message, or refused to accept it before it read it.
    NotDelivered,
    /// The message was handed to the HTTP client at this time.
    Sending(Moment),
    /// The head of the response was received and handled; or the request failed, and nothing more will be known of it.
    Settled,
}

impl DeliveryState {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(watch::Sender::new(DeliveryStage::NotDelivered)))
    }

    /// Whether the server may have seen the message.
    pub(crate) fn may_be_delivered(&self) -> bool {
        *self.0.borrow() != DeliveryStage::NotDelivered
    }

    pub(crate) fn note_sending(&self, now: Moment) {
        self.0.send_replace(DeliveryStage::Sending(now));
    }

    pub(crate) fn note_settled(&self) {
        self.0.send_replace(DeliveryStage::Settled);
    }

    /// The message was not sent after all, or the server refused to accept it (401, 403, a redirect).
    pub(crate) fn note_not_delivered(&self) {
        self.0.send_replace(DeliveryStage::NotDelivered);
    }

    fn sending_since(&self) -> Option<Moment> {
        match *self.0.borrow() {
            DeliveryStage::Sending(since) => Some(since),
            DeliveryStage::NotDelivered | DeliveryStage::Settled => None,
        }
    }

    /// Waits until the message is not being sent any more.
    async fn sending_ends(&self) {
        // The sender is in `self`, so the channel does not close.
        let _ = self.0.subscribe().wait_for(|stage| !matches!(stage, DeliveryStage::Sending(_))).await;
    }
}

/// A request in flight, and how far its delivery has come. Dropping it aborts the request.
pub(crate) struct SentRequest {
    pub(crate) task: HttpTaskHandle,
    pub(crate) delivery: Arc<DeliveryState>,
}

impl SentRequest {
    /// Whether the request may still be delivered: neither a response nor a failure is known, and there is time left.
    pub(crate) fn is_being_delivered(&self, now: Moment) -> bool {
        self.delivery.sending_since().is_some_and(|since| now < since + DELIVERY_TIMEOUT) && !self.task.is_over()
    }

    /// Aborts the request once it was delivered, has failed, or has had the time for either. Returns whether the server may have
    /// seen it.
    pub(crate) async fn abort(self, runtime: &dyn Runtime) -> bool {
        if let Some(since) = self.delivery.sending_since() {
            let over = std::future::poll_fn(|cx| self.task.poll_over(cx));
            let deadline = since + DELIVERY_TIMEOUT;
            let _ = timeout_at(runtime, Some(deadline), unless_stopped(over, self.delivery.sending_ends())).await;
        }
        let Self { task, delivery } = self;
        drop(task);
        delivery.may_be_delivered()
    }
}
