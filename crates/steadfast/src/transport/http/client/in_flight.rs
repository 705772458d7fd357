//! Every HTTP request of a connection that has not ended, and what it was sent for.
//!
//! Each message is a POST of its own, and one may overtake another. The cancellation of a request must not overtake the request
//! (L9): a server ignores the cancellation of a request that it has not seen, and then works on the request. So it is tracked
//! whether the server may have received a message.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use steadfast_proto::Moment;
use steadfast_proto::connection::CallKey;
use tokio::sync::watch;

use super::task::HttpClientTaskHandle;
use crate::runtime::Runtime;
use crate::runtime::timeout::{timeout_at, unless_stopped};

/// How many notifications and responses are in flight at once. More of them wait in the connection.
const MAX_MESSAGES: usize = 64;

/// How many cancellations are in flight at once. A server that has not accepted the oldest of them by then ignores them.
const MAX_CANCELLATIONS: usize = 1_024;

/// How many HTTP responses are read to their ends at once after the message in them has come.
const MAX_TAILS: usize = 16;

#[derive(Default)]
pub(crate) struct HttpInFlightMessages {
    /// Requests that await a response.
    calls: BTreeMap<CallKey, HttpClientInFlightRequest>,
    /// Those of `calls` that have ended for their callers, and could not be dropped so far.
    ended: Vec<CallKey>,
    /// POSTs of notifications and responses, and the DELETE of the session. None of them waits for a message of the server.
    messages: Vec<HttpClientTaskHandle>,
    /// Cancellations, each sent after the request that it cancels. Nothing waits for them.
    cancellations: VecDeque<HttpClientTaskHandle>,
    /// Reading the rest of HTTP responses after the message in them has arrived.
    tails: VecDeque<HttpClientTaskHandle>,
}

impl HttpInFlightMessages {
    pub(crate) fn insert_call(&mut self, key: CallKey, request: HttpClientInFlightRequest) {
        self.calls.insert(key, request);
    }

    pub(crate) fn insert_message(&mut self, task: HttpClientTaskHandle) {
        self.messages.push(task);
    }

    pub(crate) fn insert_cancellation(&mut self, task: HttpClientTaskHandle) {
        push_bounded(&mut self.cancellations, task, MAX_CANCELLATIONS);
    }

    pub(crate) fn insert_tail(&mut self, task: HttpClientTaskHandle) {
        push_bounded(&mut self.tails, task, MAX_TAILS);
    }

    /// Removes a call, so that its cancellation can wait for its delivery.
    pub(crate) fn take_call(&mut self, key: CallKey) -> Option<HttpClientInFlightRequest> {
        self.calls.remove(&key)
    }

    /// Whether further messages have to wait in the connection.
    pub(crate) fn is_full(&self) -> bool {
        self.messages.len() >= MAX_MESSAGES
    }

    /// Whether no message and no cancellation is in flight.
    pub(crate) fn is_delivered(&self) -> bool {
        self.messages.is_empty() && self.cancellations.is_empty()
    }

    /// Aborts the calls that have ended, now or earlier, except those for which `stays` returns true.
    pub(crate) fn abort_ended(
        &mut self,
        ended: impl IntoIterator<Item = CallKey>,
        stays: impl Fn(CallKey, &HttpClientInFlightRequest) -> bool,
    ) {
        self.ended.extend(ended);
        self.ended.retain(|key| {
            let stays = self.calls.get(key).is_some_and(|request| stays(*key, request));
            if !stays {
                self.calls.remove(key);
            }
            stays
        });
    }

    /// Aborts everything that awaits something from the server. Messages and cancellations stay.
    pub(crate) fn abort_responses(&mut self) {
        self.calls.clear();
        self.ended.clear();
        self.tails.clear();
    }

    /// Removes the tasks that have ended. Calls report their ends themselves.
    pub(crate) fn reap(&mut self) {
        let mut is_running = |task: &HttpClientTaskHandle| !task.is_over();
        self.messages.retain(&mut is_running);
        self.cancellations.retain(&mut is_running);
        self.tails.retain(&mut is_running);
    }
}

/// Aborts the oldest task if there are `most` already.
fn push_bounded(tasks: &mut VecDeque<HttpClientTaskHandle>, task: HttpClientTaskHandle, most: usize) {
    if tasks.len() >= most {
        tasks.pop_front();
    }
    tasks.push_back(task);
}

/// How long the cancellation of a request waits for the request to be delivered. A server that responds with JSON sends no head
/// before its response, so its cancellations wait this long; a server that sends the head of an event stream gets them at once.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(1);

/// How far the delivery of one message has come.
pub(crate) struct HttpPostDelivery(watch::Sender<HttpPostDeliveryStage>);

#[derive(Clone, Copy, PartialEq)]
enum HttpPostDeliveryStage {
    /// The server cannot have seen the message, or refused to accept it before it read it.
    NotDelivered,
    /// The message was handed to the HTTP client at this time.
    Sending(Moment),
    /// The head of the response was received and handled; or the request failed, and nothing more will be known of it.
    Settled,
}

impl HttpPostDelivery {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(watch::Sender::new(HttpPostDeliveryStage::NotDelivered)))
    }

    /// Whether the server may have seen the message.
    pub(crate) fn may_be_delivered(&self) -> bool {
        *self.0.borrow() != HttpPostDeliveryStage::NotDelivered
    }

    pub(crate) fn note_sending(&self, now: Moment) {
        self.0.send_replace(HttpPostDeliveryStage::Sending(now));
    }

    pub(crate) fn note_settled(&self) {
        self.0.send_replace(HttpPostDeliveryStage::Settled);
    }

    /// Records that the message was not sent after all, or that the server refused to accept it (401, 403, a redirect).
    pub(crate) fn note_not_delivered(&self) {
        self.0.send_replace(HttpPostDeliveryStage::NotDelivered);
    }

    fn sending_since(&self) -> Option<Moment> {
        match *self.0.borrow() {
            HttpPostDeliveryStage::Sending(since) => Some(since),
            HttpPostDeliveryStage::NotDelivered | HttpPostDeliveryStage::Settled => None,
        }
    }

    /// Waits until the head of the HTTP response has been handled, or the POST has failed.
    async fn sending_ends(&self) {
        // The sender is in `self`, so the channel does not close.
        let _ = self.0.subscribe().wait_for(|stage| !matches!(stage, HttpPostDeliveryStage::Sending(_))).await;
    }
}

/// A request in flight, and how far its delivery has come. Dropping it aborts the request.
pub(crate) struct HttpClientInFlightRequest {
    pub(crate) task: HttpClientTaskHandle,
    pub(crate) delivery: Arc<HttpPostDelivery>,
}

impl HttpClientInFlightRequest {
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::transport::http::client::task::HttpClientTasks;

    fn pending_task() -> HttpClientTaskHandle {
        HttpClientTasks::<()>::new().push(std::future::pending(), || None)
    }

    fn in_flight(calls: u64) -> HttpInFlightMessages {
        let mut in_flight = HttpInFlightMessages::default();
        for number in 0..calls {
            let request = HttpClientInFlightRequest { task: pending_task(), delivery: HttpPostDelivery::new() };
            in_flight.insert_call(CallKey::new(number), request);
        }
        in_flight
    }

    /// The driver does this on every turn, and shares its thread.
    #[tokio::test]
    async fn only_ended_calls_are_looked_at() {
        let (mut in_flight, asked) = (in_flight(100), Cell::new(0));
        let stays = |key, _: &HttpClientInFlightRequest| {
            asked.set(asked.get() + 1);
            key == CallKey::new(7)
        };
        in_flight.abort_ended([CallKey::new(7), CallKey::new(8)], stays);
        assert_eq!(asked.take(), 2);
        in_flight.abort_ended([], stays);
        assert_eq!(asked.take(), 1, "the call that stayed is asked about again");
        in_flight.abort_ended([], |_, _| false);
        let found = [7, 8, 9].map(|number| in_flight.take_call(CallKey::new(number)).is_some());
        assert_eq!(found, [false, false, true]);
    }

    #[tokio::test]
    async fn a_call_that_was_taken_is_not_in_flight_any_more() {
        let mut in_flight = in_flight(2);
        let key = CallKey::new(1);
        assert!(in_flight.take_call(key).is_some() && in_flight.take_call(key).is_none());
        in_flight.abort_ended([key], |_, _| panic!("the call was taken"));
        assert!(in_flight.take_call(CallKey::new(0)).is_some());
    }

    #[tokio::test]
    async fn messages_are_bounded_by_waiting_and_cancellations_by_dropping_the_oldest() {
        let mut in_flight = HttpInFlightMessages::default();
        for _ in 0..MAX_MESSAGES {
            assert!(!in_flight.is_full());
            in_flight.insert_message(pending_task());
        }
        assert!(in_flight.is_full() && !in_flight.is_delivered());
        for _ in 0..=MAX_CANCELLATIONS {
            in_flight.insert_cancellation(pending_task());
        }
        assert_eq!(in_flight.cancellations.len(), MAX_CANCELLATIONS);
    }
}
