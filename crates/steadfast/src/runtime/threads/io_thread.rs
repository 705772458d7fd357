//! The I/O thread, on which drivers run.
//!
//! All connections of the process share this one thread and its current-thread tokio runtime. It never runs a handler, so
//! handlers that block their threads cannot delay a driver that has to read, write, cancel or close.

use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};

use tokio::runtime::{Builder, Handle};

static THREAD: OnceLock<Handle> = OnceLock::new();
static STARTING: Mutex<()> = Mutex::new(());

/// The runtime of the I/O thread, which is started by the first call.
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
