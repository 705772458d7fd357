//! Streamable HTTP, client side: each message is a POST of its own, and the server responds in the HTTP response.
//!
//! ```text
//!   Client --mailbox--> driver --POST (one each)--> server
//!                         ^                              |
//!                         +----- messages, failures -----+
//! ```
//!
//! The driver owns the protocol engine. For each message, the driver polls a future that sends the message and reports
//! what the server sent back, or how the POST failed and whether the server may have seen it (law L10). In revisions
//! before 2026-07-28 the server opens a session, the driver opens a stream for server-initiated messages, and a
//! response that breaks off is resumed where it stopped. Revision 2026-07-28 has no sessions, no stream of
//! server-initiated messages and no resumption: closing the HTTP response cancels the request.
//!
//! The connection supplies the method, id and call of a message along with it ([`TransmitKind`]), and a message of the
//! server is parsed once, where it is read ([`Envelope`]).
//!
//! Servers that support nothing newer than HTTP+SSE, the transport of 2024-11-05, are detected, and the same driver
//! handles connections to them (`legacy_sse`).
//!
//! [`TransmitKind`]: steadfast_proto::connection::TransmitKind
//! [`Envelope`]: steadfast_proto::envelope::Envelope

mod authorize;
mod driver;
mod exchange;
mod fetch;
mod in_flight;
#[cfg(feature = "legacy-sse")]
mod legacy_sse;
mod mirrored_headers;
mod shared;
pub(crate) mod stream;
mod target;
mod task;

pub use authorize::{Authorize, OutgoingHttpRequest, RequestAuthorization, RequestAuthorizationFuture};
pub(crate) use driver::HttpClientDriver;
pub use fetch::{
    TransportFetch, TransportFetchBody, TransportFetchError, TransportFetchFuture, TransportFetchRequest,
    TransportFetchResponse,
};
pub(crate) use mirrored_headers::ClientToolHeaders;
pub use target::HttpTarget;
