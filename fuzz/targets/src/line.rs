//! Lines out of bytes: however the bytes are split, the lines are those that a plain split at the newlines gives, and
//! what is held stays within the limit.
//!
//! Input: a byte for the limit, a byte for the way to split, the stream.

use steadfast_proto::frame::line::{InputLine, LineDecoder};
use steadfast_proto::salvage::SalvagedFields;

use crate::pieces::Pieces;

/// What is kept of a line that is too long, to find its id: one id of the longest kind, and enough to see that it is longer.
const SALVAGE_HOLDS: usize = 4098;

/// Enough to see something grow that should not.
const FLOOD: usize = SALVAGE_HOLDS + 1024;

/// Runs the target.
pub fn run(bytes: &[u8]) {
    let [limit, split, stream @ ..] = bytes else { return };
    let limit = usize::from(*limit);
    let expected = plain_split(stream, limit);
    let whole = decode(std::iter::once(stream), limit);
    assert_eq!(whole, expected, "the lines of the whole");
    let bytewise = decode(stream.chunks(1), limit);
    assert_eq!(bytewise, expected, "the lines, byte by byte");
    let uneven = decode(Pieces { rest: stream, state: *split }, limit);
    assert_eq!(uneven, expected, "the lines, in uneven pieces");
    flood(stream, limit);
}

#[derive(Debug, PartialEq, Eq)]
enum Owned {
    Message(Vec<u8>),
    TooLong(SalvagedFields),
}

impl From<InputLine<'_>> for Owned {
    fn from(line: InputLine<'_>) -> Self {
        match line {
            InputLine::Message(bytes) => Self::Message(bytes.to_vec()),
            InputLine::TooLong(salvaged) => Self::TooLong(salvaged),
        }
    }
}

fn decode<'a>(pieces: impl Iterator<Item = &'a [u8]>, limit: usize) -> Vec<Owned> {
    let mut decoder = LineDecoder::new(limit);
    let mut lines = Vec::new();
    for piece in pieces {
        let mut input = piece;
        while let Some(line) = decoder.next(&mut input) {
            lines.push(Owned::from(line));
        }
        assert!(input.is_empty(), "the decoder stops when its input is used up");
        assert_bounded(&decoder, limit);
    }
    lines.extend(decoder.finish().map(Owned::from));
    assert_eq!(decoder.finish(), None, "a stream ends once");
    lines
}

/// What the decoder promises, written in the simplest way there is.
fn plain_split(stream: &[u8], limit: usize) -> Vec<Owned> {
    let lines = stream.split(|byte| *byte == b'\n').map(|line| {
        if line.len() > limit {
            return Some(Owned::TooLong(SalvagedFields::from_bytes(line)));
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let blank = line.iter().all(|byte| b" \t\r".contains(byte));
        (!blank).then(|| Owned::Message(line.to_vec()))
    });
    lines.flatten().collect()
}

/// A line that does not end: it is read, it is not kept, and the next line is read as if nothing had been.
fn flood(stream: &[u8], limit: usize) {
    let endless: Vec<u8> = stream.iter().copied().filter(|byte| *byte != b'\n').collect();
    if endless.is_empty() {
        return;
    }
    let endless = endless.repeat(FLOOD.div_ceil(endless.len()));
    let mut decoder = LineDecoder::new(limit);
    for mut input in endless.chunks(512) {
        assert_eq!(decoder.next(&mut input), None);
        assert_bounded(&decoder, limit);
    }
    let mut input: &[u8] = b"\nx\n";
    assert!(matches!(decoder.next(&mut input), Some(InputLine::TooLong(_))));
    if limit > 0 {
        assert_eq!(decoder.next(&mut input), Some(InputLine::Message(b"x")));
    }
}

fn assert_bounded(decoder: &LineDecoder, limit: usize) {
    let most = limit.max(SALVAGE_HOLDS);
    assert!(decoder.held() <= most, "{} bytes are held, and {most} is the limit", decoder.held());
}
