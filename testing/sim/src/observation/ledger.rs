//! What is known of every request and call at one end, from observations alone.
//!
//! Several checkers ask the same questions: is this request open, who is owed an answer, which call is this. The ledger
//! answers them. It follows the wire and the journal and has no idea of how the connection works inside.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use steadfast_model::Revision;
use steadfast_proto::Moment;
use steadfast_proto::connection::{CancelReason, Limits};

use crate::observation::drain::handler_window;
use crate::observation::message::{Answer, Id, Message, Part};
use crate::observation::{CallNumber, CallRecord, Execution, Observation};

/// What one end is, and what it promised to keep to.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) side: Side,
    pub(crate) limits: Limits,
    /// The longest answer and log message that handlers here write.
    pub(crate) longest_frame: usize,
}

/// Which side of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Side {
    Server,
    Client,
}

/// Where a request is, as seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// It came in with this very message.
    Arrived,
    /// Its handler was started and has not answered.
    Running,
    /// Its handler has answered.
    Responded,
    /// The peer cancelled it while it ran.
    Cancelled,
    /// The connection owes it an answer of its own: it was never started, or its handler did not answer.
    Owed,
    /// An id that is in flight: to be refused without one.
    Duplicate,
}

/// What is known of a request of the peer's.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RequestFacts {
    pub(crate) id: Id,
    pub(crate) token: Option<Id>,
    pub(crate) phase: Phase,
    pub(crate) execution: Option<Execution>,
    /// Its execution has not ended.
    pub(crate) live: bool,
    /// Why its handler was stopped.
    pub(crate) stop_reason: Option<CancelReason>,
    /// Answers on the wire.
    pub(crate) answers: u8,
    /// It came in a batch, so that its answer goes out with others.
    pub(crate) batch: bool,
    /// Executions that were live when it came.
    pub(crate) live_before: usize,
    /// Messages to be refused that came before it.
    pub(crate) refusals_before: u32,
    /// Another with this id came in the same message: which of the two is the duplicate shows later.
    twin: bool,
    /// It was cancelled by the message that it came in.
    cancelled_early: bool,
    /// The largest progress on the wire.
    pub(crate) progress: Option<u64>,
    started_at: Option<Moment>,
    /// It may last as long as its connection.
    lasting: bool,
}

impl RequestFacts {
    /// Whether an answer is due that is not on the wire.
    pub(crate) fn unanswered(&self) -> bool {
        matches!(self.phase, Phase::Responded | Phase::Owed | Phase::Duplicate) && self.answers == 0
    }
}

/// What is known of a call to the peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallFacts {
    pub(crate) called: CallRecord,
    /// Its id, once it was on the wire.
    pub(crate) id: Option<Id>,
    /// Its first byte was written.
    pub(crate) written: bool,
    pub(crate) ended: bool,
    /// It had to wait until the peer was ready.
    pub(crate) held: bool,
    made_at: Moment,
    /// The last progress, or the beginning.
    renewed_at: Moment,
}

impl CallFacts {
    /// Whether it waits for its end.
    pub(crate) fn is_open(&self) -> bool {
        self.called.accepted && !self.ended
    }
}

/// Whom an answer on the wire belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseOwner {
    /// A request, by its place in the ledger.
    Request(usize),
    /// A message that could not be taken.
    Refusal,
    /// Nothing that is owed one.
    Unexpected,
}

/// An end of the connection has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DrainState {
    /// When it has to be over.
    pub(crate) deadline: Moment,
    /// Until when handlers may still answer.
    pub(crate) window: Moment,
    /// It began because the peer left, so that what it sent before is still served.
    by_peer: bool,
}

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

    /// Takes note of something that was seen. Checkers are asked before.
    pub(crate) fn note(&mut self, seen: &Observation) {
        match seen {
            Observation::Settled { .. } => self.settle(),
            Observation::Started { .. }
            | Observation::Stopped { .. }
            | Observation::CallEnded { .. }
            | Observation::CallProgressed(_)
            | Observation::Opened(_)
            | Observation::LogLine(_)
            | Observation::Closed(_)
            | Observation::Panicked(_)
            | Observation::Quiet => {}
            cause => self.cause = Some(cause.clone()),
        }
        match seen {
            Observation::Received(message) => self.note_received(message),
            Observation::Sent { message, call } => self.note_sent(message, *call),
            Observation::FirstByte(call) => {
                if let Some(call) = self.call_mut(*call) {
                    call.written = true;
                }
            }
            Observation::Flushed => self.in_transit = false,
            Observation::InputEnded => {
                self.input_ended = true;
                self.begin_ending(true);
            }
            Observation::PeerGone => self.begin_ending(true),
            Observation::WriteFailed => self.note_write_failed(),
            Observation::ShutDown { at_once } => {
                self.begin_ending(false);
                if let (true, Some(ending)) = (*at_once, &mut self.ending) {
                    ending.window = self.now;
                }
            }
            Observation::Responded(execution) => self.change(*execution, Phase::Responded),
            Observation::ExecutionEnded(execution) => {
                self.change(*execution, Phase::Owed);
                if let Some(request) = self.request_mut(*execution) {
                    request.live = false;
                }
            }
            Observation::Called(called) => self.note_called(called),
            Observation::Started { execution, id, method } => self.note_started(*execution, id, method),
            Observation::Stopped { execution, reason } => {
                if *reason != CancelReason::Peer {
                    self.change(*execution, Phase::Owed);
                }
                if let Some(request) = self.request_mut(*execution) {
                    request.stop_reason = Some(*reason);
                }
            }
            Observation::CallEnded { call, .. } => {
                if let Some(call) = self.call_mut(*call) {
                    call.ended = true;
                }
            }
            Observation::CallProgressed(call) => {
                let now = self.now;
                if let Some(call) = self.call_mut(*call) {
                    call.renewed_at = now;
                }
            }
            Observation::Opened(revision) => self.opened = Some(*revision),
            Observation::Closed(_) => self.closed = true,
            Observation::Panicked(_) => self.panicked = true,
            Observation::GaveUp(_)
            | Observation::TimedOut
            | Observation::Progressed(_)
            | Observation::Logged { .. }
            | Observation::Asked(_)
            | Observation::LogLine(_)
            | Observation::Settled { .. }
            | Observation::Quiet => {}
        }
    }

    /// Moves a request that is running to another phase; one that is not stays where it is.
    fn change(&mut self, execution: Execution, phase: Phase) {
        if let Some(request) = self.request_mut(execution).filter(|request| request.phase == Phase::Running) {
            request.phase = phase;
        }
    }

    fn note_received(&mut self, message: &Message) {
        if self.only_asks() {
            return;
        }
        if message.batch && !self.takes_apart(message) {
            self.refusals_due += 1;
            return;
        }
        for part in &message.parts {
            match part {
                Part::Request { id, method, token } => self.note_request(id, method, token.as_ref(), message.batch),
                Part::Cancel { id: Some(id) } => self.note_cancel(id),
                Part::Unreadable { answer, request, id } => {
                    // What a server sends under the id of a call may be its answer, and answers are not answered.
                    let waited_for = id.as_ref().is_none_or(|id| self.open_call(id).is_some());
                    let possible = *answer || self.settings.side == Side::Client && waited_for;
                    *(if possible { &mut self.refusals_possible } else { &mut self.refusals_due }) += 1;
                    // Only a request is refused under its id, and not under one that is in flight.
                    self.refused_ids.extend(id.clone().filter(|id| *request && self.running(id).is_none()));
                }
                Part::Notification { method } if &**method == "notifications/initialized" => {
                    self.ready |= self.opened.is_some();
                }
                _ => {}
            }
        }
    }

    fn note_request(&mut self, id: &Id, method: &str, token: Option<&Id>, batch: bool) {
        let duplicate = self.running(id).is_some();
        let mut twin = false;
        for request in self.requests.iter_mut().filter(|request| request.phase == Phase::Arrived && request.id == *id) {
            (twin, request.twin) = (true, true);
        }
        // Those that came in the same message may be live as well.
        let arrived = self.requests.iter().filter(|request| request.phase == Phase::Arrived).count();
        let live_before = self.live_executions() + arrived;
        self.requests.push(RequestFacts {
            id: Arc::clone(id),
            token: token.cloned(),
            phase: if duplicate { Phase::Duplicate } else { Phase::Arrived },
            execution: None,
            live: false,
            stop_reason: None,
            answers: 0,
            batch,
            live_before,
            refusals_before: self.refusals_due + self.refusals_possible + self.refusals_sent,
            twin,
            cancelled_early: false,
            progress: None,
            started_at: None,
            lasting: matches!(method, "subscriptions/listen" | "tasks/result"),
        });
    }

    fn note_cancel(&mut self, id: &Id) {
        let open = |request: &&mut RequestFacts| {
            request.id == *id && matches!(request.phase, Phase::Running | Phase::Arrived) && !request.cancelled_early
        };
        let Some(request) = self.requests.iter_mut().find(open) else { return };
        if request.phase == Phase::Running {
            request.phase = Phase::Cancelled;
        } else {
            request.cancelled_early = true;
        }
    }

    fn note_started(&mut self, execution: Execution, id: &Id, method: &str) {
        let is_it =
            |request: &RequestFacts, phase| request.id == *id && request.execution.is_none() && request.phase == phase;
        // Of two in one message the first is started, and the other is the duplicate.
        let arrived = self.requests.iter().position(|request| is_it(request, Phase::Arrived));
        let duplicate = || self.requests.iter().rposition(|request| is_it(request, Phase::Duplicate));
        let place = arrived.or_else(duplicate).unwrap_or_else(|| {
            // It was not expected: a checker has reported it. It is tracked all the same.
            self.note_request(id, method, None, false);
            self.requests.len() - 1
        });
        self.executions.push(place);
        debug_assert_eq!(self.executions.len() as u64, execution + 1, "executions are numbered as they start");
        let now = self.now;
        if let Some(request) = self.requests.get_mut(place) {
            request.phase = if request.cancelled_early { Phase::Cancelled } else { Phase::Running };
            request.execution = Some(execution);
            request.live = true;
            request.started_at = Some(now);
        }
    }

    fn note_sent(&mut self, message: &Message, call: Option<CallNumber>) {
        self.in_transit = true;
        for part in &message.parts {
            match part {
                Part::Request { id, .. } => {
                    if let Some(call) = call.and_then(|call| self.call_mut(call)) {
                        call.id = Some(Arc::clone(id));
                    }
                }
                Part::Answer(answer) => match self.recipient(answer) {
                    ResponseOwner::Request(place) => {
                        if let Some(request) = self.requests.get_mut(place) {
                            request.answers = request.answers.saturating_add(1);
                        }
                    }
                    ResponseOwner::Refusal => {
                        let owed =
                            if self.refusals_due > 0 { &mut self.refusals_due } else { &mut self.refusals_possible };
                        *owed -= 1;
                        self.refusals_sent += 1;
                        let named = answer.id.as_ref().or(answer.about.as_ref());
                        if let Some(place) = self.refused_ids.iter().position(|id| Some(id) == named) {
                            self.refused_ids.remove(place);
                        }
                    }
                    ResponseOwner::Unexpected => {}
                },
                Part::Progress { token: Some(token), value } => {
                    let place = self.progress_place(token);
                    if let Some(request) = place.and_then(|place| self.requests.get_mut(place)) {
                        request.progress = Some(*value);
                    }
                }
                _ => {}
            }
        }
    }

    fn note_called(&mut self, called: &CallRecord) {
        self.calls.push(CallFacts {
            called: called.clone(),
            id: None,
            written: false,
            ended: false,
            held: self.would_hold(called.method),
            made_at: self.now,
            renewed_at: self.now,
        });
    }

    fn begin_ending(&mut self, by_peer: bool) {
        let limits = &self.settings.limits;
        if self.ending.is_none() && !self.closed {
            let (window, deadline) = (self.now + handler_window(limits), self.now + limits.drain_deadline);
            self.ending = Some(DrainState { deadline, window, by_peer });
        }
    }

    fn note_write_failed(&mut self) {
        self.output_failed = true;
        self.in_transit = false;
        self.begin_ending(true);
        let limits = &self.settings.limits;
        let cleanups = limits.drain_deadline.saturating_sub(handler_window(limits));
        if let Some(ending) = &mut self.ending {
            ending.deadline = ending.deadline.min(self.now + cleanups);
            ending.window = self.now;
        }
    }

    fn settle(&mut self) {
        for request in &mut self.requests {
            if request.phase == Phase::Arrived {
                request.phase = Phase::Owed;
            }
        }
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
