//! Every thread that the library starts.
//!
//! | thread | how many | started by | what runs there |
//! |---|---|---|---|
//! | `steadfast-io` | one | [`io_thread`], with the first connection | drivers of byte streams and of HTTP clients, I/O of HTTP clients, the listeners of HTTP servers, sessions of HTTP services that are mounted in another server, timers, signals. Never a handler |
//! | `steadfast-http` | as many as the user's runtime has workers | [`http_threads`], with the first HTTP server | connections, requests and sessions of HTTP servers. Never a handler |
//! | `steadfast-blocking` | up to 256 for each tokio runtime | [`blocking_pool`], when a handler needs one | handlers that are plain functions |
//! | `steadfast-watch` | one for each multi-threaded tokio runtime | [`watchdog`], with the first connection there | wakes another worker while a handler blocks one |
//! | `steadfast-log` | one | [`log`](super::log), with the first record | log records that a peer can cause |
//! | `steadfast-input`, `steadfast-output` | one for each descriptor without readiness | [`pump`](crate::transport::fd::pump) | reads or writes that descriptor: a file, a terminal, a pipe that cannot be reopened; outside of Unix also pipes of a child process |
//! | `steadfast-child` | one for each child process | `transport::child::supervisor` | waits for the process, reaps it, ends its process group |
//! | `steadfast-stderr` | one for each child process, unless its standard error is inherited or discarded | `transport::child::supervisor` | reads standard error; runs the callback for its lines |
//! | `steadfast-ending` | one for each child process that is being ended | `transport::child::supervisor` | sends SIGTERM and SIGKILL when the timeouts are over |
//! | `steadfast-drain` | one for each child process that is being ended; Unix only | `transport::child::supervisor` | reads and discards the rest of standard output |
//!
//! `steadfast-io` and each `steadfast-http` have a current-thread tokio runtime of their own; the library starts no other runtime.
//! `async` handlers run on the workers of the user's tokio runtime, and so does the driver of a client that is called in quick
//! succession ([`driver_migration`]). Where an HTTP client resolves names, `reqwest` uses the blocking threads of tokio.

pub(crate) mod blocking_pool;
pub(crate) mod driver_migration;
#[cfg(feature = "http")]
pub(crate) mod http_threads;
pub(crate) mod io_thread;
pub(crate) mod watchdog;
pub(crate) mod workers;
