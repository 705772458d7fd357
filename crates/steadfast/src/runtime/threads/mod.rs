//! Every thread that the library starts.
//!
//! | thread | started by | what runs there |
//! |---|---|---|
//! | `steadfast-io` | [`io_thread`] | all drivers of byte streams and of HTTP clients; signals. Never a handler |
//! | `steadfast-http` | [`http_threads`] | the connections and sessions of `serve_http`. Never a handler |
//! | `steadfast-blocking` | [`blocking_pool`] | handlers that are plain functions, at most 256 at once |
//! | `steadfast-watch` | [`watchdog`] | wakes another worker of the user's runtime while a handler blocks one |
//! | `steadfast-log` | [`log`](super::log) | log records that a peer can cause |
//! | `steadfast-input`, `steadfast-output` | `transport::fd::pump` | standard input and output where they cannot be polled |
//! | `steadfast-child`, `-stderr`, `-drain`, `-ending` | `transport::child::keeper` | waits for the process, reads its standard error, ends it in time |
//!
//! `async` handlers run on the workers of the user's tokio runtime. While a client is called in quick succession its driver
//! runs there too: [`driver_migration`].

pub(crate) mod blocking_pool;
pub(crate) mod driver_migration;
#[cfg(feature = "http")]
pub(crate) mod http_threads;
pub(crate) mod io_thread;
pub(crate) mod watchdog;
#[cfg(feature = "http-client")]
pub(crate) mod workers;
