//! Streamable HTTP and HTTP+SSE, on both sides.

#[cfg(feature = "http-client")]
pub(crate) mod client;
mod server;
