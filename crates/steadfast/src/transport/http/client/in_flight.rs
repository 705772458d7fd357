//! The HTTP requests of a client's connection that have not ended, and what each was sent for.
//!
//! Each message of the client is a POST of its own, and one POST may overtake another. The cancellation of a request
//! must not overtake the request (L9): a server ignores the cancellation of a request that it has not seen, and then
//! works on the request. So the client tracks for each message whether the server may have received it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use steadfast_proto::Moment;
use steadfast_proto::connection::CallKey;
use tokio::sync::watch;

use super::task::HttpClientTaskHandle;
use crate::runtime::Runtime;
use crate::runtime::timeout::{timeout_at, unless_stopped};

/// The maximum number of notifications and responses that the client POSTs at the same time. Further notifications and
/// responses stay queued in the connection until one of these POSTs has finished.
const MAX_MESSAGES: usize = 64;

/// The maximum number of cancellations that the client POSTs at the same time. When a further cancellation is sent, the
/// POST of the oldest one is aborted: a server that has not accepted it by then ignores cancellations.
const MAX_CANCELLATIONS: usize = 1_024;

/// The maximum number of HTTP responses that are read to their ends at the same time, after the JSON-RPC response in
/// them has arrived.
const MAX_TAILS: usize = 16;

#[derive(Default)]
pub(crate) struct HttpInFlightMessages {
    /// The POSTs of requests that await a response.
    calls: BTreeMap<CallKey, HttpClientInFlightRequest>,
    /// The keys of requests in `calls` that have ended for their callers, but whose POSTs could not be aborted so far.
    ended: Vec<CallKey>,
    /// POSTs of notifications and responses, and the DELETE of the session. The POST of a notification or response,
    /// or a DELETE, does not wait for a message of the server.
    messages: Vec<HttpClientTaskHandle>,
    /// The POSTs of cancellations, each sent after the request that it cancels. No call and no other message waits
    /// for the POST of a cancellation.
    cancellations: VecDeque<HttpClientTaskHandle>,
    /// Futures that read the rest of an HTTP response after the JSON-RPC response in it has arrived.
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

    /// Removes the POST of a call, so that the cancellation of the call can wait until the POST is delivered.
    pub(crate) fn take_call(&mut self, key: CallKey) -> Option<HttpClientInFlightRequest> {
        self.calls.remove(&key)
    }

    /// Whether the limit of POSTs is reached, so that further messages stay queued in the connection.
    pub(crate) fn is_full(&self) -> bool {
        self.messages.len() >= MAX_MESSAGES
    }

    /// Whether no message and no cancellation is in flight.
    pub(crate) fn is_delivered(&self) -> bool {
        self.messages.is_empty() && self.cancellations.is_empty()
    }

    /// Aborts the POSTs of calls that have ended, now or earlier, except those for which `stays` returns true.
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

    /// Aborts all HTTP requests that await something from the server. POSTs of notifications, responses and
    /// cancellations go on.
    pub(crate) fn abort_responses(&mut self) {
        self.calls.clear();
        self.ended.clear();
        self.tails.clear();
    }

    /// Removes the HTTP requests that have ended. Calls are not removed here: they report their ends to the driver.
    pub(crate) fn reap(&mut self) {
        let mut is_running = |task: &HttpClientTaskHandle| !task.is_over();
        self.messages.retain(&mut is_running);
        self.cancellations.retain(&mut is_running);
        self.tails.retain(&mut is_running);
    }
}

/// Adds an HTTP request, and aborts the oldest one if there are `most` already.
fn push_bounded(tasks: &mut VecDeque<HttpClientTaskHandle>, task: HttpClientTaskHandle, most: usize) {
    if tasks.len() >= most {
        tasks.pop_front();
    }
    tasks.push_back(task);
}

/// How long the cancellation of a request waits for the request to be delivered. A server that responds with JSON sends
/// no HTTP head before its response, so cancellations to it wait this long; a server that sends the head of an event
/// stream gets cancellations at once.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(1);

/// How far the delivery of one message to the server has come.
pub(crate) struct HttpPostDelivery(watch::Sender<HttpPostDeliveryStage>);

#[derive(Clone, Copy, PartialEq)]
enum HttpPostDeliveryStage {
    /// The server cannot have seen the message, or refused to accept it.
    NotDelivered,
    /// The message was handed to the HTTP client at this time.
    Sending(Moment),
    /// The head of the HTTP response was received and handled, or the POST failed although the server may have received
    /// the message.
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

/// The POST of a request in flight, and how far its delivery has come. Dropping an `HttpClientInFlightRequest` aborts
/// its POST.
pub(crate) struct HttpClientInFlightRequest {
    pub(crate) task: HttpClientTaskHandle,
    pub(crate) delivery: Arc<HttpPostDelivery>,
}

impl HttpClientInFlightRequest {
    /// Whether the request may still be on its way to the server: neither a response nor a failure is known, and the
    /// delivery timeout has not passed.
    pub(crate) fn is_being_delivered(&self, now: Moment) -> bool {
        self.delivery.sending_since().is_some_and(|since| now < since + DELIVERY_TIMEOUT) && !self.task.is_over()
    }

    /// Aborts the POST once the request was delivered, has failed, or the delivery timeout has passed. Returns whether
    /// the server may have seen the request.
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
