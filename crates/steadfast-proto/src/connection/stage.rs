//! The stages of a connection.
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
//! A failed write skips the window: the peer would not read the responses. A connection never returns to an earlier stage.
//!
//! Output is held back (`quiet`) because some clients kill the process of a server that writes after they have closed its input
//! (the first generation of the Python SDK does): handlers clean up before their errors are written. The output is released
//! after the last cleanup, or when half of the time for cleanups has passed.

use super::event::CloseCause;
use crate::Moment;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ConnectionStage {
    /// No handshake yet. Stateless requests need none.
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
    /// Until when handlers may still answer; `None` after they were stopped.
    pub(super) window: Option<Moment>,
    /// Output is held back until cleanups have run, or `release_output_at` has passed.
    pub(super) quiet: bool,
    /// When the output that a draining connection holds back is released at the latest.
    pub(super) release_output_at: Moment,
    /// When the draining connection closes at the latest.
    pub(super) deadline: Moment,
}

impl DrainState {
    /// This drain with handlers stopped now, before their window is over: output is held back for half of the time that is left.
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

    /// The next deadline of this stage of the connection: only a draining connection has one.
    pub(super) fn next_deadline(self) -> Option<Moment> {
        self.drain().map(|drain| {
            let quiet = drain.quiet.then_some(drain.release_output_at);
            drain.window.or(quiet).map_or(drain.deadline, |sooner| sooner.min(drain.deadline))
        })
    }
}
