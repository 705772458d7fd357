//! What is seen from outside in one run: what the program did with its client and the outcomes, and what the server has
//! read and written. The checks are in [`checks`](super::checks).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::Value;
use steadfast::{CallToolResult, Error, ErrorKind, Outcome};
use steadfast_proto::Moment;

use super::TransportKind;
use super::checks;
use super::checks::cache::{self, CacheFacts};
use super::checks::changes::{self, ListenerFacts, StreamItem};
use super::checks::tasks::{self, TaskFacts};
use super::script::{Action, Call, Listening, Reading, Script};
use crate::coverage;
use crate::executor::Executor;
use crate::executor::line_buffer::LineBuffer;
use crate::law::Law;
use crate::observation::message::{Id, id_text};
use crate::observation::record::Record;

/// How long a client waits for the answer to a subscription whose listener is gone.
const SUBSCRIBING: Duration = Duration::from_secs(60);

/// How long all of an opening may take.
const OPENING: Duration = Duration::from_secs(20);

/// The journal of one run.
pub(super) struct Journal {
    pub(super) executor: Executor,
    facts: Mutex<Facts>,
    transport: OnceLock<Arc<dyn TransportFacts>>,
}

/// What is known of the transport between the client and the server.
pub(super) trait TransportFacts: Send + Sync {
    /// Whether the client has read what this is the receipt of.
    fn was_read(&self, receipt: usize) -> bool;

    /// The same, if that was before the client could know that its own words are lost on that connection.
    fn was_read_in_time(&self, receipt: usize) -> bool {
        self.was_read(receipt)
    }

    /// The server has read everything that the client writes.
    fn is_quiet(&self) -> bool;

    /// The client has read to the end, and there will be no more.
    fn is_read_to_end(&self) -> bool;

    /// The client has let go of it.
    fn is_dropped(&self) -> bool;
}

/// Everything that was seen.
pub(super) struct Facts {
    pub(super) record: Record,
    pub(super) transport_kind: TransportKind,
    /// The server speaks 2026-07-28.
    pub(super) modern: bool,
    /// How many calls may wait.
    pub(super) most_calls: usize,
    /// The most that waited at once since nothing could run.
    pub(super) peak: usize,
    pub(super) calls: BTreeMap<u64, CallFacts>,
    /// Progress that the server has reported, by the call that it is for.
    pub(super) reported: BTreeSet<(u64, String)>,
    pub(super) plans: BTreeMap<u64, Call>,
    /// Requests of the client.
    pub(super) requests: BTreeMap<Id, RequestFacts>,
    /// What they are called here, by their connection: each has ids of its own.
    pub(super) keys: BTreeMap<(usize, Id), Id>,
    pub(super) questions: BTreeMap<Id, QuestionFacts>,
    /// By their names.
    pub(super) tasks: BTreeMap<String, TaskFacts>,
    /// Those that the client followed when it was closed.
    pub(super) left_behind: Vec<String>,
    /// How many of those may go on, for want of room to cancel them.
    pub(super) may_go_on: usize,
    /// There were tasks to cancel when it was closed: it waits until the server has heard of that.
    pub(super) cancels_at_close: bool,
    pub(super) listeners: BTreeMap<u64, ListenerFacts>,
    /// What a server of the older revisions is to tell of, on which connection.
    pub(super) subscribed: BTreeSet<(usize, String)>,
    pub(super) cache: CacheFacts,
    /// The client reconnects.
    pub(super) returns: bool,
    /// A connection was lost.
    pub(super) trouble: bool,
    /// Those whose session was reported to the client as lost.
    pub(super) lost: BTreeSet<usize>,
    /// The client could see that it is over.
    pub(super) closing: Option<Moment>,
    /// Until when the server reads nothing.
    pub(super) deaf_until: Moment,
    /// The program has closed it.
    pub(super) shut: Option<Moment>,
    /// The program is done with the client, and no call waits.
    pub(super) left: Option<Moment>,
    /// Requests of HTTP that are under way.
    pub(super) requesting: usize,
    /// How it began, once it has.
    pub(super) opened: Option<Result<(), ErrorKind>>,
    /// Bytes of lines that have not ended, by their connection.
    pub(super) partial: BTreeMap<usize, LineBuffer>,
    pub(super) counts: Counts,
}

/// Numbers for the totals.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) cancellations: u64,
    pub(super) resumed: u64,
    /// Beyond the first.
    pub(super) rounds: u64,
    pub(super) messages: u64,
    pub(super) links: u64,
}

/// A call of the program's.
pub(super) struct CallFacts {
    pub(super) began: Moment,
    pub(super) ended: Option<(Moment, CallResult)>,
    /// Of its rounds.
    pub(super) ids: Vec<Id>,
    /// The server has reported progress, or asked back: its deadline is not what it was.
    pub(super) prolonged: bool,
    /// How often the server has begun it.
    pub(super) executions: usize,
    /// As many calls as may wait did so when it was made.
    pub(super) at_limit: bool,
    /// It was cancelled from elsewhere.
    pub(super) cancelled: bool,
    /// The last progress that it got, and whether there may be more.
    pub(super) progressed: f64,
    pub(super) hears: bool,
    /// The tasks that it became, by the requests that were answered with them.
    pub(super) tasks: Vec<(Id, String)>,
    /// The one that the client follows.
    pub(super) task: Option<String>,
    /// The same, if it is to be cancelled.
    pub(super) unwanted: Option<String>,
}

/// A question of the server's.
pub(super) struct QuestionFacts {
    /// The request on whose response it was asked over HTTP, if any.
    pub(super) within: Option<Id>,
    pub(super) receipt: Option<usize>,
    /// It was not known yet which revision the server speaks.
    pub(super) early: bool,
    pub(super) answers: usize,
    /// When nothing could run any more after the client had read it, so that the client has taken it in.
    pub(super) heard: Option<Moment>,
    /// It was cancelled, and the receipt of that if the client knew of the request; with the request on whose response it was.
    pub(super) taken_back: bool,
    pub(super) withdrawn: Option<(usize, Option<Id>)>,
    /// The client knows that it was.
    pub(super) silenced: bool,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallResult {
    Done(String),
    Failed(ErrorKind, Outcome),
    Dropped,
}

impl CallResult {
    /// What kind of end it is, for people.
    fn name(&self) -> String {
        match self {
            Self::Done(_) => "call: done".to_owned(),
            Self::Failed(kind, outcome) => format!("call: {kind:?}, {outcome:?}"),
            Self::Dropped => "call: dropped".to_owned(),
        }
    }

    pub(super) fn of(ended: Result<CallToolResult, Error>) -> Self {
        match ended {
            Ok(result) => {
                Self::Done(result.content.first().and_then(|content| content.as_text()).unwrap_or("").to_owned())
            }
            Err(error) => Self::Failed(error.kind(), error.outcome()),
        }
    }
}

/// A request as the client wrote it.
#[derive(Default)]
pub(super) struct RequestFacts {
    pub(super) kind: Kind,
    /// It has a task cancelled.
    pub(super) cancels_task: bool,
    /// It cancels a task or a subscription: such requests have limits of their own.
    pub(super) takes_back: bool,
    /// The connection that it was made on.
    pub(super) link: usize,
    pub(super) written: Moment,
    pub(super) cancelled: bool,
    /// Nobody waits for its response any more (HTTP).
    pub(super) given_up: bool,
    pub(super) answers: Vec<(Option<usize>, ResponseKind)>,
    /// An answer was read, and the client has had the time to look at it.
    pub(super) finished: bool,
    /// The state that the server sent with a request for input in place of a result.
    pub(super) state: Option<String>,
    pub(super) faults: Vec<Fault>,
    /// How often it was made again.
    pub(super) again: usize,
}

/// What a request is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Kind {
    Opening,
    Ping,
    Call,
    Task,
    Listen,
    /// Of the older revisions: to a resource, or not any more.
    Subscription,
    #[default]
    Other,
}

/// The content of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseKind {
    Result,
    Error,
    Unreadable,
    AskBack,
    /// Half of it.
    Torn,
    /// It goes on as a task.
    Task,
    /// The task goes on.
    TaskWorks,
    TaskCompleted,
    /// It is completed, and has no result.
    TaskEmpty,
    TaskFailed,
    TaskCancelled,
}

impl ResponseKind {
    /// Whether the call is over with it.
    pub(super) fn decides(self) -> bool {
        let of_task = matches!(self, Self::TaskEmpty | Self::TaskFailed | Self::TaskCancelled);
        self.is_result() || of_task || matches!(self, Self::Error | Self::Unreadable)
    }

    pub(super) fn is_result(self) -> bool {
        matches!(self, Self::Result | Self::TaskCompleted)
    }
}

/// What became of a request below the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It never reached the server.
    Unsent,
    Broken,
    Status(u16),
}

impl Facts {
    pub(super) fn broken(&mut self, law: Law, what: impl Into<String>) {
        self.record.broken(law, what);
    }

    /// Whether the client has given a connection up because its session is lost. It opens another at once, and what is read on the
    /// old one at that moment may be dropped. What was read before that was checked when nothing could run.
    pub(super) fn is_given_up(&self, link: usize) -> bool {
        self.returns && self.lost.contains(&link)
    }

    /// Whether no part of the program waits for the client.
    pub(super) fn is_idle(&self) -> bool {
        let calls = self.calls.values().all(|call| call.ended.is_some());
        let readings = self.cache.readings.values().all(|reading| reading.finished);
        calls && readings && self.listeners.values().all(|listener| listener.ended.is_some())
    }

    /// How much may wait for an answer, at most.
    pub(super) fn waiting(&self, now: Moment) -> usize {
        // One whose progress is a stream of its own goes on by itself, and may notice later that it was dropped.
        let calls = self.calls.values().filter(|call| call.ended.is_none() || call.hears).count();
        let readings = self.cache.readings.values().filter(|reading| !reading.finished).count();
        // On the older wires a subscribe request is awaited after its listener is gone: it must not arrive after
        // its unsubscribe. It is among the requests below once it has been written, and may be under way before. A listener has
        // several, one made after the other, and all of them again on the next connection.
        let is_made = |listener: &ListenerFacts| listener.is_subscribed() && !(self.returns && self.trouble);
        let listens = |listener: &&ListenerFacts| match listener.ended {
            Some(ended) => !self.modern && !is_made(listener) && now <= ended + SUBSCRIBING,
            None => true,
        };
        let listeners = self.listeners.values().filter(listens).count();
        let beside = |request: &&RequestFacts| {
            let waits = match request.kind {
                // Over HTTP a client asks whether the server is there, and opens anew, beside the calls that wait for that.
                Kind::Opening | Kind::Ping => request.faults.is_empty() && now <= request.written + OPENING,
                Kind::Task | Kind::Subscription => !request.takes_back,
                Kind::Call | Kind::Listen | Kind::Other => false,
            };
            // A call that is made between the arrival of an answer and its driver's next turn comes before the answer.
            waits && !request.cancelled && !request.given_up && !request.finished
        };
        calls + readings + listeners + self.requests.values().filter(beside).count()
    }
}

impl Journal {
    pub(super) fn new(executor: Executor, script: &Script, kept: bool) -> Arc<Self> {
        let plans = script.steps.iter().filter_map(|step| match &step.action {
            Action::Call(call) => Some((call.tag, call.clone())),
            _ => None,
        });
        let facts = Facts {
            record: Record::new(kept),
            transport_kind: script.transport_kind,
            modern: script.handshake.is_none(),
            most_calls: script.limits.calls,
            peak: 0,
            calls: BTreeMap::new(),
            reported: BTreeSet::new(),
            plans: plans.collect(),
            requests: BTreeMap::new(),
            keys: BTreeMap::new(),
            questions: BTreeMap::new(),
            tasks: BTreeMap::new(),
            left_behind: Vec::new(),
            may_go_on: 0,
            cancels_at_close: false,
            listeners: BTreeMap::new(),
            subscribed: BTreeSet::new(),
            cache: CacheFacts::default(),
            returns: script.returns,
            trouble: false,
            lost: BTreeSet::new(),
            closing: None,
            deaf_until: Moment::default(),
            shut: None,
            left: None,
            requesting: 0,
            opened: None,
            partial: BTreeMap::new(),
            counts: Counts::default(),
        };
        Arc::new(Self { executor, facts: Mutex::new(facts), transport: OnceLock::new() })
    }

    pub(super) fn set_transport(&self, transport: Arc<dyn TransportFacts>) {
        // It is set once, before anything runs.
        let _ = self.transport.set(transport);
    }

    pub(super) fn transport(&self) -> Option<&dyn TransportFacts> {
        self.transport.get().map(|transport| &**transport)
    }

    pub(super) fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, event: &'static str, number: u64, bytes: &[u8]) {
        let now = self.executor.now();
        self.facts().record.note(now, event, number, bytes);
    }

    /// From now on the client can see that a connection is over; and that is all, unless it reconnects.
    pub(super) fn lose(&self, event: &'static str) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.record.note(now, event, 0, b"");
        facts.trouble = true;
        if !facts.returns {
            facts.closing.get_or_insert(now);
        }
    }

    /// The client learns that the session of a connection is lost.
    pub(super) fn lose_session(&self, link: usize) {
        self.facts().lost.insert(link);
        self.lose("session lost");
    }

    /// The program closes the client.
    pub(super) fn close(&self) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.record.note(now, "close", 0, b"");
        facts.shut.get_or_insert(now);
        facts.closing.get_or_insert(now);
        if let Some(transport) = self.transport() {
            tasks::at_close(&mut facts, transport, now);
        }
    }

    /// The client is closed.
    pub(super) fn closed(&self) {
        self.note("closed", 0, b"");
        tasks::at_closed(&mut self.facts());
    }
}

/// The program's side.
impl Journal {
    pub(super) fn opened(&self, opened: Result<(), &Error>, compatible: bool) {
        let now = self.executor.now();
        let mut facts = self.facts();
        let text = opened.err().map(|error| format!("{error:?}")).unwrap_or_default();
        facts.record.note(now, "opened", u64::from(opened.is_ok()), text.as_bytes());
        facts.opened = Some(opened.map_err(Error::kind));
        coverage::ending(match opened {
            Ok(()) => "opening: done".to_owned(),
            Err(error) => format!("opening: {:?}, {:?}", error.kind(), error.outcome()),
        });
        checks::at_opening(&mut facts, compatible);
    }

    pub(super) fn began(&self, tag: u64, hears: bool) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.record.note(now, "call", tag, b"");
        let at_limit = facts.waiting(now) >= facts.most_calls;
        let call = CallFacts {
            began: now,
            ended: None,
            ids: Vec::new(),
            prolonged: false,
            executions: 0,
            at_limit,
            cancelled: false,
            progressed: 0.0,
            hears,
            tasks: Vec::new(),
            task: None,
            unwanted: None,
        };
        facts.calls.insert(tag, call);
        self.note_peak(&mut facts);
    }

    /// More waits than before.
    fn note_peak(&self, facts: &mut Facts) {
        facts.peak = facts.peak.max(facts.waiting(self.executor.now()));
    }

    pub(super) fn cancelled(&self, tag: u64) {
        self.note("cancelled", tag, b"");
        if let Some(call) = self.facts().calls.get_mut(&tag) {
            call.cancelled = true;
        }
    }

    /// There is no more progress to hear of.
    pub(super) fn progress_ended(&self, tag: u64) {
        self.note("heard out", tag, b"");
        if let Some(call) = self.facts().calls.get_mut(&tag) {
            call.hears = false;
        }
    }

    pub(super) fn reads(&self, reading: &Reading) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.record.note(now, "read", reading.number, &[b'0' + reading.resource]);
        facts.cache.at_reading(reading, now);
        self.note_peak(&mut facts);
    }

    pub(super) fn read(&self, number: u64, end: Result<Option<u64>, (ErrorKind, Outcome)>) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.record.note(now, "has read", number, format!("{end:?}").as_bytes());
        coverage::ending(match &end {
            Ok(_) => "reading: done".to_owned(),
            Err((kind, outcome)) => format!("reading: {kind:?}, {outcome:?}"),
        });
        if let Some(transport) = self.transport() {
            cache::at_read(&mut facts, transport, now, number, end);
        }
    }

    pub(super) fn listens(&self, listening: &Listening) {
        self.note("listen", listening.number, &[b'0' + listening.resource]);
        let mut facts = self.facts();
        facts.listeners.insert(listening.number, ListenerFacts::new(listening.resource));
        self.note_peak(&mut facts);
    }

    pub(super) fn heard(&self, number: u64, heard: &StreamItem, text: &str) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.record.note(now, "heard", number, text.as_bytes());
        changes::at_notification(&mut facts, number, heard);
    }

    pub(super) fn stopped_listening(&self, number: u64) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.record.note(now, "listened", number, b"");
        if let Some(listener) = facts.listeners.get_mut(&number) {
            listener.ended.get_or_insert(now);
        }
    }

    pub(super) fn progressed(&self, tag: u64, value: f64) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.record.note(now, "progress", tag, value.to_string().as_bytes());
        checks::at_progress(&mut facts, tag, value);
    }

    pub(super) fn ended(&self, tag: u64, end: CallResult) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.record.note(now, "ended", tag, format!("{end:?}").as_bytes());
        coverage::ending(end.name());
        let Some(call) = facts.calls.get_mut(&tag) else { return };
        if call.ended.is_some() {
            return facts.broken(Law::OneEnding, format!("call {tag} ended twice"));
        }
        call.ended = Some((now, end.clone()));
        if let Some(transport) = self.transport() {
            checks::at_end(&mut facts, transport, now, tag, &end);
        }
    }
}

/// The server's side.
impl Journal {
    /// The client has written some bytes of its stream.
    pub(super) fn wrote(&self, link: usize, bytes: &[u8]) {
        let lines = self.facts().partial.entry(link).or_default().push(bytes);
        for line in lines {
            self.wrote_message(link, &line);
        }
    }

    /// What a request is called here.
    pub(super) fn key(&self, link: usize, id: &Id) -> Id {
        self.facts().keys.get(&(link, id.clone())).unwrap_or(id).clone()
    }

    /// The client has written a message. Returns it, if it is one.
    pub(super) fn wrote_message(&self, link: usize, bytes: &[u8]) -> Option<Value> {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.record.note(now, "->", 0, bytes);
        facts.counts.messages += 1;
        let Ok(message) = serde_json::from_slice::<Value>(bytes) else {
            facts.broken(Law::Order, "the client wrote what is no message");
            return None;
        };
        match (id_text(&message["id"]), message["method"].as_str()) {
            (Some(id), Some(method)) => checks::at_request(&mut facts, now, link, id, method, &message["params"]),
            (None, Some("notifications/cancelled")) => {
                checks::at_cancellation(&mut facts, link, &message["params"]);
            }
            (Some(id), None) => checks::at_answer(&mut facts, &id),
            _ => {}
        }
        drop(facts);
        Some(message)
    }

    /// The server begins a call.
    pub(super) fn executes(&self, tag: u64) {
        let mut facts = self.facts();
        if let Some(call) = facts.calls.get_mut(&tag) {
            call.executions += 1;
            let twice = call.executions > 1;
            if twice && !facts.plans.get(&tag).is_some_and(|plan| plan.idempotent) {
                facts.broken(Law::Outcome, format!("call {tag} was made twice"));
            }
        }
    }

    /// The server reports the progress of a call.
    pub(super) fn reports(&self, tag: u64, progress: u64) {
        self.prolonged(tag);
        self.facts().reported.insert((tag, progress.to_string()));
    }

    pub(super) fn prolonged(&self, tag: u64) {
        if let Some(call) = self.facts().calls.get_mut(&tag) {
            call.prolonged = true;
        }
    }

    /// The server has answered.
    pub(super) fn answered(&self, id: &Id, receipt: Option<usize>, said: ResponseKind) {
        if let Some(request) = self.facts().requests.get_mut(id) {
            request.answers.push((receipt, said));
        }
    }

    /// The server has asked.
    pub(super) fn asked(&self, id: &Id, within: Option<Id>, receipt: Option<usize>, early: bool) {
        let question = QuestionFacts {
            within,
            receipt,
            early,
            answers: 0,
            heard: None,
            taken_back: false,
            withdrawn: None,
            silenced: false,
        };
        self.facts().questions.insert(id.clone(), question);
    }

    /// The server cancels a request of its own, on the response to a request if that is named.
    pub(super) fn withdrawn(&self, id: &Id, within: Option<Id>, receipt: Option<usize>) {
        let read = |receipt: usize| self.transport().is_some_and(|transport| transport.was_read(receipt));
        let mut facts = self.facts();
        let kind = facts.transport_kind;
        if let Some(question) = facts.questions.get_mut(id) {
            question.taken_back = true;
            // Over HTTP each response is read by itself, and what comes on another than the question may overtake it, also when
            // both have been read.
            let behind = within.is_some() && within == question.within;
            let known = match kind {
                TransportKind::Stream => question.receipt.is_some_and(read),
                TransportKind::Http => behind || question.heard.is_some(),
            };
            question.withdrawn = receipt.filter(|_| known).map(|receipt| (receipt, within));
        }
    }

    /// The server asks back, in place of a result.
    pub(super) fn asked_back(&self, tag: u64, request: &Id, state: &str) {
        self.prolonged(tag);
        // Messages after a response are ignored.
        if let Some(request) = self.facts().requests.get_mut(request).filter(|request| request.answers.is_empty()) {
            request.state = Some(state.to_owned());
        }
    }

    pub(super) fn fault(&self, id: Option<&Id>, fault: Fault) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.record.note(now, "fault", 0, format!("{id:?} {fault:?}").as_bytes());
        if let Some(request) = id.and_then(|id| facts.requests.get_mut(id)) {
            request.faults.push(fault);
        }
    }

    pub(super) fn given_up(&self, id: &Id) {
        if let Some(request) = self.facts().requests.get_mut(id) {
            request.given_up = true;
        }
    }
}
