//! A client of HTTP/1.1, as much of it as the servers here need: requests, responses, connections, sessions and
//! streams.

pub(crate) mod connection;
pub(crate) mod request;
pub(crate) mod session;
pub(crate) mod subscription;
