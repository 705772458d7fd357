//! Attempts to break the laws on the client's side, by whoever had no part in writing it.

#[cfg(unix)]
mod children;
mod closing;
#[cfg(all(feature = "http", feature = "http-client"))]
mod http;
#[cfg(all(feature = "http", feature = "http-client"))]
mod pausing;
mod runtimes;
