//! The rows on Streamable HTTP: what clients, sockets, sessions and tools do wrong.

mod calls;
mod extreme_calls;
mod frames;
mod garbage;
mod hang_ups;
mod many_calls;
mod reference_server;
mod sessions;
mod signals;
mod smuggling;
mod streams;
mod wire;

pub(super) use calls::{BLOCKED, CANCELLATION, DUPLICATE_ID, PANIC};
pub(super) use extreme_calls::ROW as EXTREME_CALLS;
pub(super) use garbage::ROW as GARBAGE;
pub(super) use hang_ups::ROW as HANG_UPS;
pub(super) use many_calls::ROW as SLEEPERS;
pub(super) use sessions::ROW as SESSIONS;
pub(super) use signals::ROW as SIGNALS;
pub(super) use smuggling::{GUARD, SMUGGLING};
pub(super) use streams::{LAST_EVENT_ID, UNREAD};
