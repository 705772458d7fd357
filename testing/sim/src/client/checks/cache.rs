//! Cached results: none is used past its time, nor after a notification that it has changed.

use std::collections::BTreeMap;
use std::time::Duration;

use steadfast::{ErrorKind, Outcome};
use steadfast_proto::Moment;

use super::SLACK;
use crate::client::TransportKind;
use crate::client::journal::{Facts, TransportFacts};
use crate::client::script::Reading;
use crate::law::Law;

/// Versions of resources, and which notifications were delivered.
#[derive(Default)]
pub(in crate::client) struct CacheFacts {
    versions: BTreeMap<u8, u64>,
    /// The number of the last change of all.
    last: u64,
    /// The versions that the program was notified of: it must not read anything older.
    known: BTreeMap<u8, u64>,
    /// The versions that there were when listeners were agreed to, in order.
    acknowledged: BTreeMap<u64, Vec<u64>>,
    answers: BTreeMap<u64, AnswerFacts>,
    pub(in crate::client) readings: BTreeMap<u64, ReadingFacts>,
    /// Readings that were served from the cache.
    pub(in crate::client) spared: u64,
    /// The newest connection on which the client has asked for something.
    pub(in crate::client) newest: usize,
}

/// What the server has answered.
struct AnswerFacts {
    resource: u8,
    version: u64,
    lasts: Duration,
    /// When the client asked, and on which connection.
    asked: Moment,
    link: usize,
    receipt: Option<usize>,
}

/// The program reads a resource.
pub(in crate::client) struct ReadingFacts {
    plan: Reading,
    began: Moment,
    pub(in crate::client) finished: bool,
    /// What was known then.
    known: u64,
    newest: usize,
}

impl CacheFacts {
    pub(in crate::client) fn version(&self, resource: u8) -> u64 {
        self.versions.get(&resource).copied().unwrap_or_default()
    }

    /// A resource changes. Returns the number of the change.
    pub(in crate::client) fn change(&mut self, resource: u8) -> u64 {
        self.last += 1;
        self.versions.insert(resource, self.last);
        self.last
    }

    pub(super) fn at_acknowledgement(&mut self, listener: u64, version: u64) {
        self.acknowledged.entry(listener).or_default().push(version);
    }

    /// A listener was reported as subscribed, for this number of times: from there on it sees at least the version of then.
    pub(super) fn at_listening(&mut self, listener: u64, times: usize, resource: u8) {
        let then = self.acknowledged.get(&listener).and_then(|versions| versions.get(times.checked_sub(1)?));
        if let Some(version) = then.copied() {
            self.at_change(resource, version);
        }
    }

    pub(super) fn at_change(&mut self, resource: u8, version: u64) {
        let known = self.known.entry(resource).or_default();
        *known = version.max(*known);
    }

    pub(in crate::client) fn at_reading(&mut self, plan: &Reading, now: Moment) {
        let known = self.known.get(&plan.resource).copied().unwrap_or_default();
        let reading = ReadingFacts { plan: plan.clone(), began: now, finished: false, known, newest: self.newest };
        self.readings.insert(plan.number, reading);
    }

    /// The server answers. Returns the number of the answer.
    pub(in crate::client) fn next_answer(&self) -> u64 {
        u64::try_from(self.answers.len()).unwrap_or(u64::MAX)
    }

    pub(in crate::client) fn at_answer(
        &mut self,
        number: u64,
        resource: u8,
        lasts: Duration,
        (asked, link): (Moment, usize),
        receipt: Option<usize>,
    ) {
        let version = self.version(resource);
        self.answers.insert(number, AnswerFacts { resource, version, lasts, asked, link, receipt });
    }
}

/// A reading has ended with that answer, or with an error.
pub(in crate::client) fn at_read(
    facts: &mut Facts,
    transport: &dyn TransportFacts,
    now: Moment,
    number: u64,
    end: Result<Option<u64>, (ErrorKind, Outcome)>,
) {
    let Some(reading) = facts.cache.readings.get_mut(&number) else { return };
    reading.finished = true;
    let took = now.since(reading.began);
    if took > reading.plan.total + SLACK {
        return facts.broken(
            Law::Answer,
            format!("read {number}: expected an end within its total timeout, observed {took:?}"),
        );
    }
    let answer = match end {
        Ok(Some(answer)) => answer,
        Ok(None) => {
            return facts
                .broken(Law::Outcome, format!("read {number}: expected a value of the server, observed another"));
        }
        Err((ErrorKind::TimedOut, _)) if took < reading.plan.total => {
            return facts.broken(
                Law::Outcome,
                format!("read {number}: expected a timeout at its deadline, observed one after {took:?}"),
            );
        }
        Err(_) => return,
    };
    if let Some(what) = lie(facts, transport, number, answer) {
        facts.broken(Law::Outcome, what);
    }
}

/// What is wrong with an answer that was given to a reading.
fn lie(facts: &mut Facts, transport: &dyn TransportFacts, number: u64, answer: u64) -> Option<String> {
    let (modern, kind) = (facts.modern, facts.transport_kind);
    let cache = &mut facts.cache;
    let (reading, source) = (cache.readings.get(&number)?, cache.answers.get(&answer)?);
    if reading.plan.resource != source.resource || !source.receipt.is_some_and(|receipt| transport.was_read(receipt)) {
        return Some(format!(
            "read {number}: expected a response for its resource that was read, observed response {answer}"
        ));
    }
    // A read that began before the request was sent may have sent it.
    if reading.began <= source.asked {
        return None;
    }
    cache.spared += 1;
    if !modern || reading.plan.fresh {
        return Some(format!("read {number}: expected a fresh response, observed the cached response {answer}"));
    }
    let age = reading.began.since(source.asked);
    if age >= source.lasts {
        return Some(format!(
            "read {number}: expected no expired response, observed age {age:?} with a ttl of {:?}",
            source.lasts
        ));
    }
    if source.version < reading.known {
        let (version, known) = (source.version, reading.known);
        return Some(format!("read {number}: expected version {known} or later, observed {version}"));
    }
    // Over HTTP a request does not show whether the server is still connected.
    if source.link < reading.newest && kind == TransportKind::Stream {
        return Some(format!("read {number}: expected no response of a lost connection, observed response {answer}"));
    }
    None
}

/// Nothing can run: a reading that has no more time is over.
pub(super) fn at_idle(facts: &mut Facts, now: Moment, over: bool) {
    let late = facts
        .cache
        .readings
        .iter()
        .find(|(_, reading)| !reading.finished && (over || now.since(reading.began) > reading.plan.total + SLACK));
    if let Some((number, _)) = late {
        let what = format!("read {number}: expected an end, observed it open");
        facts.broken(if over { Law::Closing } else { Law::Answer }, what);
    }
}
