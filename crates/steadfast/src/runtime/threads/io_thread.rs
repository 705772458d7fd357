//! The thread that drivers run on.
//!
//! One thread for all connections of the process, with a small tokio runtime of its own. No handler ever runs on it, so a
//! handler that blocks its thread, or all threads, cannot keep a driver from reading, writing, cancelling or ending.

use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};

use tokio::runtime::{Builder, Handle};

static THREAD: OnceLock<Handle> = OnceLock::new();
static STARTING: Mutex<()> = Mutex::new(());

/// The runtime of that thread, started if need be.
pub(crate) fn handle() -> io::Result<&'static Handle> {
    if let Some(handle) = THREAD.get() {
        return Ok(handle);
    }
    let _one_at_a_time = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = THREAD.get() {
        return Ok(handle);
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let thread = std::thread::Builder::new().name("steadfast-io".to_owned());
    thread.spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    Ok(THREAD.get_or_init(|| handle))
}
