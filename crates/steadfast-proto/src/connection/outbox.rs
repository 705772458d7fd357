//! The queue of a connection's messages for the writer, in order (law L9).
//!
//! Each frame, which is one message in the queue, has a ticket. While a frame is queued, it can be replaced (by newer progress)
//! or withdrawn (notifications of a cancelled request, a cancelled call) in constant time, without moving other frames.

use std::collections::VecDeque;

use steadfast_model::{Method, RequestId};

use super::key::{CallKey, InboundRequestKey};

/// Identifies one frame in the outbox, the queue of messages to the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct OutboxFrameKey(u64);

/// A message to the peer that the driver has to write to the transport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transmit {
    /// One JSON-RPC message, or a batch of responses, without a delimiter.
    pub body: Vec<u8>,
    /// The kind of message in the body, so that a transport need not parse the body.
    pub kind: TransmitKind,
    /// The inbound request that the message belongs to: its response, progress or log message, or a call of its
    /// handler. For a batch of responses, `about` is the request that ended last. `about` is `None` for the response
    /// to a message that was refused when it was received; such a response is queued when `handle_message` returns.
    pub about: Option<InboundRequestKey>,
}

impl Transmit {
    /// The call whose request this message is. The driver reports the call with `handle_call_sent` when the first byte of the
    /// body is written.
    pub fn call(&self) -> Option<CallKey> {
        self.kind.call()
    }

    /// Whether this side sends the message by itself (a call, its cancellation, or a vendor notification without a request),
    /// and not because of a message of the peer.
    fn is_ours(&self) -> bool {
        match self.kind {
            TransmitKind::Request { .. } | TransmitKind::Cancellation { .. } => true,
            TransmitKind::Notification(Method::Vendor(_)) => self.about.is_none(),
            _ => false,
        }
    }
}

/// The kind of a message to the peer: a request, a notification or a response. The kinds that servers send most,
/// responses and notifications, need no allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransmitKind {
    /// A request of this side to the peer.
    Request {
        /// The call of this side that waits for the response to this request.
        call: CallKey,
        /// The id of the request, which the peer repeats in its response.
        id: RequestId,
        /// Its method.
        method: Method,
    },
    /// A `notifications/cancelled` message: the peer need not respond to this call any more.
    Cancellation {
        /// The call of this side that was cancelled.
        call: CallKey,
    },
    /// Any other notification.
    Notification(Method),
    /// A response, a batch of responses, or an error response without the id of a request.
    Response,
}

impl TransmitKind {
    /// The call whose request this message is.
    pub fn call(&self) -> Option<CallKey> {
        match *self {
            Self::Request { call, .. } => Some(call),
            Self::Cancellation { .. } | Self::Notification(_) | Self::Response => None,
        }
    }

    /// The method of the message, if it is a request or notification.
    pub fn method(&self) -> Option<Method> {
        match *self {
            Self::Request { method, .. } | Self::Notification(method) => Some(method),
            Self::Cancellation { .. } => Some(Method::Cancelled),
            Self::Response => None,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Outbox {
    /// `None`: withdrawn.
    queue: VecDeque<Option<Transmit>>,
    /// The ticket number of the first entry in the queue.
    first: u64,
    /// The current number of withdrawn entries in the queue, and how many of these the peer had caused.
    withdrawn: usize,
    taken_back_counted: usize,
    bytes: usize,
    /// The queued bytes of messages that this side sends by itself, such as its calls and their cancellations.
    our_bytes: usize,
    /// The writer has messages that are not yet reported as written.
    in_transit: bool,
    /// The peer does not read any more, so that queued and later frames are dropped.
    shut: bool,
    #[cfg(mutants)]
    popped: u64,
}

impl Outbox {
    /// The current number of queued bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of queued bytes that the peer has caused: all but those of messages that this side sends by itself. The empty
    /// entry of a withdrawn frame counts too, until the writer reaches it.
    pub(super) fn caused_bytes(&self) -> usize {
        self.bytes - self.our_bytes + self.taken_back_counted * size_of::<Option<Transmit>>()
    }

    /// Whether no message is left to write, neither in this queue nor at the writer.
    pub(super) fn is_flushed(&self) -> bool {
        self.bytes == 0 && !self.in_transit
    }

    /// Queues a message.
    pub(super) fn push(
        &mut self,
        kind: TransmitKind,
        body: Vec<u8>,
        about: Option<InboundRequestKey>,
    ) -> OutboxFrameKey {
        let transmit = Transmit { body, kind, about };
        let ticket = OutboxFrameKey(self.first + self.queue.len() as u64);
        if self.shut {
            // The next ticket may be the same, and holds nothing either.
            return ticket;
        }
        self.bytes += transmit.body.len();
        if transmit.is_ours() {
            self.our_bytes += transmit.body.len();
        }
        self.queue.push_back(Some(transmit));
        ticket
    }

    /// For fault injection (`cfg(mutants)`): queues a response before all other frames.
    #[cfg(mutants)]
    pub(super) fn push_first(&mut self, body: Vec<u8>) {
        self.push(TransmitKind::Response, body, None);
        self.queue.rotate_right(1);
    }

    /// Replaces the body of a frame in the outbox, if the frame is still queued.
    pub(super) fn replace(&mut self, ticket: OutboxFrameKey, body: Vec<u8>) -> Result<(), Vec<u8>> {
        let Some(Some(transmit)) = self.slot(ticket) else { return Err(body) };
        let added = body.len();
        let removed = std::mem::replace(&mut transmit.body, body).len();
        self.bytes = (self.bytes + added).saturating_sub(removed);
        Ok(())
    }

    /// Whether a frame is still in the outbox.
    pub(super) fn holds(&self, ticket: OutboxFrameKey) -> bool {
        let place = ticket.0.checked_sub(self.first).and_then(|place| usize::try_from(place).ok());
        place.and_then(|place| self.queue.get(place)).is_some_and(Option::is_some)
    }

    /// The number of frames before this frame in the queue, if it is still queued.
    pub(super) fn place(&self, ticket: OutboxFrameKey) -> Option<usize> {
        let place = usize::try_from(ticket.0.checked_sub(self.first)?).ok()?;
        self.queue.get(place)?.as_ref()?;
        Some(self.queue.iter().take(place).flatten().count())
    }

    /// Removes a frame from the outbox, if it is still queued.
    pub(super) fn withdraw(&mut self, ticket: OutboxFrameKey) -> bool {
        let Some(slot) = self.slot(ticket) else { return false };
        let Some(transmit) = slot.take() else { return false };
        self.forget_bytes(&transmit);
        self.withdrawn += 1;
        self.taken_back_counted += usize::from(!transmit.is_ours());
        if self.withdrawn == self.queue.len() {
            self.first += self.queue.len() as u64;
            self.queue.clear();
            (self.withdrawn, self.taken_back_counted) = (0, 0);
        }
        true
    }

    pub(super) fn pop(&mut self) -> Option<Transmit> {
        while let Some(entry) = self.queue.pop_front() {
            self.first += 1;
            let Some(transmit) = entry else {
                self.withdrawn -= 1;
                // The kind of a withdrawn entry is not stored: the count is exact when the last one is reached.
                self.taken_back_counted = self.taken_back_counted.min(self.withdrawn);
                continue;
            };
            self.forget_bytes(&transmit);
            #[cfg(mutants)]
            {
                self.popped += 1;
                if crate::mutant!(DropOutboxEntry) && self.popped % 8 == 0 {
                    continue;
                }
            }
            self.in_transit = true;
            return Some(transmit);
        }
        // A queue that was long once gives its memory back.
        if self.queue.capacity() > 1024 {
            self.queue = VecDeque::new();
        }
        None
    }

    pub(super) fn mark_flushed(&mut self) {
        self.in_transit = false;
    }

    /// Drops all queued frames, and those that are pushed later: the peer does not read any more.
    pub(super) fn shut(&mut self) {
        self.shut = true;
        self.first += self.queue.len() as u64;
        self.queue = VecDeque::new();
        (self.bytes, self.our_bytes) = (0, 0);
        (self.withdrawn, self.taken_back_counted) = (0, 0);
        self.in_transit = false;
    }

    /// Whether the writer has messages that are not yet reported as written.
    pub(super) fn is_in_transit(&self) -> bool {
        self.in_transit
    }

    /// The frames in the outbox, in the order in which they will be written.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Transmit> {
        self.queue.iter().flatten()
    }

    fn forget_bytes(&mut self, transmit: &Transmit) {
        self.bytes -= transmit.body.len();
        if transmit.is_ours() {
            self.our_bytes -= transmit.body.len();
        }
    }

    fn slot(&mut self, ticket: OutboxFrameKey) -> Option<&mut Option<Transmit>> {
        let place = usize::try_from(ticket.0.checked_sub(self.first)?).ok()?;
        self.queue.get_mut(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(outbox: &mut Outbox, body: &[u8]) -> OutboxFrameKey {
        outbox.push(TransmitKind::Response, body.to_vec(), None)
    }

    fn drain(outbox: &mut Outbox) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| outbox.pop()).map(|transmit| transmit.body).collect()
    }

    #[test]
    fn replacing_keeps_the_position_and_withdrawing_keeps_the_order() {
        let mut outbox = Outbox::default();
        let first = push(&mut outbox, b"a");
        let second = push(&mut outbox, b"bb");
        push(&mut outbox, b"c");
        assert_eq!(outbox.replace(first, b"AAA".to_vec()), Ok(()));
        assert!(outbox.withdraw(second));
        assert!(!outbox.withdraw(second));
        assert_eq!(outbox.bytes(), 4);
        assert_eq!(drain(&mut outbox), [b"AAA".to_vec(), b"c".to_vec()]);
        assert_eq!(outbox.bytes(), 0);
    }

    #[test]
    fn the_ticket_of_a_sent_frame_has_no_effect() {
        let mut outbox = Outbox::default();
        let first = push(&mut outbox, b"a");
        outbox.pop();
        push(&mut outbox, b"b");
        assert!(!outbox.holds(first));
        assert!(!outbox.withdraw(first));
        assert_eq!(outbox.replace(first, b"x".to_vec()), Err(b"x".to_vec()));
        assert_eq!(drain(&mut outbox), [b"b".to_vec()]);
    }

    #[test]
    fn the_outbox_is_flushed_when_the_writer_reports_it() {
        let mut outbox = Outbox::default();
        push(&mut outbox, b"a");
        outbox.pop();
        assert!(!outbox.is_flushed());
        outbox.mark_flushed();
        assert!(outbox.is_flushed());
    }

    /// What the peer caused is bounded; a client that makes many calls is not held up by that bound.
    #[test]
    fn requests_and_their_cancellations_are_not_counted_as_caused_by_the_peer() {
        let mut outbox = Outbox::default();
        let call = CallKey::new(7);
        let request = TransmitKind::Request { call, id: RequestId::from(1), method: Method::CallTool };
        outbox.push(request, b"request".to_vec(), None);
        outbox.push(TransmitKind::Cancellation { call }, b"cancelled".to_vec(), None);
        assert_eq!((outbox.bytes(), outbox.caused_bytes()), (16, 0));
        outbox.push(TransmitKind::Notification(Method::Progress), b"progress".to_vec(), None);
        push(&mut outbox, b"response");
        assert_eq!((outbox.bytes(), outbox.caused_bytes()), (32, 16));
        let calls: Vec<_> = std::iter::from_fn(|| outbox.pop()).map(|transmit| transmit.call()).collect();
        assert_eq!(calls, [Some(call), None, None, None]);
    }
}
