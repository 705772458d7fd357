//! The heartbeat of a connection: regular pings.
//!
//! Every transport notices a peer that closes its end. The heartbeat is for a peer that stays connected and has stopped
//! responding: a process that hangs, a machine that was put to sleep. The heartbeat never closes a connection itself.

use std::sync::Arc;
use std::time::Duration;

use steadfast_model::Method;
use steadfast_proto::connection::{CallEnd, NotSentReason};

use crate::runtime::{DriverMailbox, OutboundCallOptions, PendingCall, Runtime};

/// Sends a ping at every interval, and completes when a ping timed out: the ping had no response when the next ping was
/// due, or could not even be written because the peer does not read. Peers whose revision has no ping, and peers that
/// have not initialized the connection, are not pinged.
pub(crate) async fn ping_timeout(mailbox: Arc<DriverMailbox>, runtime: Arc<dyn Runtime>, interval: Duration) {
    let mut timer = runtime.timer();
    loop {
        timer.reset(Some(runtime.now() + interval));
        std::future::poll_fn(|cx| timer.poll(cx)).await;
        let options =
            OutboundCallOptions { timeout: Some(interval), exempt_from_limit: true, ..OutboundCallOptions::default() };
        match PendingCall::new(&mailbox, Method::Ping, None, options).await {
            CallEnd::TimedOut { .. } => break,
            CallEnd::Closed { .. } | CallEnd::NotSent(NotSentReason::Closed) => {
                return std::future::pending().await;
            }
            // An error response shows too that the peer is alive.
            _ => {}
        }
    }
    tracing::warn!(waited = ?interval, "ping timed out: closing the connection");
}
