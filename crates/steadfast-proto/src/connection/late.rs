//! Calls that were given up, and whose results matter all the same.
//!
//! A call may have been answered when its cancellation arrives. Most answers that come then are nothing to anybody. One that
//! says that the work goes on as a task is: nobody else knows of that task, and nobody else can end it.

use std::collections::BTreeMap;
use std::time::Duration;

use steadfast_model::RequestId;

use super::Connection;
use super::event::Event;
use super::key::CallKey;
use super::outbound::Waiting;
use super::timer::Purpose;
use crate::Moment;
use crate::envelope::AnswerBody;

/// So many are waited for; the oldest make room.
const MOST: usize = 1_024;

/// And so long.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Default)]
pub(super) struct Late {
    calls: BTreeMap<CallKey, GivenUp>,
    /// By the id on the wire.
    ids: BTreeMap<RequestId, CallKey>,
}

#[derive(Debug, Clone)]
struct GivenUp {
    id: RequestId,
    until: Moment,
    /// The peer knows that it was given up.
    told: bool,
}

impl Late {
    /// The one that has been waited for longest.
    fn oldest(&self) -> Option<CallKey> {
        self.calls.iter().min_by_key(|(key, given_up)| (given_up.until, **key)).map(|(key, _)| *key)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (CallKey, &RequestId)> {
        self.calls.iter().map(|(key, given_up)| (*key, &given_up.id))
    }
}

impl Connection {
    /// Whether the answer to a call that was given up is waited for, as that of any other: the peer does not know that it was.
    /// Whoever carries calls one by one goes on carrying it.
    pub fn heeds(&self, key: CallKey) -> bool {
        self.late.calls.get(&key).is_some_and(|given_up| !given_up.told)
    }

    /// Takes note of a call that was given up, and whose result matters.
    pub(super) fn expect_late_answer(&mut self, now: Moment, key: CallKey, waiting: &Waiting) {
        if self.stage.is_closed() || crate::mutant!(IgnoreLateTasks) {
            return;
        }
        if self.late.calls.len() >= MOST
            && let Some(oldest) = self.late.oldest()
        {
            self.forget_late(oldest);
        }
        let until = now + PATIENCE;
        self.timers.set(until, Purpose::Late(key));
        self.late.ids.insert(waiting.id.clone(), key);
        self.late.calls.insert(key, GivenUp { id: waiting.id.clone(), until, told: waiting.cancellable });
    }

    /// Nobody waits for it any more.
    pub(super) fn forget_late(&mut self, key: CallKey) {
        if let Some(given_up) = self.late.calls.remove(&key) {
            self.late.ids.remove(&given_up.id);
            self.timers.clear(given_up.until, Purpose::Late(key));
        }
    }

    /// Takes the answer to a call that was given up. Returns whether that is what it is.
    pub(super) fn take_late_answer(&mut self, id: &RequestId, body: &AnswerBody<'_>) -> bool {
        let Some(key) = self.late.ids.get(id).copied() else { return false };
        self.forget_late(key);
        if let AnswerBody::Result(result) = *body {
            self.events.push_back(Event::AnsweredLate(result.into()));
        }
        true
    }
}
