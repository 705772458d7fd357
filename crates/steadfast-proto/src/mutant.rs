//! Faults put in on purpose, to show that the checkers find them.
//!
//! In a build with `--cfg mutants` one of them can be switched on for the current thread; in every other build
//! `mutant!` is the constant `false` and nothing of this exists.

/// Declares the enum of faults and its lists `ALL` and `AROUND` from one table, so that no declared fault is left out of the tests.
macro_rules! faults {
    (
        connection { $($(#[$law:meta])* $core:ident,)* }
        around { $($(#[$around_law:meta])* $around:ident,)* }
    ) => {
        /// The faults. Each breaks the law that its name is listed under.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Mutant {
            $($(#[$law])* $core,)*
            $($(#[$around_law])* $around,)*
        }

        impl Mutant {
            /// Every fault.
            pub const ALL: &[Self] = &[$(Self::$core,)* $(Self::$around,)*];

            /// Those that show only with more around the connection than the fuzz target has: a second one, a server, a
            /// client or HTTP. The simulator finds them.
            pub const AROUND: &[Self] = &[$(Self::$around,)*];
        }
    };
}

faults! {
    connection {
        /// Breaks L1: a response is sent twice.
        AnswerTwice,
        /// L1, L3: a cancellation stops the handler and leaves the request open, so its answer still goes out.
        AnswerAfterCancel,
        /// Breaks L2: an execution that ends without an answer leaves its request open.
        ForgetTheUnanswered,
        /// Breaks L2: deadlines of handlers are not kept.
        ForgetDeadlines,
        /// Breaks L3: frames about a request stay queued when it is cancelled.
        KeepFramesOfCancelled,
        /// Breaks L4: a cancellation for a request that is not open panics.
        PanicOnLateCancel,
        /// Breaks L4: an answer of a handler for a request that is not open panics.
        PanicOnLateAnswer,
        /// Breaks L6: a message that cannot be read ends the connection.
        CloseOnBadBytes,
        /// Breaks L5: the end of an execution does not free its place.
        ForgetToReap,
        /// Breaks L5: when the connection closes, every second waiting call is skipped, as when a table changes under iteration.
        IterateWhileRemoving,
        /// Breaks L5: when the connection closes, the last pending call does not end.
        LoseWaiterOnClose,
        /// Breaks L5: the drain has no deadline.
        DrainForever,
        /// Breaks L7: the limit on requests in flight is not kept.
        IgnoreLimit,
        /// Breaks L8: a duplicate id replaces the first request.
        AcceptDuplicateId,
        /// Breaks L8: a cancellation of `"7"` also cancels `7`.
        ConfuseTextAndNumber,
        /// Breaks L9: a response is sent before messages that were queued earlier.
        AnswerOvertakes,
        /// Breaks L9: a call that is cancelled before it was sent still sends `notifications/cancelled`.
        CancelTheUnsent,
        /// Breaks L1: every eighth frame is lost on its way out.
        DropOutboxEntry,
        /// Breaks L10: a call that was sent is reported as never sent.
        ForgetWhatWasSent,
    }
    around {
        /// L1, L2 (cores): a message that may be a damaged response is refused with its id.
        RefuseUnderAnyId,
        /// Breaks L10 (client): `tasks/cancel` and `resources/unsubscribe` count against the limit of other calls.
        TeardownsUseCallLimit,
        /// Breaks L10 (client): a truncated response to `server/discover` makes the client fall back to `initialize`.
        ReadTornOpening,
        /// Breaks L3 (client): requests that arrive after the response to `server/discover` are answered.
        AnswerBehindDiscover,
        /// Breaks L8 (client): progress of a call is delivered to the oldest call.
        CrossProgress,
        /// Breaks L2 (client): some of the lines that were read are lost before they are looked at.
        LoseLines,
        /// Breaks L5 (client): a call that follows a task waits until its connection is closed, not only until it takes no more calls.
        PauseUntilClosed,
        /// Breaks L5 (HTTP client): a request counts as delivered before the status of its response was read.
        DeliverBeforeStatus,
        /// Breaks L2 (shell, HTTP): changes are not told to subscriptions.
        LoseChanges,
        /// Breaks L2 (shell, HTTP): subscriptions are not acknowledged.
        ForgetAcknowledgements,
        /// Breaks L3 (shell): a subscription that was cancelled is told of changes.
        TellTheCancelled,
        /// Breaks L8 (shell, HTTP): subscriptions get notifications about resources that are not in their filter.
        IgnoreFilters,
        /// Breaks L5 (shell): a subscription that the server ends is not cancelled on the stream that others share.
        EndSilently,
        /// Breaks L7 (shell): the limit on subscriptions is not kept.
        IgnoreSubscriptionLimit,
        /// Breaks L9 (shell): a subscription that ends before its acknowledgement gets a result, not an error.
        EndUnacknowledged,
        /// Breaks L5 (HTTP): a shutdown ends subscriptions with an error.
        FailSubscriptions,
        /// Breaks L5 (shell): a drain whose window is as long as itself leaves no time to stop handlers.
        StopTooLate,
        /// Breaks L5 (shell): the cleanups of a handler that was stopped are not run.
        SkipCleanups,
        /// Breaks L5 (client): calls are taken when the input has ended.
        TakeCallsAtTheEnd,
        /// Breaks L8 (client): an id is used twice now and then.
        RepeatIds,
        /// Breaks L5 (client): no cancellation is sent for a call that timed out.
        TimeOutSilently,
        /// L2, L6 (shell): a panic in a handler is not answered.
        SwallowPanic,
        /// Breaks L5 (shell): a handler that is stopped goes on.
        IgnoreStop,
        /// Breaks L9 (HTTP): a client that comes back gets the event that it names once more.
        ResumeTooEarly,
        /// Breaks L2 (HTTP server): when a response is cut off, its event stream is closed and cannot be resumed.
        CloseWithResponse,
        /// Breaks L2 (HTTP): a hangup of an older client cancels its request.
        CutIsCancellation,
        /// Breaks L5 (HTTP): a hangup of a client of 2026-07-28 does not cancel its request.
        IgnoreHangup,
        /// Breaks L5 (HTTP): a session that is deleted is not ended.
        KeepDeleted,
        /// Breaks L5 (HTTP): sessions are never idle for too long.
        KeepIdle,
        /// Breaks L8 (HTTP): a message of a request is sent on the GET stream.
        CrossStreams,
        /// Breaks L3 (HTTP): what waits to be read of a request stays when it is cancelled.
        KeepUnreadOfCancelled,
        /// Breaks L5 (client): a call that is dropped is not taken back.
        KeepDroppedCalls,
        /// L8, L10 (client): the result of a call is delivered to the oldest pending call.
        CrossCalls,
        /// Breaks L5 (client): the task of a dropped call is not cancelled.
        KeepTasksOfDroppedCalls,
        /// Breaks L5 (client): a task that comes into being when its call has been given up is not heard of.
        IgnoreLateTasks,
        /// Breaks L5 (client): tasks that are followed go on when their client is closed.
        KeepTasksAtClose,
        /// Breaks L1 (client): what a task asks for is answered as often as it is shown.
        AnswerTasksAgain,
        /// Breaks L2 (client): the total time is not kept while a call waits for something else than an answer.
        ForgetTotal,
        /// Breaks L5 (client): a call that waits for anything but a response does not end when its client is closed.
        WaitPastClose,
        /// Breaks L5 (client): a lost connection is noticed only when a task is polled next.
        PollLostTasks,
        /// Breaks L9 (client): changes are reported before `Change::Listening`.
        ReportChangeBeforeListening,
        /// Breaks L5 (client): a `resources/subscribe` that got no response is not followed by an unsubscribe.
        ForgetLostSubscriptions,
        /// Breaks L5 (client): a subscription is not taken back if there is no room for the request.
        UnsubscribeOverLimit,
        /// Breaks L5 (client): a dropped client stays alive until its unsubscribe requests are answered.
        KeepClientWhileUnsubscribing,
        /// Breaks L10 (client): what is kept is given out whatever changes were heard of.
        KeepStale,
        /// Breaks L10 (client): what is kept is given out past its time.
        KeepExpired,
        /// Breaks L10 (client): a call that was sent and lost is retried even if it is not idempotent.
        RepeatHarmful,
        /// Breaks L2 (client): calls have no deadlines.
        ForgetCallDeadlines,
        /// Breaks L3 (client): a question that the server takes back is answered all the same.
        IgnoreCancellations,
        /// Breaks L2 (client): a request of the server runs its handler, and the response is lost.
        SwallowAnswers,
        /// Breaks L10 (client): one call is refused that there is room for.
        LowerCallLimit,
        /// L8, L10 (HTTP client): a request whose connection broke is sent again.
        ResendInterrupted,
        /// Breaks L2 (HTTP client): some of what was read of responses is lost before it is looked at.
        LoseWhatWasRead,
        /// Breaks L2 (HTTP client): a stream that is resumed goes on in the middle of what was half read.
        KeepHalfRead,
        /// Breaks L10 (HTTP client): a request whose connection broke while it was sent is reported as never sent.
        BrokenIsUnsent,
        /// Breaks L5 (HTTP client): the response of a dropped call is still read.
        ReadDroppedResponses,
        /// Breaks L5 (HTTP client): an HTTP request that was aborted goes on.
        KeepAbortedRequests,
        /// Breaks L5 (HTTP client): a client does not close its connection when the server no longer knows its session.
        KeepLostSession,
    }
}

#[cfg(mutants)]
mod switch {
    use super::Mutant;
    use std::cell::Cell;

    thread_local! {
        static ACTIVE: Cell<Option<Mutant>> = const { Cell::new(None) };
    }

    /// Runs `body` with a fault switched on for this thread.
    pub fn with<T>(mutant: Mutant, body: impl FnOnce() -> T) -> T {
        struct MutantResetGuard;
        impl Drop for MutantResetGuard {
            fn drop(&mut self) {
                ACTIVE.set(None);
            }
        }
        ACTIVE.set(Some(mutant));
        let _off = MutantResetGuard;
        body()
    }

    /// Whether this fault is on.
    pub fn is_on(mutant: Mutant) -> bool {
        ACTIVE.get() == Some(mutant)
    }
}

#[cfg(mutants)]
pub use switch::{is_on, with};

/// Whether a fault is switched on: `false` in every build but `--cfg mutants`.
#[doc(hidden)]
#[macro_export]
macro_rules! mutant {
    ($name:ident) => {{
        #[cfg(mutants)]
        {
            $crate::mutant::is_on($crate::mutant::Mutant::$name)
        }
        #[cfg(not(mutants))]
        {
            false
        }
    }};
}
