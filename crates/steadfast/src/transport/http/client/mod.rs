//! Streamable HTTP, client side: each message is a POST of its own, and the server responds in the HTTP response.
//!
//! ```text
//!   Client --mailbox--> driver --POST (one each)--> server
//!                         ^                              |
//!                         +----- messages, failures -----+
//! ```
//!
//! The driver owns the engine. It polls a future for each message, which sends it and reports what the server sent back, or how
//! the request failed and whether the server may have seen it (law L10). In the older revisions the server opens a session, the driver
//! opens a stream for the messages that the server sends by itself, and a response that breaks off is resumed where it stopped.
//! 2026-07-28 has none of these: closing the response cancels the request.
//!
//! What a message is (method, id, call) comes with it from the connection ([`TransmitKind`]), and a message of the server is
//! parsed once, where it is read ([`Envelope`]).
//!
//! Servers that know nothing newer than HTTP+SSE, the transport of 2024-11-05, are detected, and served by the same driver
//! (`legacy_sse`).
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

pub use authorize::{Authorize, RequestAuthorization, RequestAuthorizationFuture};
pub(crate) use driver::HttpClientDriver;
pub use fetch::{
    TransportFetch, TransportFetchBody, TransportFetchError, TransportFetchFuture, TransportFetchRequest,
    TransportFetchResponse,
};
pub(crate) use mirrored_headers::ClientToolHeaders;
pub use target::HttpTarget;
