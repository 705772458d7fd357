//! What a server sends without being asked, as streams: changes and log messages.

pub(crate) mod changes;
pub(crate) mod logs;
