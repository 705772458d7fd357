//! How long to wait before a stream is opened again.

use std::time::Duration;

use crate::runtime::Runtime;
use crate::runtime::waiting::{doubled, jittered};

/// How long to wait before a stream is opened again, if the server does not say; it doubles up to the ceiling.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A server that names less than this is asked less often when nothing comes of it.
const SHORTEST_RETRY: Duration = Duration::from_millis(100);
const LONGEST_EMPTY_PAUSE: Duration = Duration::from_secs(5);

/// A server that asks to be left alone for longer than this has gone.
const LONGEST_RETRY: Duration = Duration::from_secs(300);

/// How often in a row a stream is opened again without anything coming of it.
const ATTEMPTS: u32 = 8;

/// How often a stream was opened again, and what came of it.
#[derive(Default)]
pub(super) struct Pace {
    /// How often in a row it could not be opened again.
    attempts: u32,
    /// How often in a row it was opened and nothing came of it: a server may have its client ask for as long as it works.
    empty: u32,
}

impl Pace {
    /// How long to wait before going on; `None` if the server could not be reached often enough.
    pub(super) fn pause(&self, retry: Option<Duration>, runtime: &dyn Runtime) -> Option<Duration> {
        match (self.attempts, retry) {
            (0, Some(retry)) if retry >= SHORTEST_RETRY => Some(retry.min(LONGEST_RETRY)),
            // One who is told to come at once, and finds nothing, comes less and less often.
            (0, Some(retry)) if self.empty == 0 => Some(retry),
            (0, Some(_)) => Some(jittered(runtime, grown(self.empty).min(LONGEST_EMPTY_PAUSE))),
            (attempts, retry) => pause(attempts, retry, runtime),
        }
    }

    /// It is tried again.
    pub(super) fn note_attempt(&mut self) {
        self.attempts += 1;
    }

    /// It was opened again.
    pub(super) fn note_opened(&mut self) {
        self.attempts = 0;
        self.empty = self.empty.saturating_add(1);
    }

    /// Something came of it.
    pub(super) fn note_message(&mut self) {
        self.empty = 0;
    }
}

/// The pause before an attempt; `None` after the last.
pub(super) fn pause(attempt: u32, retry: Option<Duration>, runtime: &dyn Runtime) -> Option<Duration> {
    if attempt >= ATTEMPTS {
        return None;
    }
    let grown = grown(attempt);
    Some(match retry {
        Some(retry) if attempt == 0 => retry.min(LONGEST_RETRY),
        Some(retry) => retry.min(LONGEST_RETRY).max(jittered(runtime, grown)),
        None => jittered(runtime, grown),
    })
}

fn grown(attempt: u32) -> Duration {
    doubled(PAUSE, attempt, LONGEST_PAUSE)
}
