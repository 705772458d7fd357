//! Requests of the peer's.
//!
//! ```text
//!   accepted --> Running --+--> Answered          respond, deadline, end of the drain window, an execution that ends
//!                          |                      without an answer
//!                          +--> CancelledByPeer   see cancel.rs
//!                          +--> Closed            the connection ended first
//! ```
//!
//! An entry of `inbound` is a request that is Running; whatever ends it takes the entry out. Its execution is another life:
//! it begins with the request and ends when the handler, its shields and its cleanups have really ended, which may be
//! later. Limits count executions, so that cancelled work that goes on is still counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use steadfast_model::error::excerpt;
use steadfast_model::{ErrorObject, Method, ProgressToken, RequestId};

use super::batch::BatchKey;
use super::event::{CancelReason, Event, Peer, ProtocolWarning, Request};
use super::handshake::{Hello, Wire};
use super::key::Key;
use super::outbox::Ticket;
use super::progress::Reported;
use super::timer::Purpose;
use super::{Connection, Stage};
use crate::Moment;
use crate::coverage::{self, Effect, Input};
use crate::encode::Answer;
use crate::envelope::Params;

/// A request that is running.
#[derive(Debug, Clone)]
pub(super) struct Inbound {
    pub(super) key: Key,
    pub(super) method: Method,
    pub(super) peer: Arc<Peer>,
    pub(super) batch: Option<BatchKey>,
    pub(super) deadline: Option<Moment>,
    pub(super) progress_token: Option<ProgressToken>,
    pub(super) progress: Reported,
    /// The level that the request itself asked for (2026-07-28).
    pub(super) log_level: Option<steadfast_model::LoggingLevel>,
    /// Log messages of it that may still wait in the outbox.
    pub(super) logs: Vec<Ticket>,
    /// Other notifications of it that may still wait, so that one is not queued twice.
    pub(super) notices: BTreeMap<(Method, Box<str>), Ticket>,
    /// It is a subscription, and its acknowledgement was queued.
    pub(super) acknowledged: bool,
}

impl Inbound {
    /// Its notifications that may still wait in the outbox.
    pub(super) fn tickets(&self) -> impl Iterator<Item = Ticket> {
        self.logs.iter().copied().chain(self.progress.queued()).chain(self.notices.values().copied())
    }
}

/// Commands.
impl Connection {
    /// Answers a request. If it has ended already, the answer is dropped and counted: that is not an error (L4).
    pub fn respond(&mut self, now: Moment, key: Key, answer: Answer) {
        self.cover(Input::Respond);
        if !self.is_open(key) {
            #[cfg(mutants)]
            assert!(!crate::mutant!(PanicOnLateAnswer), "an answer to a request that is not open");
            self.statistics.late_answers += 1;
            self.odd(ProtocolWarning::LateAnswer(key));
            return;
        }
        self.flush_progress(now, key);
        #[cfg(mutants)]
        if crate::mutant!(AnswerTwice) {
            self.commit(answer.clone().into_bytes(), None, Some(key));
        }
        self.end_answered(key, answer);
        self.settle();
    }

    /// The key of the request that is open under this id.
    pub fn key_of(&self, id: &RequestId) -> Option<Key> {
        self.inbound.get(id).map(|inbound| inbound.key)
    }

    /// Whether a request is still open.
    pub fn is_open(&self, key: Key) -> bool {
        self.running(key).is_some()
    }
}

impl Connection {
    pub(super) fn take_request(
        &mut self,
        now: Moment,
        id: RequestId,
        method: &str,
        params: &Params<'_>,
        batch: Option<BatchKey>,
    ) {
        if self.ignores_requests() {
            self.statistics.refused += 1;
            let why = format!("a server of this revision sends no requests, and this one sent {}", excerpt(method));
            return self.odd(ProtocolWarning::Refused { id: Some(id), why });
        }
        if self.inbound.contains_key(&id) && !crate::mutant!(AcceptDuplicateId) {
            coverage::effect(Effect::DuplicateId);
            let error = ErrorObject::invalid_request("a request with this id is still in flight");
            self.statistics.refused += 1;
            self.odd(ProtocolWarning::Refused { id: Some(id.clone()), why: error.message.clone().into_owned() });
            return self.refuse_without_id(id, error, batch);
        }
        let accepted = self.wire_of(method, params).and_then(|wire| {
            if batch.is_some() && wire.peer.revision.is_stateless() {
                // A subscription, for one, would keep the answers of all the others until it ends.
                return Err(ErrorObject::invalid_request("batches exist in revision 2025-03-26 only"));
            }
            let method = self.gate(method, &wire)?;
            Ok((wire, method))
        });
        let answer = match accepted {
            Ok((wire, method)) => match self.answer_itself(&id, method, params, &wire) {
                Some(answer) => answer,
                None => match self.admit(method, params) {
                    Ok(()) => return self.start(now, id, method, params, wire, batch),
                    Err(error) => {
                        coverage::effect(Effect::NotAdmitted);
                        Answer::error(&id, &error)
                    }
                },
            },
            Err(error) => Answer::error(&id, &error),
        };
        self.commit(answer.into_bytes(), batch, None);
    }

    /// Refuses a message under no id, and names the id that it has in the data of the error: under that id the error would be
    /// read as the answer of another request, one that is in flight or one that the peer has just sent.
    pub(super) fn refuse_without_id(&mut self, id: RequestId, error: ErrorObject, batch: Option<BatchKey>) {
        coverage::effect(Effect::RefusedWithoutId);
        let error = error.with_data(serde_json::json!({ "id": id }));
        self.commit(crate::encode::error_without_id(&error, self.writes_null_id()), batch, None);
    }

    /// Whether there is room for another execution.
    fn admit(&self, method: Method, params: &Params<'_>) -> Result<(), ErrorObject> {
        if crate::mutant!(IgnoreLimit) {
            return Ok(());
        }
        if matches!(self.stage, Stage::Draining(_)) && !self.drains_for_peer() {
            return Err(ErrorObject::internal("shutting down: no new requests are taken"));
        }
        if method == Method::Listen {
            self.admit_subscription()?;
        }
        let limit = self.limits.in_flight;
        if self.executions.len() >= limit {
            let message =
                format!("{limit} requests are in flight, which is the limit; send it again when one has ended");
            return Err(
                ErrorObject::internal(message).with_data(serde_json::json!({ "limit": limit, "retryable": true }))
            );
        }
        if self.held_bytes + params.text().len() > self.limits.in_flight_bytes {
            let limit = self.limits.in_flight_bytes;
            let message =
                format!("requests in flight hold {limit} bytes, which is the limit; send it again when one has ended");
            return Err(
                ErrorObject::internal(message).with_data(serde_json::json!({ "limit": limit, "retryable": true }))
            );
        }
        Ok(())
    }

    /// The peer has closed its end, and what it sent before that is still served.
    fn drains_for_peer(&self) -> bool {
        self.stage.drain().is_some_and(|drain| drain.cause == super::CloseCause::PeerClosed && drain.window.is_some())
    }

    fn start(
        &mut self,
        now: Moment,
        id: RequestId,
        method: Method,
        params: &Params<'_>,
        wire: Wire,
        batch: Option<BatchKey>,
    ) {
        let key = Key(self.next_key);
        self.next_key += 1;
        // A subscription lives as long as its connection.
        let lasts = matches!(method, Method::Listen | Method::GetTaskPayload);
        let deadline = self.limits.handler_deadline.filter(|_| !lasts).map(|deadline| now + deadline);
        if let Some(deadline) = deadline {
            self.timers.set(deadline, Purpose::Handler(key));
        }
        if let Some(batch) = batch {
            self.batches.enter(batch);
        }
        let params = params.to_owned();
        self.held_bytes += params.text().len();
        self.statistics.accepted += 1;
        self.executions.insert(key, super::Execution { id: id.clone(), bytes: params.text().len(), told: false });
        self.inbound.insert(
            id.clone(),
            Box::new(Inbound {
                key,
                method,
                peer: Arc::clone(&wire.peer),
                batch,
                deadline,
                progress_token: wire.progress_token.clone(),
                progress: Reported::default(),
                log_level: wire.log_level,
                logs: Vec::new(),
                notices: BTreeMap::new(),
                acknowledged: false,
            }),
        );
        self.events.push_back(Event::Start(Request {
            key,
            id,
            method,
            params,
            peer: wire.peer,
            progress_token: wire.progress_token,
            log_level: wire.log_level,
        }));
    }

    /// The entry of a request that is running.
    pub(super) fn running(&self, key: Key) -> Option<&Inbound> {
        let execution = self.executions.get(&key)?;
        self.inbound.get(&execution.id).map(Box::as_ref).filter(|inbound| inbound.key == key)
    }

    pub(super) fn running_mut(&mut self, key: Key) -> Option<&mut Inbound> {
        let execution = self.executions.get(&key)?;
        self.inbound.get_mut(&execution.id).map(Box::as_mut).filter(|inbound| inbound.key == key)
    }

    /// Takes a request out of the table: this is the one place where a request ends.
    pub(super) fn take_out(&mut self, key: Key) -> Option<(RequestId, Box<Inbound>)> {
        let id = self.executions.get(&key)?.id.clone();
        let inbound = self.inbound.remove(&id)?;
        if inbound.key != key {
            // The id was used again by another request: put that one back.
            self.inbound.insert(id, inbound);
            return None;
        }
        if let Some(deadline) = inbound.deadline {
            self.timers.clear(deadline, Purpose::Handler(key));
        }
        if let Some(when) = inbound.progress.held_until() {
            self.timers.clear(when, Purpose::Progress(key));
        }
        Some((id, inbound))
    }

    /// Ends a request with an answer.
    pub(super) fn end_answered(&mut self, key: Key, answer: Answer) {
        let Some((id, inbound)) = self.take_out(key) else { return };
        coverage::effect(Effect::RequestAnswered);
        self.statistics.answered += 1;
        let mut body = answer.into_bytes();
        // The answers of an open batch wait for its slowest member and must not stop anything else, so they have a bound
        // of their own.
        let limit = self.limits.outbox_bytes;
        if inbound.batch.is_some() && self.batches.bytes() + body.len() > limit {
            let error =
                ErrorObject::internal(format!("the answers of open batches hold {limit} bytes, which is the limit"));
            body = Answer::error(&id, &error).into_bytes();
        }
        if !(crate::mutant!(SwallowAnswers) && matches!(*self.hello, Hello::Client(_))) {
            self.commit(body, inbound.batch, Some(key));
        }
        self.leave_batch(inbound.batch, Some(key));
    }

    /// The handler's deadline has passed.
    pub(super) fn end_overdue(&mut self, key: Key) {
        if crate::mutant!(ForgetDeadlines) {
            return;
        }
        let error = ErrorObject::internal("the handler did not finish before its deadline");
        self.end_with_error(key, &error, Some(CancelReason::Deadline));
    }

    /// An execution has ended; a request that it left open is answered for it (L2).
    pub(super) fn reap(&mut self, _now: Moment, key: Key) {
        if !crate::mutant!(ForgetTheUnanswered) {
            let error = ErrorObject::internal("the handler ended without an answer");
            self.end_with_error(key, &error, None);
        }
        if crate::mutant!(ForgetToReap) {
            return;
        }
        if let Some(execution) = self.executions.remove(&key) {
            self.held_bytes -= execution.bytes;
        }
    }

    fn end_with_error(&mut self, key: Key, error: &ErrorObject, stop: Option<CancelReason>) {
        let Some(id) = self.executions.get(&key).map(|execution| execution.id.clone()) else { return };
        if !self.is_open(key) {
            return;
        }
        // Before the answer: over HTTP, clients read no further than that.
        self.cancel_calls_of(key);
        coverage::effect(Effect::RequestAnsweredFor);
        self.end_answered(key, Answer::error(&id, error));
        if let Some(reason) = stop {
            self.stop(key, reason);
        }
    }

    /// Tells an execution to stop, and gives up the calls that it made to the peer.
    pub(super) fn stop(&mut self, key: Key, reason: CancelReason) {
        if let Some(execution) = self.executions.get_mut(&key) {
            execution.told = true;
        }
        self.events.push_back(Event::Stop { key, reason });
        self.cancel_calls_of(key);
    }

    /// Answers every open request with an error, and stops every execution that was not told to stop before: also those
    /// that have answered and go on.
    pub(super) fn answer_for_all(&mut self, reason: CancelReason) {
        let keys: Vec<Key> = self.executions.keys().copied().collect();
        for key in keys {
            let error = ErrorObject::internal(match reason {
                CancelReason::Shutdown => "shut down before the handler finished",
                _ => "the connection closed before the handler finished",
            });
            self.end_with_error(key, &error, None);
            if self.executions.get(&key).is_some_and(|execution| !execution.told) {
                self.stop(key, reason);
            }
        }
    }
}
