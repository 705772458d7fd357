//! Server-sent events: however the bytes are split, the events are those that a plain reading of the whole gives, what is
//! held stays within the limit, and what is written is read back.
//!
//! Input: a byte for the limit, a byte for the way to split, the stream.

use std::time::Duration;

use steadfast_proto::frame::sse::{SseEvent, ReceivedSseEvent, SseDecoder, SseDecoderOutput, write_comment};

use crate::pieces::Pieces;

/// More than any input has.
const PLENTY: usize = 1 << 20;

/// Runs the target.
pub fn run(bytes: &[u8]) {
    let [limit, split, stream @ ..] = bytes else { return };
    for limit in [usize::from(*limit), PLENTY] {
        let whole = decode(std::iter::once(stream), limit);
        assert_eq!(decode(stream.chunks(1), limit), whole, "the events, byte by byte");
        let pieces = Pieces { rest: stream, state: *split };
        assert_eq!(decode(pieces, limit), whole, "the events, in uneven pieces");
        if limit == PLENTY {
            assert_eq!(whole, plain(stream), "the events of a plain reading");
        }
    }
    write_and_read(stream, usize::from(*split));
}

/// What a decoder came to.
#[derive(Debug, PartialEq, Eq)]
struct Read {
    found: Vec<SseDecoderOutput>,
    id: Option<String>,
    retry: Option<Duration>,
}

fn decode<'a>(pieces: impl Iterator<Item = &'a [u8]>, limit: usize) -> Read {
    let mut decoder = SseDecoder::new(limit);
    let mut found = Vec::new();
    for piece in pieces {
        let mut input = piece;
        while let Some(event) = decoder.next(&mut input) {
            found.push(event);
        }
        assert!(input.is_empty(), "the decoder stops when its input is used up");
        // A newline is kept behind the last line of data, and the colon of a comment.
        assert!(decoder.held() <= limit + 1, "{} bytes are held, and {limit} is the limit", decoder.held());
    }
    Read { found, id: decoder.last_event_id().map(str::to_owned), retry: decoder.retry() }
}

/// The rules of server-sent events, written in the simplest way there is.
fn plain(stream: &[u8]) -> Read {
    let stream = stream.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stream);
    let mut read = Read { found: Vec::new(), id: None, retry: None };
    let (mut data, mut name, mut id) = (None::<Vec<u8>>, String::new(), None);
    for line in lines(stream) {
        if line.is_empty() {
            read.id.clone_from(&id);
            let name = std::mem::take(&mut name);
            if let Some(data) = data.take() {
                read.found.push(SseDecoderOutput::Message(ReceivedSseEvent { id: id.as_deref().map(Into::into), name, data }));
            }
            continue;
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => match &mut data {
                Some(data) => data.extend([b"\n", value].concat()),
                None => data = Some(value.to_vec()),
            },
            b"event" => name = String::from_utf8_lossy(value).into_owned(),
            // An id that is not UTF-8 clears the last one, as an empty id does: it could not be sent back in `Last-Event-ID`.
            b"id" if !value.contains(&0) => {
                id = std::str::from_utf8(value).ok().filter(|id| !id.is_empty()).map(str::to_owned);
            }
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                let number = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
                read.retry = number.map(Duration::from_millis).or(read.retry);
            }
            _ => {}
        }
    }
    read
}

/// The lines that have an end.
fn lines(stream: &[u8]) -> Vec<Vec<u8>> {
    let mut lines = Vec::new();
    let mut line = Vec::new();
    let mut bytes = stream.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\r' => {
                bytes.next_if_eq(&b'\n');
                lines.push(std::mem::take(&mut line));
            }
            b'\n' => lines.push(std::mem::take(&mut line)),
            other => line.push(other),
        }
    }
    lines
}

/// What the encoder writes of anything is what the decoder reads.
fn write_and_read(bytes: &[u8], at: usize) {
    let (first, rest) = bytes.split_at(at.min(bytes.len()));
    let (id, name) = (String::from_utf8_lossy(first), String::from_utf8_lossy(rest));
    let retry = Some(Duration::from_millis(at as u64));
    let mut out = Vec::new();
    write_comment(&name, &mut out);
    SseEvent { id: Some(&id), name: Some(&name), retry, data: Some(rest) }.write(&mut out);
    SseEvent { data: Some(first), ..SseEvent::default() }.write(&mut out);
    let id = Some(one_line(&id)).filter(|id| !id.is_empty());
    let message = |name: &str, data: &[u8]| {
        SseDecoderOutput::Message(ReceivedSseEvent { id: id.map(Into::into), name: name.to_owned(), data: with_plain_ends(data) })
    };
    let expected = vec![message(one_line(&name), rest), message("", first)];
    let read = decode(std::iter::once(out.as_slice()), PLENTY);
    assert_eq!(read, Read { found: expected, id: id.map(str::to_owned), retry }, "what was written");
}

fn one_line(text: &str) -> &str {
    text.split(['\r', '\n', '\0']).next().unwrap_or_default()
}

fn with_plain_ends(data: &[u8]) -> Vec<u8> {
    let ended = [data, b"\n"].concat();
    // The last line has its end from here, unless a carriage return has taken it.
    let mut lines = lines(&ended);
    if data.ends_with(b"\r") {
        lines.push(Vec::new());
    }
    lines.join(&b'\n')
}
