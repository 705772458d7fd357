//! The cache of a client: which results it holds, for how long, and what invalidates them.

mod entries;
mod invalidation;
#[cfg(all(feature = "http", feature = "http-client"))]
mod over_http;
mod reconnecting;
mod tool_definitions;
