//! Server-sent events, as Streamable HTTP uses them: an encoder for servers, a decoder for clients.
//!
//! The SSE encoder writes one event into one buffer, so that the event is sent with one write. The SSE decoder accepts bytes in
//! chunks of any size and all three line endings, never buffers more than its limit, and never fails: a longer event is skipped
//! to its end and returned as [`SseDecoderOutput::TooLong`]. Neither the encoder nor the decoder interprets the data.

use std::sync::Arc;
use std::time::Duration;

/// One server-sent event that a server writes to an event stream. Fields of the event that are `None` are not
/// written.
///
/// ```
/// use steadfast_proto::frame::sse::SseEvent;
/// let mut out = Vec::new();
/// SseEvent { id: Some("0-1"), data: Some(b"{}"), ..SseEvent::default() }.write(&mut out);
/// assert_eq!(out, b"id: 0-1\ndata: {}\n\n");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The id that a client sends as `Last-Event-ID` to resume after this event.
    pub id: Option<&'a str>,
    /// The event type; absent means `message`.
    pub name: Option<&'a str>,
    /// How long a client should wait before it reconnects to the event stream.
    pub retry: Option<Duration>,
    /// The data of the server-sent event. If the data is absent, a client takes over the other fields of the event
    /// but delivers no event.
    pub data: Option<&'a [u8]>,
}

impl SseEvent<'_> {
    /// Appends the encoded server-sent event to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.reserve(self.data.map_or(0, <[u8]>::len) + 64);
        if let Some(id) = self.id {
            field(b"id", one_line(id), out);
        }
        if let Some(name) = self.name {
            field(b"event", one_line(name), out);
        }
        if let Some(retry) = self.retry {
            field(b"retry", retry.as_millis().to_string().as_bytes(), out);
        }
        if let Some(data) = self.data {
            each_line(data, |line| field(b"data", line, out));
        }
        out.push(b'\n');
    }
}

/// Appends an SSE comment, which clients ignore: a keep-alive, so that proxies do not close an idle event stream.
pub fn write_comment(text: &str, out: &mut Vec<u8>) {
    each_line(text.as_bytes(), |line| field(b"", line, out));
    out.push(b'\n');
}

fn field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.push(b':');
    if !value.is_empty() {
        out.push(b' ');
        out.extend_from_slice(value);
    }
    out.push(b'\n');
}

/// The first line of an event's id or name: the text is cut at the first line ending, so that clients do not read the rest as
/// another field.
fn one_line(text: &str) -> &[u8] {
    let end = text.find(['\n', '\r', '\0']).unwrap_or(text.len());
    text.as_bytes().get(..end).unwrap_or_default()
}

fn each_line(mut text: &[u8], mut line: impl FnMut(&[u8])) {
    while let Some(end) = memchr::memchr2(b'\n', b'\r', text) {
        let (before, rest) = text.split_at_checked(end).unwrap_or_default();
        line(before);
        text = rest.strip_prefix(b"\r\n").or_else(|| rest.get(1..)).unwrap_or_default();
    }
    line(text);
}

/// What the SSE decoder returns for one event, which may have been too long to decode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SseDecoderOutput {
    /// An event.
    Message(ReceivedSseEvent),
    /// An event that was longer than the limit; its bytes were dropped.
    TooLong,
}

/// A server-sent event that was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedSseEvent {
    /// The id of the newest event that had an id, which a client sends as `Last-Event-ID` when it reconnects.
    pub id: Option<Arc<str>>,
    /// The event type; empty means `message`.
    pub name: String,
    /// The data of the event; empty for an event that only sets the id.
    pub data: Vec<u8>,
}

/// Splits a stream of bytes into server-sent events.
///
/// ```
/// use steadfast_proto::frame::sse::{SseDecoderOutput, SseDecoder};
/// let mut decoder = SseDecoder::new(1024);
/// let mut input: &[u8] = b": hello\r\nid: 7\rda";
/// assert_eq!(decoder.next(&mut input), None);
/// let mut input: &[u8] = b"ta: {}\n\n";
/// let Some(SseDecoderOutput::Message(message)) = decoder.next(&mut input) else { panic!() };
/// assert_eq!((message.id.as_deref(), &*message.data), (Some("7"), &b"{}"[..]));
/// ```
#[derive(Debug, Clone)]
pub struct SseDecoder {
    limit: usize,
    /// The beginning of an unfinished line of the event stream. Of an SSE comment, only the colon is kept.
    line: Vec<u8>,
    /// The `data` lines of the SSE event that is being read, each followed by a newline.
    data: Vec<u8>,
    /// The event type, as bytes until the event ends: as text, invalid UTF-8 would take up to three times the memory.
    name: Vec<u8>,
    /// The id of the server-sent event that is being read.
    id: Option<Arc<str>>,
    /// The id of the last complete server-sent event.
    last_id: Option<Arc<str>>,
    retry: Option<Duration>,
    /// No line of the event stream has ended yet: the first line may begin with a byte order mark.
    at_start: bool,
    /// The last line ended with a carriage return, so a line feed that follows belongs to the same line ending.
    after_return: bool,
    /// The decoder skips the line that it is reading.
    line_too_long: bool,
    /// The decoder skips the event that it is reading.
    too_long: bool,
}

impl SseDecoder {
    /// A decoder for server-sent events of at most about `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            data: Vec::new(),
            name: Vec::new(),
            id: None,
            last_id: None,
            retry: None,
            at_start: true,
            after_return: false,
            line_too_long: false,
            too_long: false,
        }
    }

    /// The `Last-Event-ID` that a client sends when it reconnects to an event stream. The last event id is that of a
    /// complete event: an incomplete event has to be sent again.
    pub fn last_event_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// How long the client should wait before it reconnects, if the server has set this time.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Takes over the last event id and the retry time from the decoder of a previous HTTP response of the same event stream.
    pub fn carry_over(&mut self, before: &Self) {
        self.id.clone_from(&before.last_id);
        self.last_id.clone_from(&before.last_id);
        self.retry = before.retry;
    }

    /// Whether the event that is being read is already longer than the limit. The decoder returns [`SseDecoderOutput::TooLong`]
    /// only at the end of the event, which may never come.
    pub fn is_too_long(&self) -> bool {
        self.too_long
    }

    /// The current number of buffered bytes of an unfinished event.
    pub fn held(&self) -> usize {
        // An id that was carried over from the last event was counted there.
        let carried = |id: &&Arc<str>| self.last_id.as_ref().is_some_and(|last| Arc::ptr_eq(id, last));
        let new_id = self.id.as_ref().filter(|id| !carried(id)).map_or(0, |id| id.len());
        self.line.len() + self.data.len() + self.name.len() + new_id
    }

    /// The next server-sent event, taking bytes from the front of `input`. Returns `None` if `input` ends before the
    /// event does; the next call continues the event. An event that is unfinished when the stream ends is dropped.
    pub fn next(&mut self, input: &mut &[u8]) -> Option<SseDecoderOutput> {
        loop {
            // An empty chunk does not change whether the next one begins with a line feed.
            if !input.is_empty() && std::mem::take(&mut self.after_return) {
                *input = input.strip_prefix(b"\n").unwrap_or(input);
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', input) else {
                let rest = std::mem::take(input);
                self.hold(rest);
                return None;
            };
            let (line, rest) = input.split_at_checked(end)?;
            self.hold(line);
            self.after_return = rest.first() == Some(&b'\r');
            *input = rest.get(1..).unwrap_or_default();
            let found = self.end_line();
            if found.is_some() {
                return found;
            }
        }
    }

    fn hold(&mut self, bytes: &[u8]) {
        let Some(first) = self.line.first().or_else(|| bytes.first()) else { return };
        if *first == b':' && !self.line_too_long {
            self.line.clear();
            self.line.push(b':');
        } else if self.line_too_long || self.held() + bytes.len() > self.limit {
            self.line_too_long = true;
            self.too_long = true;
            self.line = Vec::new();
            self.data = Vec::new();
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self) -> Option<SseDecoderOutput> {
        let mut line = std::mem::take(&mut self.line);
        let mut text = line.as_slice();
        if std::mem::take(&mut self.at_start) {
            text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        }
        let dropped = std::mem::take(&mut self.line_too_long);
        if text.is_empty() && !dropped {
            return self.end_event();
        }
        let colon = memchr::memchr(b':', text);
        let (name, value) = match colon.and_then(|at| text.split_at_checked(at)) {
            Some((name, value)) => {
                let value = value.get(1..).unwrap_or_default();
                (name, value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (text, &b""[..]),
        };
        match name {
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => self.name = value.to_vec(),
            b"id" if !value.contains(&0) => {
                // An empty id resets the last one, and so does one that is not UTF-8: a client could not send it back.
                self.id = std::str::from_utf8(value).ok().filter(|id| !id.is_empty()).map(Arc::from);
            }
            b"retry" => self.retry = milliseconds(value).or(self.retry),
            // Comments and unknown fields.
            _ => {}
        }
        line.clear();
        self.line = line;
        None
    }

    fn end_event(&mut self) -> Option<SseDecoderOutput> {
        self.last_id.clone_from(&self.id);
        let name = std::mem::take(&mut self.name);
        let mut data = std::mem::take(&mut self.data);
        if std::mem::take(&mut self.too_long) {
            return Some(SseDecoderOutput::TooLong);
        }
        // The newline after the last line is not part of the data; without any line there is no event.
        data.pop()?;
        let name = String::from_utf8_lossy(&name).into_owned();
        Some(SseDecoderOutput::Message(ReceivedSseEvent { id: self.id.clone(), name, data }))
    }
}

fn milliseconds(value: &[u8]) -> Option<Duration> {
    let digits = std::str::from_utf8(value).ok()?;
    let only_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    only_digits.then(|| digits.parse().ok()).flatten().map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(chunks: &[&[u8]], limit: usize) -> (Vec<SseDecoderOutput>, SseDecoder) {
        let mut decoder = SseDecoder::new(limit);
        let mut found = Vec::new();
        for chunk in chunks {
            let mut input = *chunk;
            loop {
                let event = decoder.next(&mut input);
                assert!(decoder.held() <= limit + 1, "{}", decoder.held());
                let none = event.is_none();
                found.extend(event);
                if none && input.is_empty() {
                    break;
                }
            }
        }
        (found, decoder)
    }

    fn messages(bytes: &[u8]) -> Vec<(Option<String>, String, String)> {
        let own = |decoded| match decoded {
            SseDecoderOutput::Message(ReceivedSseEvent { id, name, data }) => {
                (id.map(|id| id.to_string()), name, String::from_utf8(data).unwrap())
            }
            SseDecoderOutput::TooLong => panic!("too long"),
        };
        decode(&[bytes], 1024).0.into_iter().map(own).collect()
    }

    fn data(bytes: &[u8]) -> Vec<String> {
        messages(bytes).into_iter().map(|(_, _, data)| data).collect()
    }

    #[test]
    fn every_line_ending_is_recognised() {
        assert_eq!(data(b"data: a\n\ndata: b\r\rdata: c\r\n\r\n"), ["a", "b", "c"]);
    }

    #[test]
    fn lines_of_data_are_joined() {
        assert_eq!(data(b"data: a\ndata\ndata:b\ndata:  c\n\n"), ["a\n\nb\n c"]);
    }

    #[test]
    fn comments_unknown_fields_and_a_byte_order_mark_are_ignored() {
        assert_eq!(data(b"\xef\xbb\xbfdata: a\n: comment\nfoo: bar\n:\n\n: x\n\n"), ["a"]);
    }

    #[test]
    fn an_event_without_data_sets_only_the_id() {
        let (found, decoder) = decode(&[b"id: 7\nretry: 250\n\n"], 64);
        assert_eq!(found, []);
        assert_eq!((decoder.last_event_id(), decoder.retry()), (Some("7"), Some(Duration::from_millis(250))));
    }

    #[test]
    fn an_incomplete_event_does_not_set_the_last_id() {
        let (_, decoder) = decode(&[b"id: 7\ndata: a\n\nid: 8\ndata: {\"half\":"], 64);
        assert_eq!(decoder.last_event_id(), Some("7"));
    }

    #[test]
    fn an_event_with_empty_data_is_returned() {
        assert_eq!(messages(b"id: 7\ndata:\n\n"), [(Some("7".into()), String::new(), String::new())]);
    }

    #[test]
    fn the_id_stays_until_another_comes() {
        let ids: Vec<_> = messages(b"id: 1\ndata: a\n\ndata: b\n\nid: 2\0\ndata: c\n\nid\ndata: d\n\n");
        let ids: Vec<_> = ids.into_iter().map(|(id, _, _)| id).collect();
        assert_eq!(ids, [Some("1".into()), Some("1".into()), Some("1".into()), None]);
    }

    #[test]
    fn the_name_is_of_one_event_only() {
        let names: Vec<_> = messages(b"event: endpoint\ndata: a\n\ndata: b\n\n").into_iter().map(|it| it.1).collect();
        assert_eq!(names, ["endpoint", ""]);
    }

    #[test]
    fn a_retry_that_is_no_number_is_ignored() {
        let (_, decoder) = decode(&[b"retry: 10\nretry: -1\nretry: 1s\nretry:\n\n"], 64);
        assert_eq!(decoder.retry(), Some(Duration::from_millis(10)));
    }

    #[test]
    fn an_unfinished_event_is_not_returned() {
        assert_eq!(data(b"data: a\n\ndata: b\n"), ["a"]);
    }

    #[test]
    fn an_event_too_long_is_dropped_and_the_next_is_read() {
        let long = [b"data: ".as_slice(), &[b'x'; 100], b"\ndata: y\n\ndata: z\n\n"].concat();
        let (found, _) = decode(&[&long], 32);
        let SseDecoderOutput::Message(last) = &found[1] else { panic!("{found:?}") };
        assert_eq!((&found[0], &*last.data, found.len()), (&SseDecoderOutput::TooLong, &b"z"[..], 2));
    }

    #[test]
    fn an_event_is_known_to_be_too_long_before_its_end() {
        let (found, decoder) = decode(&[b"data: ", &[b'x'; 100]], 32);
        assert_eq!((found.len(), decoder.is_too_long()), (0, true));
        let (_, decoder) = decode(&[b"data: ", &[b'x'; 100], b"\n\ndata: a"], 32);
        assert!(!decoder.is_too_long());
    }

    #[test]
    fn a_name_that_is_not_utf8_is_buffered_as_bytes() {
        let stream = [b"event: ".as_slice(), &[0xff; 20], b"\ndata: a\n\n"].concat();
        let (found, _) = decode(&[&stream], 32);
        let SseDecoderOutput::Message(message) = &found[0] else { panic!("{found:?}") };
        assert_eq!((&*message.name, &*message.data), (&*"\u{fffd}".repeat(20), &b"a"[..]));
    }

    #[test]
    fn an_id_that_is_not_utf8_is_not_stored() {
        let stream = [b"id: ".as_slice(), &[0xff; 20], b"\ndata: a\n\n"].concat();
        let (_, decoder) = decode(&[&stream], 32);
        let kept = decoder.last_event_id().map_or(0, str::len);
        assert!(kept <= 32, "{kept} bytes are kept for as long as the stream lives");
    }

    #[test]
    fn an_id_counts_for_the_limit_of_an_event() {
        let stream = [b"id: ".as_slice(), &[b'i'; 28], b"\ndata: ", &[b'd'; 25], b"\n\n"].concat();
        let (found, _) = decode(&[&stream], 32);
        assert_eq!(found, [SseDecoderOutput::TooLong]);
    }

    #[test]
    fn an_endless_comment_is_not_buffered() {
        let (found, decoder) = decode(&[b": ", &[b'x'; 1000], b"\ndata: a\n\n"], 32);
        assert_eq!((found.len(), decoder.held()), (1, 0));
    }

    #[test]
    fn data_is_split_at_every_line_end_and_read_back() {
        let mut out = Vec::new();
        SseEvent { data: Some(b"a\nb\r\nc\rd"), ..SseEvent::default() }.write(&mut out);
        assert_eq!(out, b"data: a\ndata: b\ndata: c\ndata: d\n\n");
        assert_eq!(data(&out), ["a\nb\nc\nd"]);
    }

    #[test]
    fn an_id_cannot_smuggle_a_field() {
        let mut out = Vec::new();
        SseEvent { id: Some("1\ndata: evil"), name: Some("a\rb"), ..SseEvent::default() }.write(&mut out);
        assert_eq!(out, b"id: 1\nevent: a\n\n");
    }

    #[test]
    fn comments_and_retry_are_written_as_they_are_read() {
        let mut out = Vec::new();
        write_comment("", &mut out);
        SseEvent { id: Some("1"), retry: Some(Duration::from_millis(500)), data: Some(b""), name: None }
            .write(&mut out);
        assert_eq!(out, b":\n\nid: 1\nretry: 500\ndata:\n\n");
    }

    proptest! {
        #[test]
        fn the_split_of_the_bytes_does_not_matter(
            pieces in proptest::collection::vec(
                prop_oneof![
                    Just("\n"), Just("\r"), Just("\r\n"), Just("data: a"), Just("data:"), Just("id: 1"), Just("id: 2"),
                    Just(": comment"), Just("event: e"), Just("retry: 5"), Just("\u{feff}"), Just("xxxxxxxxxxxxxxxx"),
                ],
                0..40,
            ),
            cut in proptest::collection::vec(0_usize..200, 0..8),
        ) {
            let bytes = pieces.concat().into_bytes();
            let whole = decode(&[&bytes], 24);
            let mut cuts: Vec<usize> = cut.into_iter().map(|at| at.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            let split = decode(&chunks, 24);
            prop_assert_eq!(split.0, whole.0);
            prop_assert_eq!(split.1.last_event_id(), whole.1.last_event_id());
        }

        #[test]
        fn encoded_events_round_trip(data in "[a-z\\n]{0,40}", id in "[!-~]{1,8}") {
            let mut out = Vec::new();
            SseEvent { id: Some(&id), data: Some(data.as_bytes()), ..SseEvent::default() }.write(&mut out);
            prop_assert_eq!(messages(&out), [(Some(id), String::new(), data)]);
        }
    }
}
