//! A running connection: the engine around the protocol core, the driver that moves the bytes, and the mailbox through
//! which handlers and callers send commands to the driver.

pub(crate) mod call_result;
pub(crate) mod calls;
pub(crate) mod driver;
pub(crate) mod engine;
pub(crate) mod exchange;
pub(crate) mod heartbeat;
pub(crate) mod mailbox;
pub(crate) mod notification_handlers;
pub(crate) mod notifications;
mod output_buffer;
