//! The types of the Model Context Protocol.
#![forbid(unsafe_code)]

mod id;

pub use id::RequestId;
