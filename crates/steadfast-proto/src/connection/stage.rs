//! The stages of an MCP connection, from its handshake until it is closed.
//!
//! ```text
//!                      initialize, or a
//!            2026-07-28 request (no change)
//!   Opening ------------------------------> Ready
//!      |                                      |
//!      |   end of input, shutdown, failed     |
//!      +------------------+-------------------+
//!                         v
//!                     Draining   handlers may still answer ............. until `window`
//!                         |      then they fail and are stopped;
//!                         |      cleanups, while output is held back ... until `release_output_at`
//!                         |      cleanups and the last writes ......... until `deadline`
//!                         v
//!                      Closed    nothing is left
//! ```
//!
//! After a failed write, handlers get no time to answer: the peer would not read the responses. A connection never returns to
//! an earlier stage.
//!
//! A server holds back its output (`quiet`) while handlers clean up, because some clients kill the process of a server that
//! writes after they have closed its input (the first generation of the Python SDK does). The output that was held back is
//! written after the last cleanup, or when half of the time for cleanups has passed.

use super::event::CloseCause;
use crate::Moment;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ConnectionStage {
    /// The handshake is not done yet. Requests of a stateless revision (since 2026-07-28) need no handshake.
    Opening,
    /// The handshake is done, or the client has opened a stateless revision.
    Ready,
    /// Shutting down.
    Draining(DrainState),
    /// Closed.
    Closed(CloseCause),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct DrainState {
    pub(super) cause: CloseCause,
    /// The time until which handlers may still answer; `None` after the handlers were stopped.
    pub(super) window: Option<Moment>,
    /// The connection holds back its output until the cleanups of handlers have run, or `release_output_at` has passed.
    pub(super) quiet: bool,
    /// The latest time at which the connection sends the output that it holds back while handlers clean up.
    pub(super) release_output_at: Moment,
    /// The latest time at which the connection that is shutting down closes.
    pub(super) deadline: Moment,
}

impl DrainState {
    /// The state of a shutdown whose handlers are stopped now, before their time to answer is over: output is held back for at
    /// most half of the time that is left.
    pub(super) fn stopped_at(self, now: Moment) -> Self {
        Self { release_output_at: self.release_output_at.min(now + self.deadline.since(now) / 2), ..self }
    }
}

impl ConnectionStage {
    pub(super) fn is_live(self) -> bool {
        matches!(self, Self::Opening | Self::Ready)
    }

    pub(super) fn is_closed(self) -> bool {
        matches!(self, Self::Closed(_))
    }

    pub(super) fn drain(self) -> Option<DrainState> {
        match self {
            Self::Draining(drain) => Some(drain),
            _ => None,
        }
    }

    /// The next deadline of this stage of the connection: only a connection that is shutting down has a deadline.
    pub(super) fn next_deadline(self) -> Option<Moment> {
        self.drain().map(|drain| {
            let quiet = drain.quiet.then_some(drain.release_output_at);
            drain.window.or(quiet).map_or(drain.deadline, |sooner| sooner.min(drain.deadline))
        })
    }
}
