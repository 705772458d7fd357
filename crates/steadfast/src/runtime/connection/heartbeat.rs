//! A heartbeat: asks now and then whether the peer is there.
//!
//! A peer that closes its end is noticed without this, on every transport. This is for those that stay connected and have
//! stopped: a process that hangs, a machine that was put to sleep. It never ends a connection itself.

use std::sync::Arc;
use std::time::Duration;

use steadfast_model::Method;
use steadfast_proto::connection::{CallEnd, CallRefused};

use crate::runtime::{CallOptions, Mailbox, PendingCall, Runtime};

/// Completes when a ping was not answered until the next was due, or could not even be written: a peer that takes nothing any
/// more has stopped too. Peers whose revision has no pings, and those that have not opened the connection, are not asked.
pub(crate) async fn lost(mailbox: Arc<Mailbox>, runtime: Arc<dyn Runtime>, every: Duration) {
    let mut timer = runtime.timer();
    loop {
        timer.reset(Some(runtime.now() + every));
        std::future::poll_fn(|cx| timer.poll(cx)).await;
        let options = CallOptions { timeout: Some(every), ..CallOptions::default() };
        match PendingCall::new(&mailbox, Method::Ping, None, options).await {
            CallEnd::TimedOut { .. } => break,
            CallEnd::Closed { .. } | CallEnd::NotMade(CallRefused::Closed) => {
                return std::future::pending().await;
            }
            // An error is a sign of life too.
            _ => {}
        }
    }
    tracing::warn!(waited = ?every, "a ping was not answered: the connection is given up");
}
