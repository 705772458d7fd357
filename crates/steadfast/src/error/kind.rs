//! The classification of an error: its kind, whose fault it is, and what is known about the call that ended with it.

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A handler returned this error, which is sent as the response to its request.
    Handler,
    /// The peer answered a call with a JSON-RPC error.
    Refused,
    /// The connection was closed.
    Closed,
    /// A deadline passed.
    TimedOut,
    /// The call was cancelled.
    Cancelled,
    /// A limit of this side of the connection was reached, such as the number of calls in flight.
    Limit,
    /// The peer did not declare the required capability, the protocol revision does not have it, or the peer describes
    /// it in a form that this side does not understand, such as a schema in an unknown dialect.
    Unsupported,
    /// The two sides have no revision of the protocol in common, or the peer did not complete the handshake.
    Incompatible,
    /// A value could not be encoded as JSON.
    Encode,
    /// The message cannot be sent: the transport cannot carry it, no authorization could be obtained for it, or the
    /// server redirects it to another origin. A retry of the message fails in the same way.
    Unsendable,
    /// The peer's response could not be decoded as a response to the method.
    Decode,
    /// The result of a tool does not match the tool's own output schema.
    InvalidOutput,
    /// I/O failed below the protocol: reading, writing, or starting or stopping a process.
    Transport,
    /// The server asked the user for input, and the user declined.
    Declined,
    /// The server asked the user for input, and the user dismissed the question without answering.
    Dismissed,
    /// The server asked for input that this client did not give: the client's handler failed, the client has no
    /// handler, or the input requests were malformed.
    Unanswered,
    /// The program used the API wrongly: two tools of one name, for example, or an invalid schema.
    Usage,
}

/// Whose fault an [`Error`](crate::Error) is: who has to change something so that it does not happen again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultParty {
    /// The program on this side of the connection is at fault.
    Local,
    /// The program at the other end of the connection is at fault.
    Peer,
    /// Neither program is at fault: the connection failed, a timeout passed, or a call was cancelled.
    Environment,
}

/// What is known about a call that ended with an [`Error`](crate::Error): whether the peer may have acted on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Nothing of the call reached the peer. A retry of a call that was not sent is safe.
    NotSent,
    /// The peer answered the call with a JSON-RPC error that gives the reason. Most peers send a JSON-RPC error before
    /// they begin any work, but a handler that failed or was shut down halfway may have done part of the work.
    Refused,
    /// The peer did the work of the call, but its response cannot be used.
    Answered,
    /// The call was sent, and it is not known whether the peer acted on it. The outcome is also unknown if the peer
    /// asked for input and did not get it: the peer may have done part of the work before it asked.
    Unknown,
}
