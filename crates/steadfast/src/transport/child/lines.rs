//! Splits the standard error of a process into lines: of limited length, and valid UTF-8 whatever the bytes are.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::command::{StderrLineCallback, StderrTarget};

/// The default maximum length of a line of standard error, in bytes; a longer line is split.
pub(super) const LINE_LIMIT: usize = 16 * 1024;

/// Splits the standard error of a process into lines and calls the callback with each line.
pub(super) struct StderrLineSplitter {
    deliver: Option<StderrLineCallback>,
    partial: Vec<u8>,
    limit: usize,
}

impl StderrLineSplitter {
    /// Creates the splitter; `None` if the standard error of the process is inherited or discarded.
    pub(super) fn new(stderr: StderrTarget, limit: usize, id: u32) -> Option<Self> {
        let deliver: StderrLineCallback = match stderr {
            StderrTarget::Log => {
                Box::new(move |line: &str| tracing::info!(target: "steadfast::child", process = id, "{line}"))
            }
            StderrTarget::Lines(shared) => Box::new(move |line: &str| {
                // A callback that has panicked has poisoned the lock, and is not called again.
                if let Ok(mut deliver) = shared.lock() {
                    deliver(line);
                }
            }),
            StderrTarget::Inherit | StderrTarget::Null => return None,
        };
        // A character has at most four bytes, so every piece contains at least one.
        Some(Self { deliver: Some(deliver), partial: Vec::new(), limit: limit.max(4) })
    }

    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            let (line, rest) = bytes.split_at(end);
            self.extend(line);
            self.end_line();
            bytes = rest.get(1..).unwrap_or_default();
        }
        self.extend(bytes);
    }

    /// Calls the callback with the last line, which has no line break.
    pub(super) fn finish(&mut self) {
        if !self.partial.is_empty() {
            self.end_line();
        }
    }

    fn extend(&mut self, mut bytes: &[u8]) {
        while self.partial.len() + bytes.len() > self.limit {
            let (fits, rest) = bytes.split_at(self.limit.saturating_sub(self.partial.len()));
            self.partial.extend_from_slice(fits);
            bytes = rest;
            self.deliver_piece();
        }
        self.partial.extend_from_slice(bytes);
    }

    /// Calls the callback with a piece of a line that is too long, without the incomplete UTF-8 character at its end.
    fn deliver_piece(&mut self) {
        let incomplete = incomplete_tail(&self.partial);
        let tail = self.partial.split_off(self.partial.len().saturating_sub(incomplete));
        let piece = std::mem::replace(&mut self.partial, tail);
        self.deliver(&piece);
    }

    fn end_line(&mut self) {
        let mut line = std::mem::take(&mut self.partial);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        self.deliver(&line);
        line.clear();
        self.partial = line;
    }

    fn deliver(&mut self, line: &[u8]) {
        let Some(deliver) = &mut self.deliver else { return };
        let text = String::from_utf8_lossy(line);
        // A callback that panics must not end this thread: the process would block, or get SIGPIPE.
        if catch_unwind(AssertUnwindSafe(|| deliver(&text))).is_err() {
            self.deliver = None;
        }
    }
}

/// The number of bytes at the end of `bytes` that are an incomplete UTF-8 character.
fn incomplete_tail(bytes: &[u8]) -> usize {
    for length in 1..=3_usize.min(bytes.len()) {
        let Some(&byte) = bytes.get(bytes.len() - length) else { return 0 };
        let needed = match byte {
            0b1100_0000..=0b1101_1111 => 2,
            0b1110_0000..=0b1110_1111 => 3,
            0b1111_0000..=0b1111_0111 => 4,
            0b1000_0000..=0b1011_1111 => continue,
            _ => return 0,
        };
        return if length < needed { length } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    fn shared(callback: impl FnMut(&str) + Send + 'static) -> Arc<Mutex<StderrLineCallback>> {
        Arc::new(Mutex::new(Box::new(callback)))
    }

    fn collect(limit: usize, parts: &[&[u8]]) -> Vec<String> {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let deliver = StderrTarget::Lines(shared(move |line| sink.lock().unwrap().push(line.to_owned())));
        let mut lines = StderrLineSplitter::new(deliver, limit, 1).unwrap();
        for part in parts {
            lines.push(part);
        }
        lines.finish();
        drop(lines);
        Arc::into_inner(seen).unwrap().into_inner().unwrap()
    }

    #[test]
    fn lines_are_joined_across_reads_and_lose_their_breaks() {
        assert_eq!(collect(100, &[b"on", b"e\ntwo\r\n", b"\n", b"last"]), ["one", "two", "", "last"]);
    }

    #[test]
    fn a_long_line_comes_in_pieces_of_the_limit() {
        assert_eq!(collect(4, &[b"abcdefghij\nk"]), ["abcd", "efgh", "ij", "k"]);
    }

    #[test]
    fn a_line_of_exactly_the_limit_is_one_piece() {
        assert_eq!(collect(4, &[b"abcd\n", b"ef", b"gh", b"\n"]), ["abcd", "efgh"]);
    }

    #[test]
    fn pieces_do_not_cut_characters() {
        assert_eq!(collect(4, &["ab\u{20ac}\u{20ac}d\n".as_bytes()]), ["ab", "\u{20ac}", "\u{20ac}d"]);
    }

    #[test]
    fn bytes_that_are_not_text_are_replaced() {
        assert_eq!(collect(100, &[b"a\xffb\n\xe2\x82\n"]), ["a\u{fffd}b", "\u{fffd}"]);
        assert_eq!(collect(4, &[&[0x80; 9]]).concat(), "\u{fffd}".repeat(9));
    }

    #[test]
    fn a_callback_that_panics_is_not_called_again() {
        let calls = Arc::new(Mutex::new(0));
        let counter = Arc::clone(&calls);
        let deliver = StderrTarget::Lines(shared(move |_| {
            *counter.lock().unwrap() += 1;
            std::panic::resume_unwind(Box::new("wrong"));
        }));
        let mut lines = StderrLineSplitter::new(deliver, 100, 1).unwrap();
        lines.push(b"one\ntwo\n");
        lines.finish();
        assert_eq!(*calls.lock().unwrap_or_else(std::sync::PoisonError::into_inner), 1);
    }
}
