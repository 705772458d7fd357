//! Injected faults (mutants), to show that the checkers of the tests find them.
//!
//! In a build with `--cfg mutants` one injected fault can be switched on for the current thread; in every other build `mutant!`
//! is the constant `false` and no fault is compiled in.

/// Declares the enum of injected faults and its lists `ALL` and `AROUND` from one table, so that no declared fault is left out
/// of the tests.
macro_rules! faults {
    (
        connection { $($(#[$law:meta])* $core:ident,)* }
        around { $($(#[$around_law:meta])* $around:ident,)* }
    ) => {
        /// The injected faults. The documentation of each fault names the law of the README that it breaks.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Mutant {
            $($(#[$law])* $core,)*
            $($(#[$around_law])* $around,)*
        }

        impl Mutant {
            /// Every fault.
            pub const ALL: &[Self] = &[$(Self::$core,)* $(Self::$around,)*];

            /// The injected faults that the fuzz target cannot find, because they need more than one connection
            /// alone: a second connection, a server, a client or HTTP. The simulator finds the injected faults in
            /// `AROUND`.
            pub const AROUND: &[Self] = &[$(Self::$around,)*];
        }
    };
}

faults! {
    connection {
        /// Injected fault that breaks law L1: a response is sent twice.
        AnswerTwice,
        /// Injected fault that breaks laws L1 and L3: after a cancellation by the peer the handler is stopped, but the request
        /// stays open and is still answered.
        AnswerAfterCancel,
        /// Injected fault that breaks law L2: a handler that ends without a response leaves its request open.
        ForgetTheUnanswered,
        /// Injected fault that breaks law L2: the deadlines of handlers are not enforced.
        ForgetDeadlines,
        /// Injected fault that breaks law L3: queued messages about a request are still sent after the request was cancelled.
        KeepFramesOfCancelled,
        /// Injected fault that breaks law L4: a cancellation of a request that is not open panics.
        PanicOnLateCancel,
        /// Injected fault that breaks law L4: a response of a handler to a request that is not open panics.
        PanicOnLateAnswer,
        /// Injected fault that breaks law L6: a message that cannot be parsed closes the connection.
        CloseOnBadBytes,
        /// Injected fault that breaks law L5: a handler that has ended still counts as running.
        ForgetToReap,
        /// Injected fault that breaks law L5: when the connection closes, every second pending call is skipped, as when a table
        /// changes during iteration.
        IterateWhileRemoving,
        /// Injected fault that breaks law L5: when the connection closes, the end of the last pending call is not reported.
        LoseWaiterOnClose,
        /// Injected fault that breaks law L5: the shutdown of a connection has no deadline.
        DrainForever,
        /// Injected fault that breaks law L7: the limit on requests in flight is not enforced.
        IgnoreLimit,
        /// Injected fault that breaks law L8: a second request with the id of an open request replaces the first one.
        AcceptDuplicateId,
        /// Injected fault that breaks law L8: a cancellation of the request `"7"` also cancels the request `7`.
        ConfuseTextAndNumber,
        /// Injected fault that breaks law L9: a response is sent before messages that were queued earlier.
        AnswerOvertakes,
        /// Injected fault that breaks law L9: `notifications/cancelled` is sent for a call that was cancelled before it was
        /// sent.
        CancelTheUnsent,
        /// Injected fault that breaks law L1: every eighth outgoing message is lost.
        DropOutboxEntry,
        /// Injected fault that breaks law L10: a call that was sent is reported as never sent.
        ForgetWhatWasSent,
    }
    around {
        /// Injected fault that breaks laws L1 and L2 (two connections): a message that may be a damaged response is refused
        /// with its id.
        RefuseUnderAnyId,
        /// Injected fault that breaks law L10 (client): `tasks/cancel` and `resources/unsubscribe` count against the limit of
        /// other calls.
        TeardownsUseCallLimit,
        /// Injected fault that breaks law L10 (client): a truncated response to `server/discover` makes the client fall back to
        /// `initialize`.
        ReadTornOpening,
        /// Injected fault that breaks law L3 (client): the client answers requests that arrive after the response to
        /// `server/discover`.
        AnswerBehindDiscover,
        /// Injected fault that breaks law L8 (client): progress of a call is delivered to the oldest pending call.
        CrossProgress,
        /// Injected fault that breaks law L2 (client): some lines of input are lost before they are parsed.
        LoseLines,
        /// Injected fault that breaks law L5 (client): a call that follows a task polls again only when the connection is
        /// closed, not as soon as it refuses calls.
        PauseUntilClosed,
        /// Injected fault that breaks law L5 (HTTP client): a request counts as delivered before the status of its response was
        /// read.
        DeliverBeforeStatus,
        /// Injected fault that breaks law L2 (server): subscriptions are not notified of changes.
        LoseChanges,
        /// Injected fault that breaks law L2 (server): subscriptions are not acknowledged.
        ForgetAcknowledgements,
        /// Injected fault that breaks law L3 (server): a cancelled subscription is still notified of changes.
        TellTheCancelled,
        /// Injected fault that breaks law L8 (server): subscriptions get notifications about resources that are not in their
        /// filter.
        IgnoreFilters,
        /// Injected fault that breaks law L5 (server): when a server ends a subscription on a shared connection, it sends no
        /// `notifications/cancelled`.
        EndSilently,
        /// Injected fault that breaks law L7 (server): the limit on open subscriptions is not enforced.
        IgnoreSubscriptionLimit,
        /// Injected fault that breaks law L9 (server): a subscription that ends before its acknowledgement gets a result
        /// instead of an error.
        EndUnacknowledged,
        /// Injected fault that breaks law L5 (HTTP server): a shutdown ends subscriptions with an error.
        FailSubscriptions,
        /// Injected fault that breaks law L5 (server): handlers may answer until the deadline of the shutdown, so that no time
        /// is left to stop them.
        StopTooLate,
        /// Injected fault that breaks law L5 (server): the cleanups of a stopped handler are not run.
        SkipCleanups,
        /// Injected fault that breaks law L5 (client): calls are accepted after the input has ended.
        TakeCallsAtTheEnd,
        /// Injected fault that breaks law L8 (client): the ids of some requests are used twice.
        RepeatIds,
        /// Injected fault that breaks law L5 (client): no cancellation is sent for a call that timed out.
        TimeOutSilently,
        /// Injected fault that breaks laws L2 and L6 (server): the request of a handler that panics is not answered.
        SwallowPanic,
        /// Injected fault that breaks law L6 (server): the driver polls handlers itself, so that a handler that blocks its
        /// thread delays the driver.
        PollHandlerInDriver,
        /// Injected fault that breaks law L5 (server): a handler that should be stopped continues to run.
        IgnoreStop,
        /// Injected fault that breaks law L9 (HTTP server): a client that resumes an event stream gets the event of its
        /// `Last-Event-ID` once more.
        ResumeTooEarly,
        /// Injected fault that breaks law L2 (HTTP server): when an HTTP response is interrupted, its event stream is closed
        /// and cannot be resumed.
        CloseWithResponse,
        /// Injected fault that breaks law L2 (HTTP server): when a client before 2026-07-28 drops an HTTP response, its session
        /// ends and its request is cancelled.
        CutIsCancellation,
        /// Injected fault that breaks law L5 (HTTP server): when a client since 2026-07-28 drops an HTTP response, its request
        /// is not cancelled.
        IgnoreHangup,
        /// Injected fault that breaks law L5 (HTTP server): a session that the client deletes is not ended.
        KeepDeleted,
        /// Injected fault that breaks law L5 (HTTP server): idle sessions never expire.
        KeepIdle,
        /// Injected fault that breaks law L8 (HTTP server): a message about a request is sent on the GET event stream.
        CrossStreams,
        /// Injected fault that breaks law L3 (HTTP server): unread events of a request stay in the event log when the request
        /// is cancelled.
        KeepUnreadOfCancelled,
        /// Injected fault that breaks law L5 (client): a call whose future is dropped is not cancelled.
        KeepDroppedCalls,
        /// Injected fault that breaks laws L8 and L10 (client): the result of a call is delivered to the oldest pending call.
        CrossCalls,
        /// Injected fault that breaks law L5 (client): the task of a dropped call is not cancelled.
        KeepTasksOfDroppedCalls,
        /// Injected fault that breaks law L5 (client): a late result is ignored, so that the task of a cancelled call is not
        /// cancelled.
        IgnoreLateTasks,
        /// Injected fault that breaks law L5 (client): the tasks that a client follows are not cancelled when the client is
        /// closed.
        KeepTasksAtClose,
        /// Injected fault that breaks law L1 (client): an input request of a task is answered each time it is repeated.
        AnswerTasksAgain,
        /// Injected fault that breaks law L2 (client): the total timeout is not enforced while a call waits for something other
        /// than a response.
        ForgetTotal,
        /// Injected fault that breaks law L5 (client): a call that waits for anything but a response does not end when its
        /// client is closed.
        WaitPastClose,
        /// Injected fault that breaks law L5 (client): a lost connection is noticed only at the next poll of a task.
        PollLostTasks,
        /// Injected fault that breaks law L9 (client): changes are reported before `Change::Listening`.
        ReportChangeBeforeListening,
        /// Injected fault that breaks law L5 (client): after a `resources/subscribe` without a response, the client does not
        /// unsubscribe.
        ForgetLostSubscriptions,
        /// Injected fault that breaks law L5 (client): unsubscribe requests do not wait for a permit, so that they may exceed
        /// the limit of calls and fail.
        UnsubscribeOverLimit,
        /// Injected fault that breaks law L5 (client): a dropped client stays alive until its unsubscribe requests are
        /// answered.
        KeepClientWhileUnsubscribing,
        /// Injected fault that breaks law L10 (client): notifications of changes do not invalidate cached responses.
        KeepStale,
        /// Injected fault that breaks law L10 (client): cached responses are used after they have expired.
        KeepExpired,
        /// Injected fault that breaks law L10 (client): a call that was sent and lost is retried even if it is not idempotent.
        RepeatHarmful,
        /// Injected fault that breaks law L2 (client): calls have no timeouts.
        ForgetCallDeadlines,
        /// Injected fault that breaks law L3 (client): a request of the server is answered although the server has cancelled
        /// it.
        IgnoreCancellations,
        /// Injected fault that breaks law L2 (client): a request of the server runs its handler, but the response is lost.
        SwallowAnswers,
        /// Injected fault that breaks law L10 (client): the limit of calls is one too low, so that a call is refused without
        /// need.
        LowerCallLimit,
        /// Injected fault that breaks laws L8 and L10 (HTTP client): a request whose connection broke is sent again.
        ResendInterrupted,
        /// Injected fault that breaks law L2 (HTTP client): some messages that were read from HTTP responses are lost before
        /// they are handled.
        LoseWhatWasRead,
        /// Injected fault that breaks law L2 (HTTP client): when an event stream is resumed, an event that was read in part is
        /// continued instead of read again.
        KeepHalfRead,
        /// Injected fault that breaks law L10 (HTTP client): a request whose connection broke while it was sent is reported as
        /// never sent.
        BrokenIsUnsent,
        /// Injected fault that breaks law L5 (HTTP client): the HTTP response to a dropped call is still read.
        ReadDroppedResponses,
        /// Injected fault that breaks law L5 (HTTP client): an aborted HTTP request continues.
        KeepAbortedRequests,
        /// Injected fault that breaks law L5 (HTTP client): a client does not close its connection when the server no longer
        /// knows its session.
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

    /// Runs `body` with an injected fault switched on for this thread.
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

    /// Whether the injected fault `mutant` is switched on for the current thread.
    pub fn is_on(mutant: Mutant) -> bool {
        ACTIVE.get() == Some(mutant)
    }
}

#[cfg(mutants)]
pub use switch::{is_on, with};

/// Whether an injected fault is switched on for the current thread; always `false` in a build without
/// `--cfg mutants`.
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
