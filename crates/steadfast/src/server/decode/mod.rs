//! Decoding of values from clients: strings into typed values, and explanations of decoding errors.

pub(crate) mod explain;
pub(crate) mod strings;
