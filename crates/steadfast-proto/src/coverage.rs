//! Coverage counters, so that the simulator of the tests can report what its runs never reached.
//!
//! With the feature `coverage`, which is for the simulator, each thread counts the inputs of its connections, by stage, and
//! their effects: every kind of event, of refusal and of ending. [`take`] returns the counts and resets them. Without the
//! feature `coverage` nothing is counted, and the counters are not compiled in.

use crate::connection::{CallEnd, CancelReason, CloseCause, ConnectionEvent, NotSentReason, ProtocolWarning};
use crate::envelope::MalformedMessageReason;

/// Defines an enum of things to count, each with the text that the simulator's coverage report shows for it.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($variant:ident => $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[cfg_attr(not(feature = "coverage"), allow(dead_code, reason = "nothing is counted"))]
        pub(crate) enum $name { $($variant,)* }

        #[cfg(feature = "coverage")]
        impl $name {
            const NAMES: &[&str] = &[$($text,)*];
        }
    };
}

named! {
    /// The stage of a connection, as the coverage counters distinguish it.
    Stage {
        Opening => "opening",
        Ready => "ready",
        Window => "draining, handlers may answer",
        Stopped => "draining, handlers are stopped",
        Closed => "closed",
    }
}

named! {
    /// An input of a connection's state machine, as the coverage counters distinguish it.
    Input {
        Request => "a request",
        Notification => "a notification",
        Response => "a response",
        Batch => "a batch",
        Unreadable => "an unreadable message",
        Timeout => "handle_timeout",
        StreamEnded => "handle_end_of_input",
        PeerGone => "handle_peer_gone",
        PeerEnded => "handle_peer_ended",
        WriteFailed => "handle_write_failed",
        Flushed => "handle_flushed",
        CallSent => "handle_call_sent",
        CallEnded => "handle_call_ended",
        ExecutionEnded => "handle_execution_ended",
        ShutDown => "shut_down",
        ShutDownNow => "shut_down_now",
        Respond => "respond",
        Call => "call",
        CancelCall => "cancel_call",
        Progress => "progress",
        Log => "log",
        Notify => "notify_once",
        NotifyAbout => "notify_about",
    }
}

named! {
    /// An effect of an input on a connection's state machine, as the coverage counters distinguish it.
    Effect {
        Start => "event: a handler starts",
        StopPeer => "event: stop a handler, cancelled by the peer",
        StopClosed => "event: stop a handler, the connection closed",
        StopDeadline => "event: stop a handler, the deadline passed",
        StopShutdown => "event: stop a handler, shutting down",
        Opened => "event: the handshake is done",
        LateResult => "event: a late result of a cancelled call",
        CallProgress => "event: progress of a call",
        Notification => "event: a notification",
        ClosedByPeer => "closed: by the peer",
        ClosedByOutput => "closed: the output failed",
        ClosedByShutdown => "closed: shut down",
        Answered => "call: answered",
        Refused => "call: refused",
        UnreadableAnswer => "call: unreadable answer",
        CancelledSent => "call: cancelled, sent",
        CancelledUnsent => "call: cancelled, not sent",
        EndedByPeer => "call: ended by the peer",
        TimedOutSent => "call: timed out, sent",
        TimedOutUnsent => "call: timed out, not sent",
        ClosedSent => "call: closed, sent",
        ClosedUnsent => "call: closed, not sent",
        LostSent => "call: lost, sent",
        LostUnsent => "call: lost, not sent",
        SessionLost => "call: session lost",
        Unsendable => "call: cannot be sent",
        CallOnClosed => "call refused: closed",
        CallNotInRevision => "call refused: not in the revision",
        CallMissingCapability => "call refused: missing capability",
        CallTooMany => "call refused: too many",
        WarnRefused => "warning: refused",
        WarnCancelled => "warning: a cancellation with a reason",
        WarnLateCancel => "warning: late cancellation",
        WarnMalformedCancel => "warning: malformed cancellation",
        WarnLateAnswer => "warning: late answer of a handler",
        WarnUnknownResponse => "warning: response with an unknown id",
        WarnUnknownNotification => "warning: unknown notification",
        NotUtf8 => "refusal: not UTF-8",
        NotJson => "refusal: not JSON",
        TooDeep => "refusal: too deep",
        TooLong => "refusal: too long",
        NotAMessage => "refusal: not a message",
        BadParams => "refusal: bad params",
        RefusedWithId => "refusal: error with the id of the message",
        RefusedWithoutId => "refusal: error without an id",
        DuplicateId => "refusal: duplicate id",
        NotAdmitted => "refusal: not admitted",
        RequestAnswered => "request: answered",
        RequestCancelled => "request: cancelled by the peer",
        RequestAnsweredFor => "request: ended with an error, without a response of its handler",
    }
}

impl From<&ConnectionEvent> for Effect {
    fn from(event: &ConnectionEvent) -> Self {
        match event {
            ConnectionEvent::Start(_) => Self::Start,
            ConnectionEvent::Stop { reason: CancelReason::Peer, .. } => Self::StopPeer,
            ConnectionEvent::Stop { reason: CancelReason::ConnectionClosed, .. } => Self::StopClosed,
            ConnectionEvent::Stop { reason: CancelReason::Deadline, .. } => Self::StopDeadline,
            ConnectionEvent::Stop { reason: CancelReason::Shutdown, .. } => Self::StopShutdown,
            ConnectionEvent::CallEnded { outcome, .. } => outcome.into(),
            ConnectionEvent::LateResult(_) => Self::LateResult,
            ConnectionEvent::CallProgress { .. } => Self::CallProgress,
            ConnectionEvent::Notification { .. } => Self::Notification,
            ConnectionEvent::Opened(_) => Self::Opened,
            ConnectionEvent::Warning(warning) => warning.into(),
            ConnectionEvent::Closed(CloseCause::PeerClosed) => Self::ClosedByPeer,
            ConnectionEvent::Closed(CloseCause::OutputFailed) => Self::ClosedByOutput,
            ConnectionEvent::Closed(CloseCause::Shutdown) => Self::ClosedByShutdown,
        }
    }
}

impl From<&CallEnd> for Effect {
    fn from(outcome: &CallEnd) -> Self {
        match outcome {
            CallEnd::NotSent(refused) => refused.into(),
            CallEnd::Answered(_) => Self::Answered,
            CallEnd::Refused(_) => Self::Refused,
            CallEnd::Unreadable(_) => Self::UnreadableAnswer,
            CallEnd::Cancelled { sent: true } => Self::CancelledSent,
            CallEnd::Cancelled { sent: false } => Self::CancelledUnsent,
            CallEnd::EndedByPeer => Self::EndedByPeer,
            CallEnd::TimedOut { sent: true } => Self::TimedOutSent,
            CallEnd::TimedOut { sent: false } => Self::TimedOutUnsent,
            CallEnd::Closed { sent: true } => Self::ClosedSent,
            CallEnd::Closed { sent: false } => Self::ClosedUnsent,
            CallEnd::Lost { sent: true, .. } => Self::LostSent,
            CallEnd::Lost { sent: false, .. } => Self::LostUnsent,
            CallEnd::SessionLost => Self::SessionLost,
            CallEnd::Unsendable(_) => Self::Unsendable,
        }
    }
}

impl From<&ProtocolWarning> for Effect {
    fn from(warning: &ProtocolWarning) -> Self {
        match warning {
            ProtocolWarning::Refused { .. } => Self::WarnRefused,
            ProtocolWarning::Cancelled { .. } => Self::WarnCancelled,
            ProtocolWarning::LateCancel(_) => Self::WarnLateCancel,
            ProtocolWarning::MalformedCancel => Self::WarnMalformedCancel,
            ProtocolWarning::LateAnswer(_) => Self::WarnLateAnswer,
            ProtocolWarning::UnknownResponse(_) => Self::WarnUnknownResponse,
            ProtocolWarning::UnknownNotification(_) => Self::WarnUnknownNotification,
        }
    }
}

impl From<&NotSentReason> for Effect {
    fn from(refused: &NotSentReason) -> Self {
        match refused {
            NotSentReason::Closed => Self::CallOnClosed,
            NotSentReason::NotInRevision => Self::CallNotInRevision,
            NotSentReason::MissingCapability(_) => Self::CallMissingCapability,
            NotSentReason::TooMany => Self::CallTooMany,
        }
    }
}

impl From<&MalformedMessageReason> for Effect {
    fn from(kind: &MalformedMessageReason) -> Self {
        match kind {
            MalformedMessageReason::NotUtf8(_) => Self::NotUtf8,
            MalformedMessageReason::NotJson(_) => Self::NotJson,
            MalformedMessageReason::TooDeep(_) => Self::TooDeep,
            MalformedMessageReason::TooLong(_) => Self::TooLong,
            MalformedMessageReason::NotAMessage(_) => Self::NotAMessage,
            MalformedMessageReason::BadParams => Self::BadParams,
        }
    }
}

/// Counts an input of a connection in this stage.
#[inline]
pub(crate) fn input(stage: Stage, input: Input) {
    #[cfg(feature = "coverage")]
    counters::input(stage, input);
    #[cfg(not(feature = "coverage"))]
    let _ = (stage, input);
}

/// Counts an effect.
#[inline]
pub(crate) fn effect(effect: impl Into<Effect>) {
    #[cfg(feature = "coverage")]
    counters::effect(effect.into());
    #[cfg(not(feature = "coverage"))]
    let _ = effect;
}

#[cfg(feature = "coverage")]
mod counters {
    use std::cell::Cell;

    use super::{Effect, Input, Stage};

    const STAGES: usize = Stage::NAMES.len();
    const INPUTS: usize = Input::NAMES.len();
    const EFFECTS: usize = Effect::NAMES.len();

    thread_local! {
        static SEEN_INPUTS: [Cell<u64>; STAGES * INPUTS] = const { [const { Cell::new(0) }; STAGES * INPUTS] };
        static SEEN_EFFECTS: [Cell<u64>; EFFECTS] = const { [const { Cell::new(0) }; EFFECTS] };
    }

    fn increment(cell: Option<&Cell<u64>>) {
        if let Some(cell) = cell {
            cell.set(cell.get().saturating_add(1));
        }
    }

    pub(super) fn input(stage: Stage, input: Input) {
        SEEN_INPUTS.with(|cells| increment(cells.get(input as usize * STAGES + stage as usize)));
    }

    pub(super) fn effect(effect: Effect) {
        SEEN_EFFECTS.with(|cells| increment(cells.get(effect as usize)));
    }

    /// The coverage counts of this thread since the last call, in a fixed order: pairs of name and count, with a count of zero
    /// for what was never reached.
    pub fn take() -> Vec<(String, u64)> {
        let names =
            Input::NAMES.iter().flat_map(|input| Stage::NAMES.iter().map(move |stage| format!("{input} | {stage}")));
        let inputs = SEEN_INPUTS.with(|cells| cells.each_ref().map(Cell::take));
        let effects = SEEN_EFFECTS.with(|cells| cells.each_ref().map(Cell::take));
        let names = names.chain(Effect::NAMES.iter().map(|name| (*name).to_owned()));
        names.zip(inputs.into_iter().chain(effects)).collect()
    }
}

#[cfg(feature = "coverage")]
pub use counters::take;
