//! The books on the peer's requests: which are open, which are silenced, and which answers the peer is still owed.

use std::collections::BTreeMap;

use serde::Deserialize;
use steadfast_model::{Method, ProgressParams, ProgressToken, RequestId};
use steadfast_proto::Moment;
use steadfast_proto::connection::{CancelReason, Connection, InboundRequestKey, Request};

use super::frame::{Frame, Tag};

#[derive(Debug, Clone, Default)]
pub(super) struct Ledger {
    now: Moment,
    /// Every request that was ever started, in order.
    requests: Vec<Entry>,
    /// Answers that are to come on the wire, by the id that they are owed under.
    owed: BTreeMap<RequestId, usize>,
    /// Errors that are to come without an id.
    owed_without_id: usize,
}

#[derive(Debug, Clone)]
struct Entry {
    key: InboundRequestKey,
    id: RequestId,
    token: Option<RequestId>,
    bytes: usize,
    started: Moment,
    /// It has no deadline.
    lasts: bool,
    /// It is a `subscriptions/listen`.
    subscribes: bool,
    /// Its acknowledgement was queued.
    acknowledged: bool,
    state: State,
    /// Its execution has not ended.
    live: bool,
    stopped: bool,
    /// It is a subscription that the connection has ended, and the cancellation that says so is to come.
    cancellation_due: bool,
    /// The last progress that went out.
    reported: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its handler may answer.
    Open,
    /// Its answer was given, and is not on the wire yet.
    Answering,
    /// It was cancelled: nothing more may be heard of it.
    Silenced,
    /// Its answer is on the wire.
    Done,
}

impl Entry {
    /// Whether anything about it may be on the wire, or on its way there.
    fn may_speak(&self) -> bool {
        matches!(self.state, State::Open | State::Answering)
    }

    fn assert_may_speak(&self) {
        assert!(self.may_speak(), "spoke when it should be silent: {self:?}");
    }

    fn reports_under(&self, token: &RequestId) -> bool {
        self.may_speak() && self.token.as_ref() == Some(token)
    }
}

/// What the peer is entitled to.
impl Ledger {
    pub(super) fn start(&mut self, request: &Request) {
        assert!(!self.is_open(&request.id), "started although its id is in flight: {request:?}");
        *self.owed.entry(request.id.clone()).or_default() += 1;
        self.requests.push(Entry {
            key: request.key,
            id: request.id.clone(),
            token: request.progress_token.clone().map(ProgressToken::into_id),
            bytes: request.params.text().len(),
            started: self.now,
            lasts: matches!(request.method, Method::Listen | Method::GetTaskPayload),
            subscribes: request.method == Method::Listen,
            acknowledged: false,
            state: State::Open,
            live: true,
            stopped: false,
            cancellation_due: false,
            reported: f64::NEG_INFINITY,
        });
    }

    /// The acknowledgement of a subscription was queued.
    pub(super) fn acknowledge(&mut self, key: InboundRequestKey) {
        self.requests.iter_mut().filter(|entry| entry.key == key).for_each(|entry| entry.acknowledged = true);
    }

    pub(super) fn owe(&mut self, id: RequestId) {
        *self.owed.entry(id).or_default() += 1;
    }

    pub(super) fn owe_without_id(&mut self) {
        self.owed_without_id += 1;
    }

    /// The request that is open under that id may not be heard of any more, if `applies` to it.
    pub(super) fn silence(&mut self, id: &RequestId, applies: impl FnOnce(InboundRequestKey) -> bool) {
        let open = self.requests.iter_mut().find(|entry| entry.state == State::Open && entry.id == *id);
        if let Some(entry) = open.filter(|entry| applies(entry.key)) {
            entry.state = State::Silenced;
            self.take_from_owed(id);
        }
    }

    pub(super) fn is_open(&self, id: &RequestId) -> bool {
        self.requests.iter().any(|entry| entry.state == State::Open && entry.id == *id)
    }
}

/// What became of requests.
impl Ledger {
    /// The handler answered, or its execution ended: if it was open, its answer is on its way.
    pub(super) fn answer(&mut self, key: InboundRequestKey) {
        let entry = self.entry(key);
        if entry.state == State::Open {
            entry.state = State::Answering;
        }
    }

    pub(super) fn end(&mut self, key: InboundRequestKey) {
        self.answer(key);
        self.entry(key).live = false;
    }

    /// The connection tells an execution to stop.
    pub(super) fn stop(&mut self, key: InboundRequestKey, reason: CancelReason) {
        let entry = self.entry(key);
        assert!(entry.live && !entry.stopped, "stopped twice, or after its end: {entry:?}");
        entry.stopped = true;
        // Only a cancellation silences, and what it silenced was stopped then; everything else stops who is still at work.
        let cancelled = reason == CancelReason::Peer;
        assert_eq!(entry.state == State::Silenced, cancelled, "stopped ({reason}): {entry:?}");
        // One that was not acknowledged is refused, and its peer needs no more than the error.
        entry.cancellation_due = entry.subscribes && entry.acknowledged && entry.state == State::Open;
        self.answer(key);
    }

    /// Time has passed, and deadlines were handled.
    pub(super) fn tick(&mut self, now: Moment, deadline: Option<std::time::Duration>) {
        self.now = now;
        let Some(deadline) = deadline else { return };
        for entry in self.open().filter(|entry| !entry.lasts) {
            assert!(entry.started + deadline > now, "open past its deadline: {entry:?}");
        }
    }

    /// A message that is no call of ours is on the wire.
    pub(super) fn wrote(&mut self, frame: &Frame) {
        match frame.method.as_deref() {
            Some("notifications/progress") => self.wrote_progress(&frame.params()),
            Some("notifications/message") => {
                let place = log_tag(frame);
                self.requests[place].assert_may_speak();
            }
            Some(_) => {}
            None => self.wrote_answer(frame),
        }
    }

    fn wrote_answer(&mut self, frame: &Frame) {
        let Some(id) = &frame.id else {
            let left = self.owed_without_id.checked_sub(1);
            self.owed_without_id = left.unwrap_or_else(|| panic!("nothing was refused: {frame:?}"));
            return;
        };
        let left = self.take_from_owed(id);
        if let Some(place) = frame.tag() {
            let entry = &mut self.requests[place];
            assert_eq!(
                (&entry.id, entry.state),
                (id, State::Answering),
                "the answer of a request that gave none: {entry:?}"
            );
            entry.state = State::Done;
        } else if frame.ends_subscription() {
            let ended = |entry: &&mut Entry| entry.cancellation_due && entry.may_speak() && entry.id == *id;
            let entry = self.requests.iter_mut().find(ended);
            entry.unwrap_or_else(|| panic!("the end of a subscription that goes on: {frame:?}")).state = State::Done;
        }
        if left == 0 {
            // The errors that the connection itself answers with do not say which request they are for.
            let answering = self.requests.iter_mut().filter(|entry| entry.state == State::Answering && entry.id == *id);
            answering.for_each(|entry| entry.state = State::Done);
        }
    }

    /// A cancellation is on the wire. Returns whether it is of a subscription that the connection has ended: on a stream of
    /// bytes, one cancellation follows the result (docs/wire.md, "Subscriptions"). A subscription that the peer cancelled,
    /// or that its handler answered, has none.
    pub(super) fn wrote_cancelled(&mut self, id: &RequestId) -> bool {
        let due = |entry: &&mut Entry| entry.cancellation_due && entry.state == State::Done && entry.id == *id;
        let entry = self.requests.iter_mut().find(due);
        entry.map(|entry| entry.cancellation_due = false).is_some()
    }

    fn wrote_progress(&mut self, progress: &ProgressParams) {
        let token = progress.progress_token.as_id();
        let mut speakers: Vec<&mut Entry> =
            self.requests.iter_mut().filter(|entry| entry.reports_under(token)).collect();
        assert!(!speakers.is_empty(), "progress of no request that may speak: {progress:?}");
        if let [entry] = speakers.as_mut_slice() {
            assert!(progress.progress > entry.reported, "progress does not go back: {progress:?}");
            entry.reported = progress.progress;
        }
    }

    /// Takes an answer from what is owed, and says how many are left under that id.
    fn take_from_owed(&mut self, id: &RequestId) -> usize {
        let owed = self.owed.get_mut(id).filter(|owed| **owed > 0);
        let owed = owed.unwrap_or_else(|| panic!("answered once too often: {id}"));
        *owed -= 1;
        *owed
    }
}

/// What has to hold.
impl Ledger {
    /// The tables agree, and are within their limits.
    pub(super) fn assert_agrees(&self, connection: &Connection) {
        assert_eq!(connection.open_requests(), self.open().count(), "open requests");
        for entry in &self.requests {
            assert_eq!(connection.is_open(entry.key), entry.state == State::Open, "{entry:?}");
        }
        let live = self.requests.iter().filter(|entry| entry.live);
        assert_eq!(connection.live_executions(), live.clone().count(), "live executions");
        let limits = connection.limits();
        assert!(connection.live_executions() <= limits.in_flight, "more executions than the limit");
        assert!(
            live.map(|entry| entry.bytes).sum::<usize>() <= limits.in_flight_bytes,
            "more bytes in flight than the limit"
        );
    }

    /// What waits to be written is about requests that may speak, and is no flood.
    pub(super) fn assert_may_wait(&self, frames: &[Frame], most_logs: usize) {
        let mut logs: BTreeMap<usize, usize> = BTreeMap::new();
        let mut tokens: Vec<RequestId> = Vec::new();
        for frame in frames {
            match frame.method.as_deref() {
                Some("notifications/message") => {
                    let place = log_tag(frame);
                    self.requests[place].assert_may_speak();
                    *logs.entry(place).or_default() += 1;
                }
                Some("notifications/progress") => tokens.push(frame.params::<ProgressParams>().progress_token.into_id()),
                _ => {}
            }
        }
        assert!(logs.values().all(|waiting| *waiting <= most_logs), "more log messages wait than the limit");
        for token in &tokens {
            let speakers = self.requests.iter().filter(|entry| entry.reports_under(token));
            let waiting = tokens.iter().filter(|other| *other == token).count();
            assert!(waiting <= speakers.count(), "more progress waits under {token} than requests may report");
        }
    }

    /// Everything was written: behind each subscription that the connection ended, its cancellation too.
    pub(super) fn assert_cancellations_told(&self) {
        let untold = self.requests.iter().find(|entry| entry.cancellation_due && entry.state == State::Done);
        assert!(untold.is_none(), "a subscription that ended without a cancellation: {untold:?}");
    }

    /// Every answer that was owed has been given.
    pub(super) fn assert_settled(&self) {
        let owed: Vec<_> = self.owed.iter().filter(|(_, owed)| **owed > 0).collect();
        assert!(owed.is_empty(), "answers that never came: {owed:?}");
        assert_eq!(self.owed_without_id, 0, "errors without an id that never came");
    }
}

/// Who is there.
impl Ledger {
    /// A request to do something with: first those whose execution is live, then those that are over.
    pub(super) fn pick(&self, which: u8) -> Option<(usize, InboundRequestKey, RequestId)> {
        let places = |live: bool| (0..).zip(&self.requests).filter(move |(_, entry)| entry.live == live);
        let (place, entry) = places(true).chain(places(false)).nth(usize::from(which))?;
        Some((place, entry.key, entry.id.clone()))
    }

    pub(super) fn knows(&self, key: InboundRequestKey) -> bool {
        self.requests.iter().any(|entry| entry.key == key)
    }

    pub(super) fn live_keys(&self) -> Vec<InboundRequestKey> {
        self.requests.iter().filter(|entry| entry.live).map(|entry| entry.key).collect()
    }

    /// How many answers are to come, those that wait in an open batch too.
    pub(super) fn owed(&self) -> usize {
        self.owed.values().sum::<usize>() + self.owed_without_id
    }

    fn open(&self) -> impl Iterator<Item = &Entry> {
        self.requests.iter().filter(|entry| entry.state == State::Open)
    }

    fn entry(&mut self, key: InboundRequestKey) -> &mut Entry {
        let entry = self.requests.iter_mut().find(|entry| entry.key == key);
        entry.unwrap_or_else(|| panic!("{key} was never started"))
    }
}

fn log_tag(frame: &Frame) -> usize {
    #[derive(Deserialize)]
    struct Log {
        data: Tag,
    }
    frame.params::<Log>().data.request
}
