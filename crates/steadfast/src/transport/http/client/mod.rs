//! Streamable HTTP, the client's side: each message is a POST of its own, and the answer comes back in its response.
//!
//! ```text
//!   Client --mailbox--> driver --POST (a task each)--> server
//!                         ^                              |
//!                         +------- messages, ends -------+
//! ```
//!
//! The driver owns the engine. A task carries each message: it tells the driver what came, or how it failed,
//! and above all whether the server may have seen it (law L10). In the older revisions the server names a session, the driver
//! opens the stream on which the server speaks first, and a response that breaks off is resumed where it stopped. Since
//! 2026-07-28 there is none of that: giving up the response is the cancellation.
//!
//! Servers that know nothing newer than HTTP+SSE, the transport of 2024-11-05, are found out and spoken to by the same driver
//! (`legacy_sse`).

mod authorize;
mod driver;
mod exchange;
mod fetch;
mod in_flight;
#[cfg(feature = "legacy-sse")]
mod legacy_sse;
mod outgoing;
mod request;
mod reserved;
mod session;
mod shared;
pub(crate) mod stream;
mod target;
mod task;
mod tool_headers;

pub use authorize::{Attempt, Authorize, Authorizing};
pub(crate) use driver::HttpDriver;
pub use fetch::{Fetch, FetchBody, FetchError, FetchRequest, FetchResponse, Fetching};
pub use target::HttpTarget;
pub(crate) use tool_headers::ToolHeaders;
