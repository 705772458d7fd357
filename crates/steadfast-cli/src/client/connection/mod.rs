//! Connecting to a server: what the options ask for, the server's process or login, and the session around one request.

pub(crate) mod authorization;
pub(crate) mod login;
pub(crate) mod process;
pub(crate) mod session;
pub(crate) mod signals;
pub(crate) mod target;
