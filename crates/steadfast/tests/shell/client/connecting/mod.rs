//! How a client opens a connection: the handshake, the revision, child processes, and how it fails.

mod failures;
mod handshake;
#[cfg(unix)]
mod processes;
mod revisions;
