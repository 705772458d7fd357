//! What all messages share: ids, metadata, errors, pages, and the types that join a method to its parameters and result.

pub(crate) mod cache;
pub(crate) mod cancel;
pub(crate) mod discover;
pub mod error;
pub(crate) mod id;
pub(crate) mod initialize;
pub(crate) mod input;
pub mod meta;
pub mod notification;
pub(crate) mod page;
pub(crate) mod progress;
pub mod request;
pub(crate) mod subscription;
