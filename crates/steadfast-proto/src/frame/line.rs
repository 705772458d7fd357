//! Messages separated by newlines, as on stdio, Unix sockets and TCP.
//!
//! The line decoder accepts bytes in chunks of any size, joins the chunks of a line, and never buffers more than the limit: a
//! longer line is skipped to its end and returned as [`InputLine::TooLong`] with the id that could be salvaged from the line.
//! The line decoder never interprets a message, and never fails: it always continues with the next line.

use crate::salvage::{MalformedMessageScanner, SalvagedFields};

/// One line that the line decoder returns, which is a message or was too long.
#[derive(Debug, PartialEq, Eq)]
pub enum InputLine<'a> {
    /// The bytes of a line that is not blank, without the newline.
    Message(&'a [u8]),
    /// A line that was longer than the limit; its bytes were dropped.
    TooLong(SalvagedFields),
}

/// Splits a stream of bytes into lines.
///
/// ```
/// use steadfast_proto::frame::line::{InputLine, LineDecoder};
/// let mut decoder = LineDecoder::new(1024);
/// let mut input: &[u8] = b"{\"a\":1}\r\n\n{\"b\"";
/// assert_eq!(decoder.next(&mut input), Some(InputLine::Message(b"{\"a\":1}")));
/// assert_eq!(decoder.next(&mut input), None); // the second line is not whole yet
/// let mut input: &[u8] = b":2}\n";
/// assert_eq!(decoder.next(&mut input), Some(InputLine::Message(b"{\"b\":2}")));
/// ```
#[derive(Debug, Clone)]
pub struct LineDecoder {
    limit: usize,
    /// The beginning of an unfinished line or, if `returned` is set, the line that the last call of `next` or `finish`
    /// returned.
    held: Vec<u8>,
    returned: bool,
    /// Set while the decoder skips a line that is longer than the limit.
    skipping: Option<MalformedMessageScanner>,
}

/// The largest capacity of a line buffer that is kept for reuse. A larger line buffer is freed after its line was read.
const KEPT_CAPACITY: usize = 64 * 1024;

impl LineDecoder {
    /// A decoder for lines of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, held: Vec::new(), returned: false, skipping: None }
    }

    /// The number of buffered bytes of an unfinished line. Of a line that is longer than the limit, only a possible id is
    /// buffered.
    pub fn held(&self) -> usize {
        let line = if self.returned { 0 } else { self.held.len() };
        line + self.skipping.as_ref().map_or(0, MalformedMessageScanner::held)
    }

    /// The next line, taking bytes from the front of `input`. Returns `None` if `input` ends before the line does;
    /// the next call continues the line.
    pub fn next<'a, 'input: 'a>(&'a mut self, input: &mut &'input [u8]) -> Option<InputLine<'a>> {
        self.release();
        loop {
            let Some(end) = memchr::memchr(b'\n', input) else {
                let rest = std::mem::take(input);
                self.hold(rest);
                return None;
            };
            let (line, rest) = input.split_at_checked(end)?;
            *input = rest.get(1..).unwrap_or_default();
            if let Some(mut salvage) = self.skipping.take() {
                salvage.feed(line);
                return Some(InputLine::TooLong(salvage.finish()));
            }
            if self.held.is_empty() {
                if line.len() > self.limit {
                    return Some(InputLine::TooLong(SalvagedFields::from_bytes(line)));
                }
                match trimmed(line) {
                    Some(line) => return Some(InputLine::Message(line)),
                    None => continue,
                }
            }
            self.hold(line);
            if let Some(line) = self.return_held() {
                // The borrow checker does not see that the loop ends here, so `held` is borrowed again.
                return match line {
                    BufferedLine::Message => trimmed(&self.held).map(InputLine::Message),
                    BufferedLine::TooLong(salvaged) => Some(InputLine::TooLong(salvaged)),
                };
            }
        }
    }

    /// Handles the end of the stream: returns the buffered bytes, which are the last line without a newline.
    pub fn finish(&mut self) -> Option<InputLine<'_>> {
        self.release();
        match self.return_held()? {
            BufferedLine::Message => trimmed(&self.held).map(InputLine::Message),
            BufferedLine::TooLong(salvaged) => Some(InputLine::TooLong(salvaged)),
        }
    }

    /// Frees the line that the previous call of `next` or `finish` returned.
    fn release(&mut self) {
        if self.returned {
            self.returned = false;
            self.held.clear();
            if self.held.capacity() > KEPT_CAPACITY {
                self.held = Vec::new();
            }
        }
    }

    fn hold(&mut self, bytes: &[u8]) {
        if let Some(salvage) = &mut self.skipping {
            salvage.feed(bytes);
        } else if self.held.len() + bytes.len() > self.limit {
            let mut salvage = MalformedMessageScanner::default();
            salvage.feed(&self.held);
            salvage.feed(bytes);
            self.skipping = Some(salvage);
            self.held = Vec::new();
        } else {
            self.held.extend_from_slice(bytes);
        }
    }

    fn return_held(&mut self) -> Option<BufferedLine> {
        if let Some(salvage) = self.skipping.take() {
            return Some(BufferedLine::TooLong(salvage.finish()));
        }
        if trimmed(&self.held).is_none() {
            self.held.clear();
            return None;
        }
        self.returned = true;
        Some(BufferedLine::Message)
    }
}

enum BufferedLine {
    Message,
    TooLong(SalvagedFields),
}

/// The line without the carriage return of a CRLF; `None` if nothing but white space is left.
fn trimmed(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let blank = line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'));
    (!blank).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use steadfast_model::RequestId;

    #[derive(Debug, PartialEq, Eq, Clone)]
    enum OwnedLine {
        Message(Vec<u8>),
        TooLong(Option<RequestId>),
    }

    fn decode(chunks: &[&[u8]], limit: usize) -> Vec<OwnedLine> {
        let mut decoder = LineDecoder::new(limit);
        let mut lines = Vec::new();
        let own = |line: InputLine<'_>| match line {
            InputLine::Message(bytes) => OwnedLine::Message(bytes.to_vec()),
            InputLine::TooLong(salvaged) => OwnedLine::TooLong(salvaged.id),
        };
        for chunk in chunks {
            let mut input = *chunk;
            while let Some(line) = decoder.next(&mut input) {
                lines.push(own(line));
            }
            assert!(decoder.held() <= limit);
        }
        lines.extend(decoder.finish().map(own));
        lines
    }

    fn message(text: &str) -> OwnedLine {
        OwnedLine::Message(text.as_bytes().to_vec())
    }

    #[test]
    fn lines_are_joined_and_split_across_chunks() {
        assert_eq!(decode(&[b"ab", b"c\nde", b"\n", b"f"], 64), [message("abc"), message("de"), message("f")]);
    }

    #[test]
    fn blank_lines_are_skipped_and_carriage_returns_stripped() {
        assert_eq!(decode(&[b"\n\r\n  \t\r\nab\r\n", b"\r", b"\n"], 64), [message("ab")]);
    }

    #[test]
    fn a_line_at_the_limit_passes_and_one_over_it_does_not() {
        assert_eq!(decode(&[b"abcd\n"], 4), [message("abcd")]);
        assert_eq!(decode(&[b"abcde\nxy\n"], 4), [OwnedLine::TooLong(None), message("xy")]);
        assert_eq!(decode(&[b"abc", b"de", b"f\nxy\n"], 4), [OwnedLine::TooLong(None), message("xy")]);
    }

    #[test]
    fn the_id_of_a_line_that_is_too_long_is_salvaged_at_any_position() {
        let long = format!(r#"{{"params":"{}","id":"q","method":"m"}}"#, "x".repeat(100));
        let (first, second) = long.as_bytes().split_at(50);
        assert_eq!(decode(&[first, second, b"\n"], 16), [OwnedLine::TooLong(Some(RequestId::from("q")))]);
    }

    #[test]
    fn a_long_line_leaves_no_large_buffer_behind() {
        let mut decoder = LineDecoder::new(1 << 20);
        let long = vec![b'x'; 1 << 19];
        let mut input: &[u8] = &long;
        assert_eq!(decoder.next(&mut input), None);
        let mut input: &[u8] = b"\nab\n";
        assert!(matches!(decoder.next(&mut input), Some(InputLine::Message(line)) if line.len() == 1 << 19));
        assert!(matches!(decoder.next(&mut input), Some(InputLine::Message(b"ab"))));
        assert!(decoder.held.capacity() <= KEPT_CAPACITY);
    }

    #[test]
    fn an_endless_line_is_not_buffered() {
        let mut decoder = LineDecoder::new(16);
        for piece in std::iter::once(&b"{\"id\":"[..]).chain(std::iter::repeat_n(&b"[[[[[[[["[..], 10_000)) {
            let mut input = piece;
            assert_eq!(decoder.next(&mut input), None);
        }
        assert!(decoder.held() < 5_000, "{}", decoder.held());
    }

    proptest! {
        #[test]
        fn the_split_of_the_bytes_does_not_matter(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b' '), Just(b'a'), Just(0xff_u8)], 0..80),
            cut in proptest::collection::vec(0_usize..80, 0..6),
        ) {
            let whole = decode(&[&bytes], 8);
            let mut cuts: Vec<usize> = cut.into_iter().map(|at| at.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(decode(&chunks, 8), whole);
        }
    }
}
