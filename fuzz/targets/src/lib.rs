//! What the fuzz targets do with their bytes.
//!
//! Each module is one target: a function that takes any bytes, does with them what it describes, and panics if a promise
//! of `steadfast-proto` or `steadfast-model` does not hold. Nothing here needs a fuzzer, a nightly compiler, a clock or
//! luck: the same bytes do the same thing again, so an input that once found something is a test for good.

pub mod connection;
pub mod envelope;
pub mod http_headers;
pub mod line;
mod members;
pub mod message;
mod pieces;
pub mod resume;
pub mod sse;

/// What a target does with an input.
pub type Run = fn(&[u8]);

/// Every target, by the name of its folder in the corpus.
pub const TARGETS: &[(&str, Run)] = &[
    ("line", line::run),
    ("envelope", envelope::run),
    ("message", message::run),
    ("connection", connection::run),
    ("sse", sse::run),
    ("http_headers", http_headers::run),
    ("resume", resume::run),
];
