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
//!                         |      cleanups, before a word of it is written ... until `last_words`
//!                         |      cleanups and the last writes ......... until `deadline`
//!                         v
//!                      Closed    nothing is left, nothing more happens
//! ```
//!
//! A failed write skips the window: nobody would read the answers. There is no way back.
//!
//! The quiet is for clients that end a server's process as soon as it says something after they have left (the first
//! generation of the Python SDK does): what was stopped cleans up before its error is written. It ends with the last cleanup,
//! and in the middle of what cleanups have at the latest.

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
    /// Nothing is written before cleanups have run, or `last_words` is over.
    pub(super) quiet: bool,
    /// When the quiet ends at the latest.
    pub(super) last_words: Moment,
    /// When it is over, whatever is left.
    pub(super) deadline: Moment,
}

impl Drain {
    /// The same drain if handlers are stopped now, before their window is over: the quiet takes half of the time that is left.
    pub(super) fn stopped_at(self, now: Moment) -> Self {
        Self { last_words: self.last_words.min(now + self.deadline.since(now) / 2), ..self }
    }
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
        self.drain().map(|drain| {
            let quiet = drain.quiet.then_some(drain.last_words);
            drain.window.or(quiet).map_or(drain.deadline, |sooner| sooner.min(drain.deadline))
        })
    }
}
