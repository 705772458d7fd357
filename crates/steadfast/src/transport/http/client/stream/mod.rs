//! Event streams on the client: the stream of a response, the stream of server-initiated messages, and the backoff
//! before a broken stream is reopened.

pub(crate) mod backoff;
pub(crate) mod events;
pub(crate) mod server_stream;
