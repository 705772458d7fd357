//! The thread that drivers run on.
//!
//! One thread for all connections of the process, with a small tokio runtime of its own. No handler ever runs on it, so a
//! handler that blocks its thread, or all threads, cannot keep a driver from reading, writing, cancelling or ending.

use std::io;
use std::sync::OnceLock;

use tokio::runtime::{Builder, Handle};

static THREAD: OnceLock<Handle> = OnceLock::new();

/// The runtime of that thread, started if need be.
pub(crate) fn handle() -> io::Result<&'static Handle> {
    if let Some(handle) = THREAD.get() {
        return Ok(handle);
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    // If two threads come here at once, the runtime of the second is dropped, unused.
    if THREAD.set(handle).is_ok() {
        std::thread::Builder::new()
            .name("steadfast-io".to_owned())
            .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    }
    THREAD.get().ok_or_else(|| io::Error::other("the thread for input and output did not start"))
}
