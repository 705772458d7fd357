//! The notifications of a server, as streams: changes and log messages.

pub(crate) mod changes;
pub(crate) mod logs;
