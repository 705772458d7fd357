//! Model Context Protocol servers and clients that keep their promises when connections do not.
#![cfg_attr(not(unix), forbid(unsafe_code))]

// So that what the macros write works inside this crate's own documentation and tests.
extern crate self as steadfast;

pub mod client;
#[allow(hidden_glob_reexports, reason = "`steadfast::error` is not a path that anyone needs")]
mod error;
pub mod prelude;
pub mod runtime;
pub mod server;
pub mod transport;

pub use steadfast_model as model;
pub use steadfast_model::*;
pub use steadfast_proto::connection::{CancelReason, CloseCause, Limits, Progress};

pub use client::Client;
pub use error::{Error, ErrorKind, Fault, Outcome};
pub use server::{Context, IntoReply, IntoServer, Serve, Server, ServerBuilder, Structured, Tool, ToolError};
#[cfg(feature = "macros")]
pub use steadfast_macros::{server, tool};

/// The result of a tool: any error goes through `?`.
pub type Result<T, E = ToolError> = std::result::Result<T, E>;

#[doc(hidden)]
pub use server::private as __private;
