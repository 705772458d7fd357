//! Reads and writes file descriptors: by readiness events where the system supports them, and with threads elsewhere.

#[cfg(unix)]
pub(crate) mod descriptors;
pub(crate) mod input;
pub(crate) mod output;
#[cfg(not(unix))]
#[path = "pump_portable.rs"]
pub(crate) mod pump;
#[cfg(unix)]
pub(crate) mod pump;
#[cfg(unix)]
pub(crate) mod readiness;
