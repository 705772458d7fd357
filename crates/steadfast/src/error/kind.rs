//! What an error is: its kind, whose fault it is, and what it says about the call that ended with it.

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A handler returned this error as the response to its request.
    Handler,
    /// The peer answered a call with a JSON-RPC error.
    Refused,
    /// The connection was closed.
    Closed,
    /// A deadline passed.
    TimedOut,
    /// The call was cancelled.
    Cancelled,
    /// A limit of this side was reached.
    Limit,
    /// The peer did not declare the capability, its revision does not have it, or it describes it in a form that this side
    /// does not understand, such as a schema in an unknown dialect.
    Unsupported,
    /// The two sides have no revision of the protocol in common, or the peer did not complete the handshake.
    Incompatible,
    /// A value could not be encoded as JSON.
    Encode,
    /// The message cannot be sent: the transport cannot carry it, no authorization could be obtained for it, or the server
    /// redirects it to another origin. A retry fails in the same way.
    Unsendable,
    /// The peer's response could not be decoded as a response to the method.
    Decode,
    /// The result of a tool does not match the tool's own output schema.
    InvalidOutput,
    /// I/O failed below the protocol: reading, writing, or starting or stopping a process.
    Transport,
    /// The user was asked and declined.
    Declined,
    /// The user was asked and dismissed the question without answering.
    Dismissed,
    /// The server asked for input that this client did not give: its handler failed, it has no handler, or the input
    /// requests were malformed.
    Unanswered,
    /// The program used the API wrongly: two tools of one name, for example, or an invalid schema.
    Usage,
}

/// Whose fault an [`Error`](crate::Error) is: who has to change something so that it does not happen again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultParty {
    /// This program.
    Local,
    /// The program at the other end.
    Peer,
    /// Neither program: the connection failed, a timeout passed, or a call was cancelled.
    Environment,
}

/// What is known about a call that ended with an [`Error`](crate::Error): whether the peer may have acted on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Nothing reached the peer. A retry is safe.
    NotSent,
    /// The peer answered with an error that gives the reason. Most errors are sent before any work begins, but a handler that
    /// failed or was shut down halfway may have done part of the work.
    Refused,
    /// The peer did the work, and its response cannot be used.
    Answered,
    /// The call was sent, and it is not known whether the peer acted on it. This is also the outcome if the peer asked for
    /// input and did not get it: it has not finished, but may have done part of the work before it asked.
    Unknown,
}
