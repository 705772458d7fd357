//! Every thread that the library starts.
//!
//! | thread | how many | started by | what runs there |
//! |---|---|---|---|
//! | `steadfast-io` | one for each [I/O loop](io_loop): one loop for the process, and with HTTP servers as many as the user's runtime has workers. More wait as spares, at least one and at most two or as many as there are loops, and up to 64 together while handlers block them | [`io_loop`], with the first connection; spares by `io_loop::takeover`, with the first handler that is polled on a loop | drivers of byte streams and of HTTP clients, connections, requests and sessions of HTTP servers, I/O of HTTP clients, timers, signals; first polls of handlers that were quick so far |
//! | `steadfast-takeover` | one | `io_loop::takeover`, with the first handler that is polled on a loop | gives an I/O loop to a spare thread when a handler blocks the thread that holds the loop |
//! | `steadfast-blocking` | up to 256 for each tokio runtime | [`blocking_pool`], when a handler needs one | handlers that are plain functions |
//! | `steadfast-watch` | one for each multi-threaded tokio runtime | [`watchdog`], with the first connection there | wakes another worker while a handler blocks one |
//! | `steadfast-log` | one | [`log`](super::log), with the first record | log records that a peer can cause |
//! | `steadfast-input`, `steadfast-output` | one for each descriptor without readiness | [`pump`](crate::transport::fd::pump) | reads or writes that descriptor: a file, a terminal, a pipe that cannot be reopened; outside of Unix also pipes of a child process |
//! | `steadfast-child` | one for each child process | `transport::child::supervisor` | waits for the process, reaps it, ends its process group |
//! | `steadfast-stderr` | one for each child process, unless its standard error is inherited or discarded | `transport::child::supervisor` | reads standard error; runs the callback for its lines |
//! | `steadfast-ending` | one for each child process that is being ended | `transport::child::supervisor` | sends SIGTERM and SIGKILL when the timeouts are over |
//! | `steadfast-drain` | one for each child process that is being ended; Unix only | `transport::child::supervisor` | reads and discards the rest of standard output |
//!
//! Each I/O loop has a current-thread tokio runtime of its own; the library starts no other runtime. An `async` handler that was
//! not quick so far runs on the workers of the user's tokio runtime, and every handler does that is not ready after its first poll.
//! The driver of a client that is called in quick succession runs on the workers, too ([`driver_migration`]). Where an HTTP client
//! resolves names, `reqwest` uses the blocking threads of tokio.

pub(crate) mod blocking_pool;
pub(crate) mod driver_migration;
pub(crate) mod io_loop;
pub(crate) mod watchdog;
pub(crate) mod workers;
