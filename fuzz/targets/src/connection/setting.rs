//! What a connection is made with: who we are, and limits that are near enough to be reached.

use std::time::Duration;

use steadfast_model::{ClientCapabilities, Implementation, ServerCapabilities};
use steadfast_proto::connection::{ClientDescription, ClientOrServerDescription, Limits, ServerDescription};

use super::operation::Side;

pub(super) fn hello_of(side: Side) -> ClientOrServerDescription {
    let info = Implementation::new("fuzz", "0");
    match side {
        Side::Server => {
            let capabilities = ServerCapabilities::new().with_tools(true).with_logging();
            ClientOrServerDescription::from(ServerDescription::new(info, capabilities))
        }
        Side::Client => {
            let capabilities = ClientCapabilities::new().with_roots(true).with_sampling();
            ClientOrServerDescription::from(ClientDescription::new(info, capabilities))
        }
    }
}

/// 0: tight. 1: the defaults. 2: tight, and no time for anything. 3: one of each, and all the time there is.
pub(super) fn limits_of(choice: u8) -> Limits {
    let mut limits = Limits::default();
    if choice % 4 == 1 {
        return limits;
    }
    (limits.depth, limits.batch, limits.calls, limits.queued_logs) = (16, 4, 3, 2);
    (limits.in_flight, limits.in_flight_bytes, limits.outbox_bytes) = (3, 300, 2_000);
    limits.handler_deadline = Some(Duration::from_secs(5));
    match choice % 4 {
        2 => {
            (limits.drain_window, limits.drain_deadline) = (Duration::ZERO, Duration::ZERO);
            (limits.progress_interval, limits.handler_deadline) = (Duration::ZERO, Some(Duration::ZERO));
        }
        3 => {
            (limits.batch, limits.calls, limits.queued_logs, limits.in_flight) = (1, 1, 1, 1);
            limits.handler_deadline = None;
        }
        _ => {}
    }
    limits
}
