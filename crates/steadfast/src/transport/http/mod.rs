//! Streamable HTTP: servers at one endpoint (feature `http`), and clients of a URL (feature `http-client`).

#[cfg(feature = "http-client")]
pub(crate) mod client;
#[cfg(feature = "http")]
pub(crate) mod server;

#[cfg(feature = "http-client")]
pub use client::{
    Attempt, Authorize, Authorizing, Fetch, FetchBody, FetchError, FetchRequest, FetchResponse, Fetching, HttpTarget,
};
#[cfg(feature = "http")]
pub use server::{Guard, HttpBody, HttpOptions, HttpService, LogLimits, ServingHttp};
