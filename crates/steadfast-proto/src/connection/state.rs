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
//!                         |      then they are answered for and stopped;
//!                         |      cleanups and the last writes ......... until `deadline`
//!                         v
//!                      Closed    nothing is left, nothing more happens
//! ```
//!
//! A failed write skips the window: nobody would read the answers. There is no way back.

use super::event::CloseCause;
use crate::Moment;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// No handshake yet. Requests of 2026-07-28 need none.
    Opening,
    /// An older revision was negotiated.
    Ready,
    /// Ending.
    Draining(Drain),
    /// Ended.
    Closed(CloseCause),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Drain {
    pub(super) cause: CloseCause,
    /// Until when handlers may still answer; `None` once they were stopped.
    pub(super) window: Option<Moment>,
    /// When it is over, whatever is left.
    pub(super) deadline: Moment,
}

impl Stage {
    pub(super) fn is_live(self) -> bool {
        matches!(self, Self::Opening | Self::Ready)
    }

    pub(super) fn is_closed(self) -> bool {
        matches!(self, Self::Closed(_))
    }

    pub(super) fn drain(self) -> Option<Drain> {
        match self {
            Self::Draining(drain) => Some(drain),
            _ => None,
        }
    }

    /// When the stage itself wants to be woken.
    pub(super) fn next_deadline(self) -> Option<Moment> {
        self.drain().map(|drain| drain.window.map_or(drain.deadline, |window| window.min(drain.deadline)))
    }
}
