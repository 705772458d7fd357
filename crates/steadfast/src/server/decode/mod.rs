//! Values from what a client sent: strings into typed values, and what is wrong with a value that cannot be read.

pub(crate) mod explain;
pub(crate) mod strings;
