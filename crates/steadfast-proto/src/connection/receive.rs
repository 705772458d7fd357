//! Messages of the peer: read, counted, and handed to the part of the connection that they concern.

use super::handshake::ClientOrServerDescription;
use super::outbox::TransmitKind;
use super::request::JsonRpcBatchKey;
use super::{CloseCause, Connection, InboundRequestKey, ProtocolWarning};
use crate::Moment;
use crate::coverage::{self, Effect, Input};
use crate::encode;
use crate::envelope::{self, Envelope, MalformedMessage, MalformedMessageReason, Message};
use crate::salvage::{SalvagedFields, SalvagedMessageShape};

/// Inputs.
impl Connection {
    /// Handles a message of the peer, given as the bytes of one frame.
    pub fn handle_message(&mut self, now: Moment, bytes: &[u8]) {
        if self.input_ended || self.stage.is_closed() {
            return;
        }
        self.handle_parsed(now, envelope::read(bytes, self.limits.depth));
    }

    /// Handles a message of the peer that the transport has already parsed, within the limits of this connection.
    pub fn handle_envelope(&mut self, now: Moment, envelope: &Envelope) {
        if self.input_ended || self.stage.is_closed() {
            return;
        }
        self.handle_parsed(now, envelope.message());
    }

    fn handle_parsed(&mut self, now: Moment, parsed: Result<Message<'_>, MalformedMessage>) {
        match parsed {
            Ok(message) => return self.handle_read(now, message),
            Err(_) if crate::mutant!(CloseOnBadBytes) => self.close(CloseCause::PeerClosed),
            Err(refusal) => self.refuse(refusal, None),
        }
        self.statistics.messages_in += 1;
        self.close_if_done();
    }

    /// Handles the last bytes of the peer's stream: a message without its newline, or a part of a message. After the
    /// last bytes of the stream, the driver reports the end of the input.
    ///
    /// A partial response to `initialize` or `server/discover` means that the peer died while it wrote the response, and says
    /// nothing about the peer's revision: the call ends with the connection, not with an unreadable response.
    pub fn handle_last_message(&mut self, now: Moment, bytes: &[u8]) {
        let refusal = match envelope::read(bytes, self.limits.depth) {
            Err(refusal)
                if matches!(refusal.kind, MalformedMessageReason::NotJson(_) | MalformedMessageReason::NotUtf8(_)) =>
            {
                refusal
            }
            _ => return self.handle_message(now, bytes),
        };
        let key = refusal.salvaged.id.as_ref().and_then(|id| self.answerable_call(id));
        if !key.is_some_and(|key| self.is_opening_call(key)) || crate::mutant!(ReadTornOpening) {
            return self.handle_message(now, bytes);
        }
        let why = refusal.error().message.into_owned();
        self.warn(ProtocolWarning::Refused { id: refusal.salvaged.id, why });
    }

    /// Handles a message of the peer that the transport has already decoded, within the limits of this connection.
    pub fn handle_read(&mut self, now: Moment, message: Message<'_>) {
        if self.input_ended || self.stage.is_closed() {
            return;
        }
        self.statistics.messages_in += 1;
        match message {
            Message::Batch(batch) => {
                self.count_input(Input::Batch);
                self.receive_batch(now, batch);
            }
            message => self.take(now, message, None),
        }
        self.close_if_done();
    }

    /// Handles a message of the peer that was longer than the limit and was not stored.
    pub fn handle_too_long(&mut self, _now: Moment, salvaged: SalvagedFields) {
        if self.input_ended || self.stage.is_closed() {
            return;
        }
        self.statistics.messages_in += 1;
        self.refuse(
            MalformedMessage { kind: MalformedMessageReason::TooLong(self.limits.message_bytes), salvaged },
            None,
        );
        self.close_if_done();
    }
}

impl Connection {
    pub(in crate::connection) fn take(&mut self, now: Moment, message: Message<'_>, batch: Option<JsonRpcBatchKey>) {
        self.count_input(match message {
            Message::Request { .. } => Input::Request,
            Message::Notification { .. } => Input::Notification,
            Message::Response { .. } => Input::Response,
            Message::Batch(_) => Input::Batch,
        });
        match message {
            Message::Request { id, method, params } => self.receive_request(now, id, &method, &params, batch),
            Message::Notification { method, params } => self.receive_notification(now, &method, &params),
            Message::Response { id, body } => self.receive_response(id, body),
            Message::Batch(_) => self.refuse(
                MalformedMessage {
                    kind: MalformedMessageReason::NotAMessage("a batch must not contain another batch"),
                    salvaged: SalvagedFields::default(),
                },
                batch,
            ),
        }
    }

    /// Refuses a malformed message of the peer: the message is answered with an error if it may be a request.
    pub(in crate::connection) fn refuse(&mut self, refusal: MalformedMessage, batch: Option<JsonRpcBatchKey>) {
        self.statistics.refused += 1;
        self.count_input(Input::Unreadable);
        coverage::effect(&refusal.kind);
        let error = refusal.error();
        let id = refusal.salvaged.id;
        self.warn(ProtocolWarning::Refused { id: id.clone(), why: error.message.clone().into_owned() });
        if refusal.kind == MalformedMessageReason::BadParams && id.is_none() {
            // A notification is never answered.
            return;
        }
        if refusal.salvaged.shape == SalvagedMessageShape::Response {
            // A response is never answered. The call that waits for it ends as unreadable.
            return self.end_unreadable(id, &error);
        }
        let shape = refusal.salvaged.shape;
        if shape == SalvagedMessageShape::Unknown
            && matches!(*self.hello, ClientOrServerDescription::Client(_))
            && id.as_ref().is_some_and(|id| self.answerable_call(id).is_some())
        {
            // What a server sends with the id of a call of ours is most likely the response to it.
            return self.end_unreadable(id, &error);
        }
        if self.ignores_requests() {
            return;
        }
        match id {
            // Only a message that is certainly a request is refused with its id. Any other may be a response to a call of
            // ours that ended before; the peer could read an error with that id as the response to a request of its own.
            Some(id)
                if (shape == SalvagedMessageShape::Call || crate::mutant!(RefuseUnderAnyId))
                    && !self.inbound.contains_key(&id) =>
            {
                coverage::effect(Effect::RefusedWithId);
                self.queue_response(encode::EncodedResponse::error(&id, &error).into_bytes(), batch, None);
            }
            Some(id) => self.refuse_without_id(id, error, batch),
            None => self.queue_response(encode::error_without_id(&error, self.writes_null_id()), batch, None),
        }
    }

    /// Queues a response, or an error without an id, in the outbox or with the other responses of its batch.
    pub(in crate::connection) fn queue_response(
        &mut self,
        body: Vec<u8>,
        batch: Option<JsonRpcBatchKey>,
        about: Option<InboundRequestKey>,
    ) {
        if self.ignores_requests() {
            return;
        }
        match batch {
            Some(batch) => self.batches.add(batch, body),
            None => {
                #[cfg(mutants)]
                if crate::mutant!(AnswerOvertakes) {
                    return self.outbox.push_first(body);
                }
                self.outbox.push(TransmitKind::Response, body, about);
            }
        }
    }
}
