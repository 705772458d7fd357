//! Server-sent events: those of a response, those of the stream of messages that the server sends by itself, and the backoff before a
//! broken stream is reopened.

pub(crate) mod backoff;
pub(crate) mod events;
pub(crate) mod server_stream;
