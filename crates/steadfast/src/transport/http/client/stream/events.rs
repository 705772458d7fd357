//! Reads the server-sent events of an HTTP response, and of the responses that resume it.

use std::time::Duration;

use bytes::Bytes;
use steadfast_proto::frame::sse::{SseDecoder, SseDecoderOutput};
use steadfast_proto::mutant;

use crate::transport::http::client::fetch::{TransportFetchResponse, next_piece};

/// Whether an HTTP response is a stream of server-sent events.
pub(crate) fn is_events(response: &TransportFetchResponse) -> bool {
    let media = response.headers().get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = media.and_then(|media| media.split(';').next()).unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("text/event-stream")
}

/// Reads the messages in the server-sent events of an HTTP response, and of the responses that resume it.
pub(crate) struct SseMessageReader {
    response: TransportFetchResponse,
    decoder: SseDecoder,
    piece: Bytes,
    /// The event that is being read was already reported as too long.
    reported_too_long: bool,
}

/// A message that was read from an event stream, or the end of the stream.
pub(crate) enum SseMessageOrEnd {
    Message(Vec<u8>),
    /// A message of the server is longer than the limit. A message that is too long is reported before its end, which
    /// may never arrive.
    TooLong,
    /// The event stream has ended or broken off, for this reason.
    End(String),
}

impl SseMessageReader {
    pub(crate) fn new(response: TransportFetchResponse, max_bytes: usize) -> Self {
        let decoder = SseDecoder::new(max_bytes);
        Self { response, decoder, piece: Bytes::new(), reported_too_long: false }
    }

    /// The next message.
    pub(crate) async fn next(&mut self) -> SseMessageOrEnd {
        loop {
            match self.event().await {
                Ok(SseDecoderOutput::TooLong) => return SseMessageOrEnd::TooLong,
                // Events without data only set the id; events of other names are not messages.
                Ok(SseDecoderOutput::Message(event)) if event.data.is_empty() || !is_message(&event.name) => {}
                Ok(SseDecoderOutput::Message(event)) => return SseMessageOrEnd::Message(event.data),
                Err(why) => return SseMessageOrEnd::End(why),
            }
        }
    }

    /// The next server-sent event, whatever its name; an error at the end of the stream.
    pub(crate) async fn event(&mut self) -> Result<SseDecoderOutput, String> {
        loop {
            let mut rest: &[u8] = &self.piece;
            let decoded = self.decoder.next(&mut rest);
            let taken = self.piece.len() - rest.len();
            self.piece = self.piece.split_off(taken);
            match decoded {
                Some(SseDecoderOutput::TooLong) if std::mem::take(&mut self.reported_too_long) => continue,
                Some(decoded) => return Ok(decoded),
                None => {}
            }
            if self.decoder.is_too_long() && !self.reported_too_long {
                self.reported_too_long = true;
                return Ok(SseDecoderOutput::TooLong);
            }
            match next_piece(&mut self.response).await {
                Some(Ok(piece)) => self.piece = piece,
                None => return Err("the server ended the event stream".to_owned()),
                Some(Err(error)) => return Err(error.to_string()),
            }
        }
    }

    /// Reads the HTTP response to its end and discards the rest of its events.
    pub(crate) async fn finish(mut self) {
        while let Some(Ok(_)) = next_piece(&mut self.response).await {}
    }

    /// The id of the last event, after which the stream can be resumed, if the server has sent one.
    pub(crate) fn last_event_id(&self) -> Option<&str> {
        self.decoder.last_event_id().filter(|id| !id.is_empty())
    }

    /// How long the server wants the client to wait before it resumes the stream.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.decoder.retry()
    }

    /// Continues with the HTTP response that resumes the stream. An event that was read only in part is dropped: the
    /// server sends it again.
    pub(crate) fn resume_with(&mut self, response: TransportFetchResponse, max_bytes: usize) {
        if mutant!(KeepHalfRead) {
            self.response = response;
            return;
        }
        let mut decoder = SseDecoder::new(max_bytes);
        // The id and `retry` outlive the response.
        decoder.carry_over(&self.decoder);
        (self.response, self.decoder, self.piece) = (response, decoder, Bytes::new());
        self.reported_too_long = false;
    }
}

/// Whether server-sent events of this name hold MCP messages.
pub(crate) fn is_message(name: &str) -> bool {
    matches!(name, "" | "message")
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::task::{Context, Poll, Waker};

    use proptest::prelude::*;

    use super::*;
    use crate::transport::http::client::fetch::{TransportFetchBody, TransportFetchError};

    /// A body of these pieces that then ends or breaks off.
    struct Pieces {
        pieces: VecDeque<Bytes>,
        breaks_off: bool,
    }

    impl TransportFetchBody for Pieces {
        fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, TransportFetchError>>> {
            Poll::Ready(match self.pieces.pop_front() {
                Some(piece) => Some(Ok(piece)),
                None if self.breaks_off => Some(Err(TransportFetchError::interrupted("cut"))),
                None => None,
            })
        }
    }

    fn split(bytes: &[u8], cuts: &[usize]) -> VecDeque<Bytes> {
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        at.windows(2).map(|pair| Bytes::copy_from_slice(&bytes[pair[0]..pair[1]])).collect()
    }

    /// The messages of a stream, and the id to resume it after.
    fn read(pieces: VecDeque<Bytes>, breaks_off: bool) -> (Vec<String>, Option<String>) {
        let body: Box<dyn TransportFetchBody> = Box::new(Pieces { pieces, breaks_off });
        let mut events = SseMessageReader::new(http::Response::new(body), 1024);
        let mut messages = Vec::new();
        loop {
            let mut cx = Context::from_waker(Waker::noop());
            let next = std::pin::pin!(events.next()).poll(&mut cx);
            match next {
                Poll::Ready(SseMessageOrEnd::Message(message)) => messages.push(String::from_utf8(message).unwrap()),
                Poll::Ready(SseMessageOrEnd::TooLong) => panic!("too long"),
                Poll::Ready(SseMessageOrEnd::End(_)) => break,
                Poll::Pending => panic!("there was a piece"),
            }
        }
        let last = events.last_event_id().map(str::to_owned);
        (messages, last)
    }

    #[derive(Debug, Clone)]
    struct WrittenEvent {
        data: Vec<String>,
        id: Option<String>,
        name: Option<&'static str>,
        comment: bool,
    }

    fn event() -> impl Strategy<Value = WrittenEvent> {
        let data = proptest::collection::vec("[a-zäß€😀:{}\" ]{0,12}", 0..3);
        let id = proptest::option::of("[a-z0-9]{1,4}");
        let name = proptest::option::of(prop_oneof![Just("message"), Just("endpoint")]);
        (data, id, name, any::<bool>()).prop_map(|(data, id, name, comment)| WrittenEvent { data, id, name, comment })
    }

    fn write(events: &[WrittenEvent], end: &str, mark: bool) -> String {
        let mut text = if mark { "\u{feff}".to_owned() } else { String::new() };
        for event in events {
            if event.comment {
                text.extend([": größe", end]);
            }
            text.extend(event.id.iter().map(|id| format!("id: {id}{end}")));
            text.extend(event.name.iter().map(|name| format!("event: {name}{end}")));
            text.extend(event.data.iter().map(|line| format!("data: {line}{end}")));
            text += end;
        }
        text
    }

    proptest! {
        #[test]
        fn messages_are_the_same_however_their_bytes_are_split(
            all in proptest::collection::vec(event(), 0..8),
            end in prop_oneof![Just("\n"), Just("\r"), Just("\r\n")],
            mark: bool,
            breaks_off: bool,
            cuts in proptest::collection::vec(any::<usize>(), 0..24),
        ) {
            let is_one = |event: &&WrittenEvent| event.name != Some("endpoint") && !event.data.concat().is_empty()
                || event.name != Some("endpoint") && event.data.len() > 1;
            let messages: Vec<String> = all.iter().filter(is_one).map(|event| event.data.join("\n")).collect();
            let last = all.iter().rev().find_map(|event| event.id.clone());
            let bytes = write(&all, end, mark).into_bytes();
            prop_assert_eq!(read(split(&bytes, &cuts), breaks_off), (messages, last));
        }

        #[test]
        fn a_stream_cut_anywhere_gives_what_was_whole(
            all in proptest::collection::vec(event(), 1..6),
            end in prop_oneof![Just("\n"), Just("\r\n")],
            at: usize,
            cuts in proptest::collection::vec(any::<usize>(), 0..8),
        ) {
            let bytes = write(&all, end, false).into_bytes();
            let (whole, _) = read(split(&bytes, &[]), false);
            let (some, _) = read(split(&bytes[..at % (bytes.len() + 1)], &cuts), true);
            prop_assert_eq!(&some[..], &whole[..some.len()]);
        }
    }

    #[test]
    fn a_message_that_is_too_long_is_reported_once_and_before_its_end() {
        let long = vec![b'x'; 2000];
        let pieces = [&b"data: "[..], &long, &long, b"\n\ndata: a\n\n"].map(Bytes::copy_from_slice);
        let body: Box<dyn TransportFetchBody> = Box::new(Pieces { pieces: pieces.into(), breaks_off: false });
        let mut events = SseMessageReader::new(http::Response::new(body), 1024);
        let mut cx = Context::from_waker(Waker::noop());
        let mut next = || match std::pin::pin!(events.next()).poll(&mut cx) {
            Poll::Ready(SseMessageOrEnd::TooLong) => "too long".to_owned(),
            Poll::Ready(SseMessageOrEnd::Message(message)) => String::from_utf8(message).unwrap(),
            Poll::Ready(SseMessageOrEnd::End(_)) => "end".to_owned(),
            Poll::Pending => "nothing".to_owned(),
        };
        assert_eq!([next(), next(), next()], ["too long", "a", "end"]);
    }
}
