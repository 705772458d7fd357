//! What a client is notified of: changes and log messages.

mod changes;
mod logs;
#[cfg(all(feature = "http", feature = "http-client"))]
mod paused_stream;
mod subscriptions;
