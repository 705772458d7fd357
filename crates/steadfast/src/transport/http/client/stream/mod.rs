//! Server-sent events: those of a response, those of the stream on which the server speaks first, and when a broken one is
//! opened again.

pub(crate) mod backoff;
pub(crate) mod events;
pub(crate) mod server_stream;
