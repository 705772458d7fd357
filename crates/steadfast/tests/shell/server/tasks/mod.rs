//! Calls that run as tasks.

mod calls;
mod extension;
mod input;
mod notifications;
mod store;
