//! Streamable HTTP: servers at one endpoint (feature `http`), and clients of a URL (feature `http-client`).

#[cfg(feature = "http-client")]
pub(crate) mod client;
#[cfg(feature = "http")]
pub(crate) mod server;

#[cfg(feature = "http-client")]
pub use client::{
    Authorize, HttpTarget, OutgoingHttpRequest, RequestAuthorization, RequestAuthorizationFuture, TransportFetch,
    TransportFetchBody, TransportFetchError, TransportFetchFuture, TransportFetchRequest, TransportFetchResponse,
};
#[cfg(feature = "http")]
pub use server::{HttpServerOptions, HttpService, HttpServiceBody, OriginPolicy, ServeHttpBuilder, SseEventLogLimits};
