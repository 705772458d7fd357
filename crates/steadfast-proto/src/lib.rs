//! The behaviour of an MCP connection, as a pure state machine.
//!
//! The state machine of a connection takes bytes and events as input, and returns bytes and events. The crate
//! `steadfast-proto` has no clock, no lock, no thread and no async function, and no input of a peer makes it panic.
//! Tests can therefore try every interleaving of small conversations, simulate millions of large conversations from a
//! seed, and replay any of them.
//!
//! - [`frame`]: splits a stream of bytes into messages;
//! - [`envelope`]: parses one message, and [`salvage`]: finds the id of a malformed message;
//! - [`connection`]: the state of all requests in both directions; it upholds the laws L1 to L10 of the README;
//! - [`encode`]: encodes messages;
//! - [`http`]: the rules of Streamable HTTP, as functions without I/O.
#![forbid(unsafe_code)]

pub mod connection;
#[cfg(not(feature = "coverage"))]
mod coverage;
#[cfg(feature = "coverage")]
pub mod coverage;
pub mod encode;
pub mod envelope;
pub mod frame;
pub mod http;
mod json;
mod moment;
#[doc(hidden)]
pub mod mutant;
pub mod salvage;

pub use moment::Moment;

/// Compiles and runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDoctests;
