//! Handlers that panic or block.

pub(super) mod blocked_threads;
pub(super) mod blocked_workers;
pub(super) mod panic;
