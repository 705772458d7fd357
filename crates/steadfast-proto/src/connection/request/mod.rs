//! Requests that the peer sends to this side, from their start to their end.
//!
//! ```text
//!   accepted --> Running --+--> Answered          respond, deadline, end of the drain window, an execution that ends
//!                          |                      without an answer
//!                          +--> CancelledByPeer   see `cancel.rs`
//!                          +--> Closed            the connection ended first
//! ```
//!
//! An entry of `inbound` is a request of the peer that is running; whatever ends the request removes the entry. The execution
//! of a handler begins with its request, and ends when the handler, its shielded sections and its cleanups have ended, which
//! may be later than the end of the request. Limits count executions of handlers, so that the work of cancelled requests is
//! counted until it ends.

mod batch;
mod cancel;
mod end;
mod progress;
mod subscription;

pub(in crate::connection) use batch::{JsonRpcBatchKey, OpenBatchTable};
pub use progress::ProgressReport;

use std::collections::BTreeMap;
use std::sync::Arc;

use steadfast_model::error::excerpt;
use steadfast_model::{ErrorObject, Method, ProgressToken, RequestId};

use super::event::{ConnectionEvent, PeerInfo, ProtocolWarning, Request};
use super::handshake::RequestMetadata;
use super::key::InboundRequestKey;
use super::outbox::OutboxFrameKey;
use super::timer::TimerPurpose;
use super::{CloseCause, Connection, ConnectionStage};
use crate::Moment;
use crate::coverage::{self, Effect};
use crate::encode::EncodedResponse;
use crate::envelope::Params;
use progress::OutboundProgressState;

/// A request of the peer that is running.
#[derive(Debug, Clone)]
pub(in crate::connection) struct InboundRequest {
    pub(in crate::connection) key: InboundRequestKey,
    pub(in crate::connection) method: Method,
    pub(in crate::connection) peer: Arc<PeerInfo>,
    pub(in crate::connection) batch: Option<JsonRpcBatchKey>,
    pub(in crate::connection) deadline: Option<Moment>,
    pub(in crate::connection) progress_token: Option<ProgressToken>,
    pub(in crate::connection) progress: OutboundProgressState,
    /// The minimum log level that the request asked for (stateless revisions).
    pub(in crate::connection) log_level: Option<steadfast_model::LoggingLevel>,
    /// The log messages and vendor notifications of this request that may still be in the outbox.
    pub(in crate::connection) logs: Vec<OutboxFrameKey>,
    /// The notifications of a subscription that may still be in the outbox, recorded so that none is queued twice.
    pub(in crate::connection) queued_notifications: BTreeMap<(Method, Box<str>), OutboxFrameKey>,
    /// The request is a subscription whose acknowledgement was queued.
    pub(in crate::connection) acknowledged: bool,
}

impl InboundRequest {
    /// The notifications of this request that may still be in the outbox.
    pub(in crate::connection) fn tickets(&self) -> impl Iterator<Item = OutboxFrameKey> {
        self.logs.iter().copied().chain(self.progress.queued()).chain(self.queued_notifications.values().copied())
    }
}

/// Commands.
impl Connection {
    /// The key of the open request with this id.
    pub fn key_of(&self, id: &RequestId) -> Option<InboundRequestKey> {
        self.inbound.get(id).map(|inbound| inbound.key)
    }

    /// Whether a request of the peer is still open.
    pub fn is_open(&self, key: InboundRequestKey) -> bool {
        self.running(key).is_some()
    }

    /// Whether something of a request of the peer goes on: it is open, or its handler, a shield or a cleanup has not ended.
    pub fn is_live(&self, key: InboundRequestKey) -> bool {
        self.is_open(key) || self.executions.contains_key(&key)
    }
}

impl Connection {
    pub(in crate::connection) fn receive_request(
        &mut self,
        now: Moment,
        id: RequestId,
        method: &str,
        params: &Params<'_>,
        batch: Option<JsonRpcBatchKey>,
    ) {
        if self.ignores_requests() {
            self.statistics.refused += 1;
            let why = format!("a server of this revision must not send requests, but sent {}", excerpt(method));
            return self.warn(ProtocolWarning::Refused { id: Some(id), why });
        }
        if self.inbound.contains_key(&id) && !crate::mutant!(AcceptDuplicateId) {
            coverage::effect(Effect::DuplicateId);
            let error = ErrorObject::invalid_request("a request with this id is still in flight");
            self.statistics.refused += 1;
            self.warn(ProtocolWarning::Refused { id: Some(id.clone()), why: error.message.clone().into_owned() });
            return self.refuse_without_id(id, error, batch);
        }
        let accepted = self.read_context(method, params).and_then(|context| {
            if batch.is_some() && context.peer.revision.is_stateless() {
                // A subscription, for example, would delay the responses to all others until it ends.
                return Err(ErrorObject::invalid_request("batches exist in revision 2025-03-26 only"));
            }
            let method = self.find_method(method, &context)?;
            Ok((context, method))
        });
        let answer = match accepted {
            Ok((context, method)) => match self.answer_directly(&id, method, params, &context) {
                Some(answer) => answer,
                None => match self.admit(method, params) {
                    Ok(()) => return self.start(now, id, method, params, context, batch),
                    Err(error) => {
                        coverage::effect(Effect::NotAdmitted);
                        EncodedResponse::error(&id, &error)
                    }
                },
            },
            Err(error) => EncodedResponse::error(&id, &error),
        };
        self.queue_response(answer.into_bytes(), batch, None);
    }

    /// Refuses a message with an error response without an id, and names the id of the message in the error data: the peer
    /// could read an error response with that id as the response to another request.
    pub(in crate::connection) fn refuse_without_id(
        &mut self,
        id: RequestId,
        error: ErrorObject,
        batch: Option<JsonRpcBatchKey>,
    ) {
        coverage::effect(Effect::RefusedWithoutId);
        let error = error.with_data(serde_json::json!({ "id": id }));
        self.queue_response(crate::encode::error_without_id(&error, self.writes_null_id()), batch, None);
    }

    /// Whether the limits of the connection allow that another handler runs.
    fn admit(&self, method: Method, params: &Params<'_>) -> Result<(), ErrorObject> {
        if crate::mutant!(IgnoreLimit) {
            return Ok(());
        }
        if matches!(self.stage, ConnectionStage::Draining(_)) && !self.drains_for_peer() {
            return Err(ErrorObject::internal("the connection is shutting down: new requests are refused"));
        }
        if method == Method::Listen {
            self.admit_subscription()?;
        }
        let limit = self.limits.in_flight;
        if self.executions.len() >= limit {
            let message =
                format!("request limit reached: {limit} requests are in flight; retry when a request has ended");
            return Err(
                ErrorObject::internal(message).with_data(serde_json::json!({ "limit": limit, "retryable": true }))
            );
        }
        if self.held_bytes + params.text().len() > self.limits.in_flight_bytes {
            let limit = self.limits.in_flight_bytes;
            let message =
                format!("request limit reached: requests in flight hold {limit} bytes; retry when a request has ended");
            return Err(
                ErrorObject::internal(message).with_data(serde_json::json!({ "limit": limit, "retryable": true }))
            );
        }
        Ok(())
    }

    /// Whether the peer has closed its end of the connection and the requests that it sent before are still served.
    fn drains_for_peer(&self) -> bool {
        self.stage.drain().is_some_and(|drain| drain.cause == CloseCause::PeerClosed && drain.window.is_some())
    }

    fn start(
        &mut self,
        now: Moment,
        id: RequestId,
        method: Method,
        params: &Params<'_>,
        context: RequestMetadata,
        batch: Option<JsonRpcBatchKey>,
    ) {
        let key = InboundRequestKey(self.next_key);
        self.next_key += 1;
        // Subscriptions and `tasks/result` have no deadline.
        let lasts = matches!(method, Method::Listen | Method::GetTaskPayload);
        let deadline = self.limits.handler_deadline.filter(|_| !lasts).map(|deadline| now + deadline);
        if let Some(deadline) = deadline {
            self.timers.set(deadline, TimerPurpose::Handler(key));
        }
        if let Some(batch) = batch {
            self.batches.enter(batch);
        }
        let params = params.to_owned();
        self.held_bytes += params.text().len();
        self.statistics.accepted += 1;
        self.executions
            .insert(key, super::Execution { id: id.clone(), bytes: params.text().len(), stop_requested: false });
        self.inbound.insert(
            id.clone(),
            Box::new(InboundRequest {
                key,
                method,
                peer: Arc::clone(&context.peer),
                batch,
                deadline,
                progress_token: context.progress_token.clone(),
                progress: OutboundProgressState::default(),
                log_level: context.log_level,
                logs: Vec::new(),
                queued_notifications: BTreeMap::new(),
                acknowledged: false,
            }),
        );
        self.events.push_back(ConnectionEvent::Start(Request {
            key,
            id,
            method,
            params,
            peer: context.peer,
            progress_token: context.progress_token,
            log_level: context.log_level,
        }));
    }

    /// The entry of an open request in the table of requests.
    pub(in crate::connection) fn running(&self, key: InboundRequestKey) -> Option<&InboundRequest> {
        let execution = self.executions.get(&key)?;
        self.inbound.get(&execution.id).map(Box::as_ref).filter(|inbound| inbound.key == key)
    }

    pub(in crate::connection) fn running_mut(&mut self, key: InboundRequestKey) -> Option<&mut InboundRequest> {
        let execution = self.executions.get(&key)?;
        self.inbound.get_mut(&execution.id).map(Box::as_mut).filter(|inbound| inbound.key == key)
    }
}
