//! Streamable HTTP, server side: one endpoint for all revisions.
//!
//! [`HttpService`] is a tower service that mounts in axum or hyper at any path; [`Serve::serve_http`](crate::Serve) puts an
//! HTTP server around it.
//!
//! - 2026-07-28: each POST is a connection of its own. The HTTP response is JSON if it holds only the JSON-RPC
//!   response, and an event stream as soon as another message precedes that response. A client that disconnects has
//!   cancelled its request.
//! - Up to 2025-11-25: `initialize` opens a session, and the session is the connection. The requests of a session go on
//!   while the client is disconnected; their messages are stored for a while, and the client can resume the event
//!   streams with `Last-Event-ID`.
//! - HTTP+SSE, the transport of 2024-11-05, serves clients that support no other transport if
//!   [`HttpServerOptions::legacy_sse`] is set: one event stream is the connection, and when it closes, the handlers of
//!   its requests are stopped.
//!
//! [`steadfast_proto::http`] decides what an HTTP request means; this module reads and writes HTTP.
//!
//! ```
//! use steadfast::Server;
//! use steadfast::transport::http::{HttpServerOptions, HttpService};
//!
//! let server = Server::builder("clock", "1.0.0").build();
//! // Mount it with `Router::new().route_service("/mcp", service)`.
//! let service = HttpService::new(server, HttpServerOptions::new().allow_origin("https://app.example.com"));
//! # drop(service);
//! ```

mod body;
mod exchange;
mod incoming;
mod keep_alive;
#[cfg(feature = "legacy-sse")]
mod legacy_sse;
mod load;
mod options;
mod post;
mod reply;
mod serve;
mod service;
mod session;
mod sessions;
mod socket;

pub use body::HttpServiceBody;
pub use options::HttpServerOptions;
pub use serve::ServeHttpBuilder;
pub use service::HttpService;
pub use steadfast_proto::http::origin_policy::OriginPolicy;
pub use steadfast_proto::http::resume::SseEventLogLimits;
