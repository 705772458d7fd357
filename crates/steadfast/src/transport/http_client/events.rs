//! The events of a response, and of those that go on where it stopped.

use std::time::Duration;

use bytes::Bytes;
use steadfast_proto::frame::sse::{Decoded, SseDecoder};

use super::fetch::{FetchResponse, piece_of};
use super::pace::Pace;
use crate::runtime::Runtime;

/// Whether a response is a stream of events.
pub(super) fn is_events(response: &FetchResponse) -> bool {
    let media = response.headers().get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = media.and_then(|media| media.split(';').next()).unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("text/event-stream")
}

/// The events of a response, and of those that go on where it stopped.
pub(super) struct Events {
    response: FetchResponse,
    decoder: SseDecoder,
    piece: Bytes,
    /// It was said that the event that is being read is too long.
    told_too_long: bool,
    pace: Pace,
}

/// What comes of a stream.
pub(super) enum Heard {
    Message(Vec<u8>),
    /// A message that is not kept. It is said before its end, which may never come.
    TooLong,
    /// It has ended or broken off, and this is all that is known.
    End(String),
}

impl Events {
    pub(super) fn new(response: FetchResponse, longest: usize) -> Self {
        let decoder = SseDecoder::new(longest);
        Self { response, decoder, piece: Bytes::new(), told_too_long: false, pace: Pace::default() }
    }

    /// The next message.
    pub(super) async fn next(&mut self) -> Heard {
        loop {
            match self.event().await {
                Ok(Decoded::TooLong) => return Heard::TooLong,
                // Events without data set the id, and others are of no concern to us.
                Ok(Decoded::Message(event)) if event.data.is_empty() || !is_message(&event.name) => {}
                Ok(Decoded::Message(event)) => {
                    self.pace.note_message();
                    return Heard::Message(event.data);
                }
                Err(why) => return Heard::End(why),
            }
        }
    }

    /// The next event of any name; an error at the end.
    pub(super) async fn event(&mut self) -> Result<Decoded, String> {
        loop {
            let mut rest: &[u8] = &self.piece;
            let decoded = self.decoder.next(&mut rest);
            let taken = self.piece.len() - rest.len();
            self.piece = self.piece.split_off(taken);
            match decoded {
                Some(Decoded::TooLong) if std::mem::take(&mut self.told_too_long) => continue,
                Some(decoded) => return Ok(decoded),
                None => {}
            }
            if self.decoder.is_too_long() && !self.told_too_long {
                self.told_too_long = true;
                return Ok(Decoded::TooLong);
            }
            match piece_of(&mut self.response).await {
                Some(Ok(piece)) => self.piece = piece,
                None => return Err("the server ended the stream".to_owned()),
                Some(Err(error)) => return Err(error.to_string()),
            }
        }
    }

    /// Reads on to the end of the response, without looking at what comes.
    pub(super) async fn finish(mut self) {
        while let Some(Ok(_)) = piece_of(&mut self.response).await {}
    }

    /// The event to go on after, if the server has named one.
    pub(super) fn last_event_id(&self) -> Option<&str> {
        self.decoder.last_event_id().filter(|id| !id.is_empty())
    }

    /// How long the server wants to be left alone before.
    pub(super) fn retry(&self) -> Option<Duration> {
        self.decoder.retry()
    }

    /// How long to wait before going on; `None` if the server could not be reached often enough.
    pub(super) fn pause(&self, runtime: &dyn Runtime) -> Option<Duration> {
        self.pace.pause(self.decoder.retry(), runtime)
    }

    /// It is tried again.
    pub(super) fn note_attempt(&mut self) {
        self.pace.note_attempt();
    }

    /// Goes on with another response. What was half read is forgotten: the server sends it again.
    pub(super) fn go_on(&mut self, response: FetchResponse, longest: usize) {
        let mut decoder = SseDecoder::new(longest);
        // The id and the pace outlive the response.
        decoder.carry_over(&self.decoder);
        (self.response, self.decoder, self.piece) = (response, decoder, Bytes::new());
        self.told_too_long = false;
        self.pace.note_opened();
    }
}

/// Whether events of that name are messages.
pub(super) fn is_message(name: &str) -> bool {
    matches!(name, "" | "message")
}
