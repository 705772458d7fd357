//! One connection at work: the engine around the core, the drivers that carry its messages, and the mailbox through which
//! everything else reaches it.

pub(crate) mod call_result;
pub(crate) mod calls;
pub(crate) mod driver;
pub(crate) mod engine;
pub(crate) mod exchange;
pub(crate) mod heartbeat;
pub(crate) mod mailbox;
pub(crate) mod notifications;
