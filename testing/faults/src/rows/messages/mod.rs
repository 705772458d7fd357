//! Messages of a client that are wrong, too many, too large, too late or in the wrong order.

pub(super) mod bad_lines;
pub(super) mod cancellation;
mod cancellation_races;
pub(super) mod duplicate_id;
pub(super) mod extreme_calls;
pub(super) mod handshake;
pub(super) mod many_calls;
pub(super) mod unknown_responses;
pub(super) mod waiting_on_client;
