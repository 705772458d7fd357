//! Model Context Protocol servers and clients that keep their promises when connections do not.
//!
//! A server is an `impl` block:
//!
//! ```no_run
//! use steadfast::prelude::*;
//!
//! struct Greeter;
//!
//! /// Greets people.
//! #[server]
//! impl Greeter {
//!     /// Says hello.
//!     #[tool(read_only)]
//!     async fn hello(&self, /** Whom to greet */ name: String) -> String {
//!         format!("Hello, {name}!")
//!     }
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), steadfast::Error> {
//!     Greeter.serve_stdio().await
//! }
//! ```
//!
//! It serves every published revision of the protocol. Whatever its tools or its peer do, each request has exactly one
//! end, and the process goes on. The project's README lists the guarantees.
//!
//! - [`mod@server`]: servers, tools, and the [`Context`] of a handler;
//! - [`client`]: clients, in the same process, of a child process, over any stream, or over HTTP;
//! - [`transport`]: the transports;
//! - [`runtime`]: the runtime that drives connections, for those who run it in a simulator;
//! - `model`: the types of the protocol, re-exported here at the root.
//!
//! # Features
//!
//! - `macros` (default): [`macro@server`], [`macro@tool`], [`macro@prompt`] and [`macro@resource`].
//! - `schema-validation` (default): servers check the arguments and structured results of tools whose schemas were
//!   written by hand, and clients check the structured results of tools that they have listed. Without it schemas are
//!   sent and read, but nothing is checked against them; a server with a schema beyond the
//!   [`schema_limits`](crate::server::schema_limits) still cannot be built.
//! - `http`: Streamable HTTP, as a tower service and as a standalone server: [`transport`]`::http`.
//! - `http-client`: clients of servers at a URL: [`transport`]`::http_client`.
#![forbid(unsafe_code)]

// The code that the macros generate also has to work inside this crate's own documentation and tests.
extern crate self as steadfast;

pub mod client;
#[allow(hidden_glob_reexports, reason = "`steadfast::error` is not a path that anyone needs")]
mod error;
pub mod prelude;
pub mod runtime;
pub mod server;
pub mod transport;
mod validation;

pub use schemars;
pub use serde_json;
pub use steadfast_model as model;
pub use steadfast_model::*;
pub use steadfast_proto::Moment;
pub use steadfast_proto::connection::{CancelReason, CloseCause, Limits, Peer, Progress};

pub use crate::client::Client;
pub use crate::error::{Error, ErrorKind, Fault, Outcome};
pub use crate::server::{
    Context, IntoPrompt, IntoReply, IntoResource, IntoServer, Prompt, Resource, ResourceTemplate, Serve, Server,
    ServerBuilder, Structured, Tool, ToolError,
};
#[cfg(feature = "macros")]
pub use steadfast_macros::{prompt, resource, server, tool};

/// The result of a tool: any error can be returned with `?`.
pub type Result<T, E = ToolError> = std::result::Result<T, E>;

#[doc(hidden)]
pub use crate::server::private as __private;

/// The examples of the README, compiled.
#[cfg(all(doctest, feature = "macros"))]
#[doc = include_str!("../../../README.md")]
struct Readme;
