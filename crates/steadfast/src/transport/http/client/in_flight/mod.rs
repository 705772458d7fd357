//! Every HTTP request of a connection that has not ended, and what it was sent for.

pub(crate) mod delivery;

use std::collections::{BTreeMap, VecDeque};
use std::task::Context;

use steadfast_proto::connection::CallKey;

use super::task::HttpTaskHandle;
use delivery::SentRequest;

/// How many notifications and responses are in flight at once. More of them wait in the connection.
const MAX_MESSAGES: usize = 64;

/// How many cancellations are in flight at once. A server that has not accepted the oldest of them by then ignores them.
const MAX_CANCELLATIONS: usize = 1_024;

/// How many HTTP responses are read to their ends at once after the message in them has come.
const MAX_TAILS: usize = 16;

#[derive(Default)]
pub(crate) struct InFlight {
    /// Requests that await a response.
    calls: BTreeMap<CallKey, SentRequest>,
    /// Those of `calls` that have ended for their callers, and could not be dropped so far.
    ended: Vec<CallKey>,
    /// Notifications, responses, and the DELETE of the session. They end by themselves.
    messages: Vec<HttpTaskHandle>,
    /// Cancellations, each sent after the request that it cancels. Nothing waits for them.
    cancellations: VecDeque<HttpTaskHandle>,
    /// The rest of HTTP responses whose message has come.
    tails: VecDeque<HttpTaskHandle>,
}

impl InFlight {
    pub(crate) fn insert_call(&mut self, key: CallKey, request: SentRequest) {
        self.calls.insert(key, request);
    }

    pub(crate) fn insert_message(&mut self, task: HttpTaskHandle) {
        self.messages.push(task);
    }

    pub(crate) fn insert_cancellation(&mut self, task: HttpTaskHandle) {
        push_bounded(&mut self.cancellations, task, MAX_CANCELLATIONS);
    }

    pub(crate) fn insert_tail(&mut self, task: HttpTaskHandle) {
        push_bounded(&mut self.tails, task, MAX_TAILS);
    }

    /// Removes a call, so that its cancellation can wait for its delivery.
    pub(crate) fn take_call(&mut self, key: CallKey) -> Option<SentRequest> {
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
        stays: impl Fn(CallKey, &SentRequest) -> bool,
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

    /// Removes the tasks that have ended, and registers the waker with the others. Calls report their ends themselves.
    pub(crate) fn reap(&mut self, cx: &mut Context<'_>) {
        let mut is_running = |task: &HttpTaskHandle| task.poll_over(cx).is_pending();
        self.messages.retain(&mut is_running);
        self.cancellations.retain(&mut is_running);
        self.tails.retain(&mut is_running);
    }
}

/// Aborts the oldest task if there are `most` already.
fn push_bounded(tasks: &mut VecDeque<HttpTaskHandle>, task: HttpTaskHandle, most: usize) {
    if tasks.len() >= most {
        tasks.pop_front();
    }
    tasks.push_back(task);
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::transport::http::client::in_flight::delivery::DeliveryState;
    use crate::transport::http::client::task::HttpTasks;

    fn pending_task() -> HttpTaskHandle {
        HttpTasks::<()>::new().push(std::future::pending(), || None)
    }

    fn in_flight(calls: u64) -> InFlight {
        let mut in_flight = InFlight::default();
        for number in 0..calls {
            let request = SentRequest { task: pending_task(), delivery: DeliveryState::new() };
            in_flight.insert_call(CallKey::new(number), request);
        }
        in_flight
    }

    /// The driver does this on every turn, and shares its thread.
    #[tokio::test]
    async fn only_ended_calls_are_looked_at() {
        let (mut in_flight, asked) = (in_flight(100), Cell::new(0));
        let stays = |key, _: &SentRequest| {
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
        let mut in_flight = InFlight::default();
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
