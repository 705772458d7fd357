//! What the program does with its client.

use steadfast::{Error, ErrorKind, Outcome};

use super::Journal;
use super::calls::{CallFacts, CallResult};
use super::facts::Facts;
use crate::client::checks;
use crate::client::checks::cache;
use crate::client::checks::changes::{self, ListenerFacts, StreamItem};
use crate::client::script::{Listening, Reading};
use crate::coverage;
use crate::law::Law;

/// The program's side.
impl Journal {
    pub(in crate::client) fn opened(&self, opened: Result<(), &Error>, compatible: bool) {
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

    pub(in crate::client) fn began(&self, tag: u64, hears: bool) {
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

    pub(in crate::client) fn cancelled(&self, tag: u64) {
        self.note("cancelled", tag, b"");
        if let Some(call) = self.facts().calls.get_mut(&tag) {
            call.cancelled = true;
        }
    }

    /// There is no more progress to hear of.
    pub(in crate::client) fn progress_ended(&self, tag: u64) {
        self.note("heard out", tag, b"");
        if let Some(call) = self.facts().calls.get_mut(&tag) {
            call.hears = false;
        }
    }

    pub(in crate::client) fn reads(&self, reading: &Reading) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.record.note(now, "read", reading.number, &[b'0' + reading.resource]);
        facts.cache.at_reading(reading, now);
        self.note_peak(&mut facts);
    }

    pub(in crate::client) fn read(&self, number: u64, end: Result<Option<u64>, (ErrorKind, Outcome)>) {
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

    pub(in crate::client) fn listens(&self, listening: &Listening) {
        self.note("listen", listening.number, &[b'0' + listening.resource]);
        let mut facts = self.facts();
        facts.listeners.insert(listening.number, ListenerFacts::new(listening.resource));
        self.note_peak(&mut facts);
    }

    pub(in crate::client) fn received(&self, number: u64, item: &StreamItem, text: &str) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.record.note(now, "heard", number, text.as_bytes());
        changes::at_notification(&mut facts, number, item);
    }

    pub(in crate::client) fn stopped_listening(&self, number: u64) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.record.note(now, "listened", number, b"");
        if let Some(listener) = facts.listeners.get_mut(&number) {
            listener.ended.get_or_insert(now);
        }
    }

    pub(in crate::client) fn progressed(&self, tag: u64, value: f64) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.record.note(now, "progress", tag, value.to_string().as_bytes());
        checks::at_progress(&mut facts, tag, value);
    }

    pub(in crate::client) fn ended(&self, tag: u64, end: CallResult) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.record.note(now, "ended", tag, format!("{end:?}").as_bytes());
        coverage::ending(end.name());
        let Some(call) = facts.calls.get_mut(&tag) else { return };
        if call.ended.is_some() {
            return facts.broken(Law::OneEnding, format!("call {tag}: expected one end, observed a second"));
        }
        call.ended = Some((now, end.clone()));
        if let Some(transport) = self.transport() {
            checks::at_end(&mut facts, transport, now, tag, &end);
        }
    }
}
