//! Connects to a server: the command-line options, the server's process or the login, and the connection during one command.

pub(crate) mod authorization;
pub(crate) mod login;
pub(crate) mod process;
pub(crate) mod session;
pub(crate) mod signals;
pub(crate) mod target;
