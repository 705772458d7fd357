//! The connection of a client: its target, how a connection is opened, and how a lost one is replaced.

pub(crate) mod connect;
pub(crate) mod live;
pub(crate) mod opening;
pub(crate) mod reconnect;
pub(crate) mod reconnecting;
pub(crate) mod target;
