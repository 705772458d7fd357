//! The facts of a call, and its result.

use steadfast::{CallToolResult, Error, ErrorKind, Outcome};
use steadfast_proto::Moment;

use crate::observation::message::Id;

/// A call of the program's.
pub(in crate::client) struct CallFacts {
    pub(in crate::client) began: Moment,
    pub(in crate::client) ended: Option<(Moment, CallResult)>,
    /// Of its rounds.
    pub(in crate::client) ids: Vec<Id>,
    /// The server has reported progress, or asked back: its deadline is not what it was.
    pub(in crate::client) prolonged: bool,
    /// How often the server has begun it.
    pub(in crate::client) executions: usize,
    /// As many calls as may wait did so when it was made.
    pub(in crate::client) at_limit: bool,
    /// It was cancelled from elsewhere.
    pub(in crate::client) cancelled: bool,
    /// The last progress that it got, and whether there may be more.
    pub(in crate::client) progressed: f64,
    pub(in crate::client) hears: bool,
    /// The tasks that it became, by the requests that were answered with them.
    pub(in crate::client) tasks: Vec<(Id, String)>,
    /// The one that the client follows.
    pub(in crate::client) task: Option<String>,
    /// The same, if it is to be cancelled.
    pub(in crate::client) unwanted: Option<String>,
}
/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::client) enum CallResult {
    Done(String),
    Failed(ErrorKind, Outcome),
    Dropped,
}

impl CallResult {
    /// What kind of end it is, for people.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Done(_) => "call: done".to_owned(),
            Self::Failed(kind, outcome) => format!("call: {kind:?}, {outcome:?}"),
            Self::Dropped => "call: dropped".to_owned(),
        }
    }

    pub(in crate::client) fn of(ended: Result<CallToolResult, Error>) -> Self {
        match ended {
            Ok(result) => {
                Self::Done(result.content.first().and_then(|content| content.as_text()).unwrap_or("").to_owned())
            }
            Err(error) => Self::Failed(error.kind(), error.outcome()),
        }
    }
}
