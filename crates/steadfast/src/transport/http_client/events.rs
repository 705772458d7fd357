//! The events of a response: how they are read, and when a stream that broke off is opened again.

use std::time::Duration;

use bytes::Bytes;
use steadfast_proto::frame::sse::{Decoded, SseDecoder};
use steadfast_proto::mutant;

use super::fetch::{FetchResponse, piece_of};
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
    /// How often in a row it could not be opened again.
    attempts: u32,
    /// How often in a row it was opened and nothing came of it: a server may have its client ask for as long as it works.
    empty: u32,
}

/// What comes of a stream.
pub(super) enum Heard {
    Message(Vec<u8>),
    TooLong,
    /// It has ended or broken off, and this is all that is known.
    End(String),
}

impl Events {
    pub(super) fn new(response: FetchResponse, longest: usize) -> Self {
        Self { response, decoder: SseDecoder::new(longest), piece: Bytes::new(), attempts: 0, empty: 0 }
    }

    /// The next message.
    pub(super) async fn next(&mut self) -> Heard {
        loop {
            let mut rest: &[u8] = &self.piece;
            let decoded = self.decoder.next(&mut rest);
            let taken = self.piece.len() - rest.len();
            self.piece = self.piece.split_off(taken);
            match decoded {
                Some(Decoded::TooLong) => return Heard::TooLong,
                // Events without data set the id, and others are of no concern to us.
                Some(Decoded::Message(message)) => {
                    if !message.data.is_empty() && matches!(&*message.name, "" | "message") {
                        self.empty = 0;
                        return Heard::Message(message.data);
                    }
                    continue;
                }
                None => {}
            }
            match piece_of(&mut self.response).await {
                Some(Ok(piece)) => self.piece = piece,
                None => return Heard::End("the server ended the stream".to_owned()),
                Some(Err(error)) => return Heard::End(error.to_string()),
            }
        }
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
        match (self.attempts, self.decoder.retry()) {
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

    /// Goes on with another response. What was half read is forgotten: the server sends it again.
    pub(super) fn go_on(&mut self, response: FetchResponse, longest: usize) {
        if mutant!(KeepHalfRead) {
            (self.response, self.attempts) = (response, 0);
            return;
        }
        let mut decoder = SseDecoder::new(longest);
        // The id and the pace outlive the response.
        decoder.carry_over(&self.decoder);
        (self.response, self.decoder, self.piece) = (response, decoder, Bytes::new());
        self.attempts = 0;
        self.empty = self.empty.saturating_add(1);
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
