//! Threads and runtimes: what runs where, and what happens when a runtime is gone.

#[cfg(unix)]
mod driver_migration;
mod io_loop;
mod isolation;
mod lost_runtime;
#[cfg(all(unix, feature = "http", feature = "http-client"))]
mod signals;
