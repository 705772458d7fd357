//! The behaviour of an MCP connection, as a pure state machine.
//!
//! Bytes and events go in, bytes and events come out. Nothing in this crate has a clock, a lock, a thread or an async
//! function, and no input of a peer makes it panic. This makes it possible to try every interleaving of small
//! conversations, to simulate millions of large ones from a seed, and to replay any of them.
//!
//! - [`frame`]: splits a stream of bytes into messages;
//! - [`envelope`]: reads one message, and [`salvage`]: reads the id of a malformed one;
//! - [`connection`]: the life of requests in both directions; it upholds the laws L1 to L10;
//! - [`encode`]: encodes messages;
//! - [`http`]: the rules of Streamable HTTP, as functions of values.
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

/// The example of the README, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDoctests;
