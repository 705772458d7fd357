//! What is known of every request and call at one end, from observations alone.
//!
//! Several checkers ask the same questions: is this request open, who is owed an answer, which call is this. The ledger
//! answers them. It follows the wire and the journal and has no idea of how the connection works inside.

mod facts;
mod notes;

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use steadfast_model::Revision;
use steadfast_proto::Moment;

use crate::observation::message::{Answer, Id, Message};
use crate::observation::{CallNumber, Execution, Observation};
pub(crate) use facts::{CallFacts, DrainState, Phase, RequestFacts, ResponseOwner, Settings, Side};

/// See the [module](self).
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    pub(crate) settings: Arc<Settings>,
    pub(crate) now: Moment,
    pub(crate) requests: Vec<RequestFacts>,
    /// The request of each execution.
    executions: Vec<usize>,
    pub(crate) calls: Vec<CallFacts>,
    /// Errors due for messages that could not be taken, and those that may be left out.
    pub(crate) refusals_due: u32,
    refusals_possible: u32,
    /// Refusals on the wire.
    pub(crate) refusals_sent: u32,
    /// The ids of requests that could not be read and are to be refused. One is refused before a later request of the same id,
    /// which the peer sent again, is answered.
    refused_ids: Vec<Id>,
    pub(crate) ending: Option<DrainState>,
    pub(crate) input_ended: bool,
    pub(crate) output_failed: bool,
    pub(crate) closed: bool,
    pub(crate) panicked: bool,
    /// Frames were taken that are not reported as written.
    pub(crate) in_transit: bool,
    /// The revision that was agreed on.
    pub(crate) opened: Option<Revision>,
    /// The peer is ready for calls.
    ready: bool,
    /// What this step began with.
    pub(crate) cause: Option<Observation>,
}

impl Ledger {
    pub(crate) fn new(settings: Arc<Settings>) -> Self {
        let ready = settings.side == Side::Client;
        Self {
            settings,
            now: Moment::ORIGIN,
            requests: Vec::new(),
            executions: Vec::new(),
            calls: Vec::new(),
            refusals_due: 0,
            refusals_possible: 0,
            refusals_sent: 0,
            refused_ids: Vec::new(),
            ending: None,
            input_ended: false,
            output_failed: false,
            closed: false,
            panicked: false,
            in_transit: false,
            opened: None,
            ready,
            cause: None,
        }
    }

    pub(crate) fn request(&self, execution: Execution) -> Option<&RequestFacts> {
        let place = *self.executions.get(usize::try_from(execution).ok()?)?;
        self.requests.get(place)
    }

    fn request_mut(&mut self, execution: Execution) -> Option<&mut RequestFacts> {
        let place = *self.executions.get(usize::try_from(execution).ok()?)?;
        self.requests.get_mut(place)
    }

    pub(crate) fn call(&self, call: CallNumber) -> Option<&CallFacts> {
        self.calls.get(usize::try_from(call).ok()?)
    }

    fn call_mut(&mut self, call: CallNumber) -> Option<&mut CallFacts> {
        self.calls.get_mut(usize::try_from(call).ok()?)
    }

    /// The running request with this id.
    pub(crate) fn running(&self, id: &Id) -> Option<&RequestFacts> {
        self.requests.iter().rev().find(|request| request.phase == Phase::Running && request.id == *id)
    }

    /// The open call with this id on the wire.
    pub(crate) fn open_call(&self, id: &Id) -> Option<&CallFacts> {
        self.calls.iter().rev().find(|call| call.is_open() && call.id.as_ref() == Some(id))
    }

    pub(crate) fn live_executions(&self) -> usize {
        self.requests.iter().filter(|request| request.live).count()
    }

    pub(crate) fn open_calls(&self) -> usize {
        self.calls.iter().filter(|call| call.is_open()).count()
    }

    /// Whether a call of this method has to wait until the peer says that it is ready.
    pub(crate) fn would_hold(&self, method: &str) -> bool {
        !self.ready && method != "ping"
    }

    /// Whether this is a client of 2026-07-28: it answers nothing, and a cancellation from its peer names a call of its own.
    pub(crate) fn only_asks(&self) -> bool {
        self.settings.side == Side::Client && self.opened.is_some_and(Revision::is_stateless)
    }

    /// Whether a frame is a batch that this connection has to take apart.
    pub(crate) fn takes_apart(&self, message: &Message) -> bool {
        message.batch && self.opened.is_some_and(Revision::has_batches) && !message.parts.is_empty()
    }

    /// Whether a request has run past its deadline.
    pub(crate) fn is_overdue(&self, request: &RequestFacts) -> bool {
        let deadline = self.settings.limits.handler_deadline.filter(|_| !request.lasting);
        request.started_at.zip(deadline).is_some_and(|(started, deadline)| started + deadline <= self.now)
    }

    /// Whether a call has waited longer than it was to.
    pub(crate) fn is_call_overdue(&self, call: &CallFacts) -> bool {
        let past = |from: Moment, timeout: Option<Duration>| timeout.is_some_and(|timeout| from + timeout <= self.now);
        past(call.renewed_at, call.called.timeout) || past(call.made_at, call.called.total_timeout)
    }

    /// Whether nothing of the peer's is to be waited for any more.
    pub(crate) fn input_is_done(&self) -> bool {
        self.ending.is_some_and(|ending| {
            self.input_ended || !ending.by_peer || ending.window <= self.now || self.output_failed
        })
    }

    /// Whom an answer belongs to, if it were sent now.
    pub(crate) fn recipient(&self, answer: &Answer) -> ResponseOwner {
        if let Some(execution) = answer.marker {
            let place = usize::try_from(execution).ok().and_then(|place| self.executions.get(place));
            return place.map_or(ResponseOwner::Unexpected, |place| ResponseOwner::Request(*place));
        }
        let owed = |request: &RequestFacts| match (&answer.id, &answer.about) {
            (Some(id), _) => request.phase == Phase::Owed && request.id == *id,
            (None, Some(about)) => {
                (request.phase == Phase::Duplicate || request.phase == Phase::Owed && request.twin)
                    && request.id == *about
            }
            (None, None) => false,
        };
        let refuses =
            matches!(answer.code, Some(-32_700 | -32_600 | -32_602)) && self.refusals_due + self.refusals_possible > 0;
        // No request that can be read is refused as one that cannot.
        let of_refused = answer.id.as_ref().is_some_and(|id| self.refused_ids.contains(id));
        if refuses && (answer.code == Some(-32_700) || of_refused) {
            return ResponseOwner::Refusal;
        }
        match self.requests.iter().position(|request| request.answers == 0 && owed(request)) {
            Some(place) => ResponseOwner::Request(place),
            None if refuses => ResponseOwner::Refusal,
            None => ResponseOwner::Unexpected,
        }
    }

    /// The request that progress with this token is of: one that has no answer yet, if a token was used again.
    pub(crate) fn progress_place(&self, token: &Id) -> Option<usize> {
        let of_token = |request: &RequestFacts| request.token.as_ref() == Some(token);
        let open = self.requests.iter().rposition(|request| of_token(request) && request.answers == 0);
        open.or_else(|| self.requests.iter().rposition(of_token))
    }

    /// Whether more than one request had this token.
    pub(crate) fn shares_token(&self, token: &Id) -> bool {
        self.requests.iter().filter(|request| request.token.as_ref() == Some(token)).count() > 1
    }
}

/// For exhaustive search: what was seen so far, as far as it bears on verdicts to come. Times are relative.
impl Hash for Ledger {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let since = |moment: Moment| self.now.since(moment);
        for request in &self.requests {
            (&request.id, &request.token, request.phase, request.execution, request.live, request.stop_reason)
                .hash(hasher);
            (request.answers, request.batch, request.twin, request.progress, request.lasting).hash(hasher);
            if request.phase == Phase::Running {
                (request.started_at.map(since), request.refusals_before).hash(hasher);
            }
            if request.unanswered() && request.execution.is_none() {
                request.live_before.hash(hasher);
            }
        }
        for call in &self.calls {
            (&call.called, &call.id, call.written, call.ended, call.held).hash(hasher);
            if call.is_open() {
                (since(call.made_at), since(call.renewed_at)).hash(hasher);
            }
        }
        let ending =
            self.ending.map(|ending| (ending.deadline.since(self.now), ending.window.since(self.now), ending.by_peer));
        (self.refusals_due, self.refusals_possible, self.refusals_sent, &self.refused_ids).hash(hasher);
        (ending, self.input_ended, self.output_failed).hash(hasher);
        (self.closed, self.panicked, self.in_transit, self.opened, self.ready).hash(hasher);
    }
}
