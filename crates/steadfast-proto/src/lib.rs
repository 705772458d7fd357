//! How an MCP conversation behaves, as a pure state machine.
//!
//! Bytes and events go in, bytes and events come out. Nothing in this crate has a clock, a lock, a thread or an async
//! function, and nothing panics on what a peer sends; that is what makes it possible to try every interleaving of small
//! conversations, to simulate millions of large ones from a seed, and to replay any of them.
//!
//! - [`frame`]: where one message ends and the next begins;
//! - [`envelope`]: what one message is, and [`salvage`]: what can still be read of a bad one;
//! - [`connection`]: the life of requests in both directions, where the laws are kept;
//! - [`encode`]: messages as bytes;
//! - [`http`]: what Streamable HTTP adds, as decisions about values.
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
struct Readme;
