//! Calls that run as tasks.

mod calls;
mod extension;
mod notifications;
