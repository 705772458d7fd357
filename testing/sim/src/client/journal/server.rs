//! What the server reads and writes.

use super::Journal;
use super::requests::{Fault, QuestionFacts, ResponseKind};
use crate::client::{TransportKind, checks};
use crate::law::Law;
use crate::observation::json::Json;
use crate::observation::message::{Id, id_text};

/// The server's side.
impl Journal {
    /// The client has written some bytes of its stream.
    pub(in crate::client) fn wrote(&self, link: usize, bytes: &[u8]) {
        let lines = self.facts().partial.entry(link).or_default().push(bytes);
        for line in lines {
            self.wrote_message(link, &line);
        }
    }

    /// What a request is called here.
    pub(in crate::client) fn key(&self, link: usize, id: &Id) -> Id {
        self.facts().keys.get(&(link, id.clone())).unwrap_or(id).clone()
    }

    /// The client has written a message. Returns it, if it is one.
    pub(in crate::client) fn wrote_message<'a>(&self, link: usize, bytes: &'a [u8]) -> Option<Json<'a>> {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.record.note(now, "->", 0, bytes);
        facts.counts.messages += 1;
        let Some(message) = Json::read(bytes) else {
            facts.broken(Law::Order, "expected a JSON message from the client, observed other bytes");
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
    pub(in crate::client) fn executes(&self, tag: u64) {
        let mut facts = self.facts();
        if let Some(call) = facts.calls.get_mut(&tag) {
            call.executions += 1;
            let twice = call.executions > 1;
            if twice && !facts.plans.get(&tag).is_some_and(|plan| plan.idempotent) {
                facts.broken(
                    Law::Outcome,
                    format!("call {tag}: expected one execution of a call that is not idempotent, observed a second"),
                );
            }
        }
    }

    /// The server reports the progress of a call.
    pub(in crate::client) fn reports(&self, tag: u64, progress: u64) {
        self.prolonged(tag);
        self.facts().reported.insert((tag, progress.to_string()));
    }

    pub(in crate::client) fn prolonged(&self, tag: u64) {
        if let Some(call) = self.facts().calls.get_mut(&tag) {
            call.prolonged = true;
        }
    }

    /// The server has answered.
    pub(in crate::client) fn answered(&self, id: &Id, receipt: Option<usize>, said: ResponseKind) {
        if let Some(request) = self.facts().requests.get_mut(id) {
            request.answers.push((receipt, said));
        }
    }

    /// The server has asked.
    pub(in crate::client) fn asked(&self, id: &Id, within: Option<Id>, receipt: Option<usize>, early: bool) {
        let question = QuestionFacts {
            within,
            receipt,
            early,
            answers: 0,
            processed_at: None,
            taken_back: false,
            withdrawn: None,
            silenced: false,
        };
        self.facts().questions.insert(id.clone(), question);
    }

    /// The server cancels a request of its own, on the response to a request if that is named.
    pub(in crate::client) fn withdrawn(&self, id: &Id, within: Option<Id>, receipt: Option<usize>) {
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
                TransportKind::Http => behind || question.processed_at.is_some(),
            };
            question.withdrawn = receipt.filter(|_| known).map(|receipt| (receipt, within));
        }
    }

    /// The server asks back, in place of a result.
    pub(in crate::client) fn asked_back(&self, tag: u64, request: &Id, state: &str) {
        self.prolonged(tag);
        // Messages after a response are ignored.
        if let Some(request) = self.facts().requests.get_mut(request).filter(|request| request.answers.is_empty()) {
            request.state = Some(state.to_owned());
        }
    }

    pub(in crate::client) fn fault(&self, id: Option<&Id>, fault: Fault) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.record.note(now, "fault", 0, format!("{id:?} {fault:?}").as_bytes());
        if let Some(request) = id.and_then(|id| facts.requests.get_mut(id)) {
            request.faults.push(fault);
        }
    }

    pub(in crate::client) fn given_up(&self, id: &Id) {
        if let Some(request) = self.facts().requests.get_mut(id) {
            request.given_up = true;
        }
    }
}
