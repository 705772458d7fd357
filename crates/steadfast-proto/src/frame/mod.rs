//! Framing: splits a stream of bytes into messages.

pub mod line;
pub mod sse;
