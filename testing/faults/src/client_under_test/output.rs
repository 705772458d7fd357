//! What the client under test has written so far, and waiting for more of it.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::failure::{Verdict, ensure};
use crate::limits::CHECK_TIMEOUT;

/// The lines that the client under test has written so far.
#[derive(Default)]
pub(super) struct ReceivedLines {
    pub(super) lines: Mutex<(Vec<Value>, bool)>,
    more: Condvar,
}
impl ReceivedLines {
    pub(super) fn take(&self, line: &str) {
        let value = serde_json::from_str(line).unwrap_or_else(|_| json!({ "invalid_command": line }));
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).0.push(value);
        self.more.notify_all();
    }

    pub(super) fn end(&self) {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.more.notify_all();
    }

    /// Waits for a line. Each is looked at once.
    pub(super) fn wait<T>(&self, what: &str, mut look: impl FnMut(&Value) -> Option<T>) -> Verdict<T> {
        let deadline = Instant::now() + CHECK_TIMEOUT;
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let mut looked = 0;
        loop {
            if let Some(found) = lines.0[looked..].iter().find_map(&mut look) {
                return Ok(found);
            }
            looked = lines.0.len();
            let left = deadline.saturating_duration_since(Instant::now());
            ensure!(!lines.1, "the client under test ended while the check waited for {what}");
            ensure!(!left.is_zero(), "waited {CHECK_TIMEOUT:?} for {what}");
            lines = self.more.wait_timeout(lines, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(super) fn wait_for_end(&self) -> Verdict {
        let start = Instant::now();
        while !self.lines.lock().unwrap_or_else(PoisonError::into_inner).1 {
            ensure!(
                start.elapsed() < CHECK_TIMEOUT,
                "the output of the client under test is open although it has ended"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}
