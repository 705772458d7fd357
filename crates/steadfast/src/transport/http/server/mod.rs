//! Streamable HTTP: a server behind one endpoint, in both eras.
//!
//! [`HttpService`] is a tower service that mounts in axum or hyper at any path; [`Serve::serve_http`](crate::Serve) puts an
//! HTTP server around it.
//!
//! - 2026-07-28: each POST is a connection of its own. It is answered with JSON if there is nothing but the answer, and with
//!   events as soon as there is something to say before it. A client that hangs up has cancelled.
//! - Up to 2025-11-25: `initialize` opens a session, and the session is the connection. Its requests go on although the
//!   client is cut off; what they say is kept for a while and can be resumed by `Last-Event-ID`.
//! - HTTP+SSE, the transport of 2024-11-05, is there for clients that know no other if [`HttpOptions::legacy_sse`] says so:
//!   one stream of events is the connection, and when it closes everything that runs for it is stopped.
//!
//! What a request means is decided by [`steadfast_proto::http`]; this module carries bytes.
//!
//! ```
//! use steadfast::Server;
//! use steadfast::transport::http::{HttpOptions, HttpService};
//!
//! let server = Server::builder("clock", "1.0.0").build();
//! // Mount it with `Router::new().route_service("/mcp", service)`.
//! let service = HttpService::new(server, HttpOptions::new().allow_origin("https://app.example.com"));
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

pub use body::HttpBody;
pub use options::HttpOptions;
pub use serve::ServingHttp;
pub use service::HttpService;
pub use steadfast_proto::http::guard::Guard;
pub use steadfast_proto::http::resume::LogLimits;
