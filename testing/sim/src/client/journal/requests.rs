//! The facts of a request: of the client, and of the server.

use steadfast_proto::Moment;

use crate::observation::message::Id;

/// A question of the server's.
pub(in crate::client) struct QuestionFacts {
    /// The request on whose response it was asked over HTTP, if any.
    pub(in crate::client) within: Option<Id>,
    pub(in crate::client) receipt: Option<usize>,
    /// It was not known yet which revision the server speaks.
    pub(in crate::client) early: bool,
    pub(in crate::client) answers: usize,
    /// When nothing could run any more after the client had read it, so that the client has taken it in.
    pub(in crate::client) processed_at: Option<Moment>,
    /// It was cancelled, and the receipt of that if the client knew of the request; with the request on whose response it was.
    pub(in crate::client) taken_back: bool,
    pub(in crate::client) withdrawn: Option<(usize, Option<Id>)>,
    /// The client knows that it was.
    pub(in crate::client) silenced: bool,
}
/// A request as the client wrote it.
#[derive(Default)]
pub(in crate::client) struct RequestFacts {
    pub(in crate::client) kind: Kind,
    /// It has a task cancelled.
    pub(in crate::client) cancels_task: bool,
    /// It cancels a task or a subscription: such requests have limits of their own.
    pub(in crate::client) takes_back: bool,
    /// The connection that it was made on.
    pub(in crate::client) link: usize,
    pub(in crate::client) written: Moment,
    pub(in crate::client) cancelled: bool,
    /// The client has dropped its response (HTTP).
    pub(in crate::client) given_up: bool,
    pub(in crate::client) answers: Vec<(Option<usize>, ResponseKind)>,
    /// An answer was read, and the client has had the time to look at it.
    pub(in crate::client) finished: bool,
    /// The state that the server sent with a request for input in place of a result.
    pub(in crate::client) state: Option<String>,
    pub(in crate::client) faults: Vec<Fault>,
    /// How often it was made again.
    pub(in crate::client) again: usize,
}

/// What a request is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::client) enum Kind {
    Opening,
    Ping,
    Call,
    Task,
    Listen,
    /// Of the older revisions: to a resource, or not any more.
    Subscription,
    #[default]
    Other,
}

/// The content of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::client) enum ResponseKind {
    Result,
    Error,
    Unreadable,
    AskBack,
    /// Half of it.
    Torn,
    /// It goes on as a task.
    Task,
    /// The task goes on.
    TaskWorks,
    TaskCompleted,
    /// It is completed, and has no result.
    TaskEmpty,
    TaskFailed,
    TaskCancelled,
}

impl ResponseKind {
    /// Whether the call is over with it.
    pub(in crate::client) fn decides(self) -> bool {
        let of_task = matches!(self, Self::TaskEmpty | Self::TaskFailed | Self::TaskCancelled);
        self.is_result() || of_task || matches!(self, Self::Error | Self::Unreadable)
    }

    pub(in crate::client) fn is_result(self) -> bool {
        matches!(self, Self::Result | Self::TaskCompleted)
    }
}

/// What became of a request below the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::client) enum Fault {
    /// It never reached the server.
    Unsent,
    Broken,
    Status(u16),
}
