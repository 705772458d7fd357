//! What a drain may take, as the documentation of the limits has it. The code under test is not asked.

use std::time::Duration;

use steadfast_proto::connection::Limits;

/// How long handlers may go on: `drain_window`, unless that leaves less than a tenth of the drain, or less than 250 ms, to
/// stop them.
pub(crate) fn handler_window(limits: &Limits) -> Duration {
    let reserve = Duration::from_millis(250).min(limits.drain_deadline / 10);
    limits.drain_window.min(limits.drain_deadline.saturating_sub(reserve))
}
