//! What all requests to one server share: its address, its session, and how events are read.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue};
use reqwest::{RequestBuilder, Response};
use steadfast_model::Revision;
use steadfast_proto::frame::sse::{Decoded, SseDecoder};
use steadfast_proto::http::name;

use super::tools::Tools;

/// How long to wait before a stream is opened again, if the server does not say; it doubles up to the ceiling.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A server that asks to be left alone for longer than this has gone.
const LONGEST_RETRY: Duration = Duration::from_secs(300);

/// How often in a row a stream is opened again without anything coming of it.
const ATTEMPTS: u32 = 8;

/// One server.
pub(super) struct Shared {
    pub(super) url: reqwest::Url,
    pub(super) headers: HeaderMap,
    pub(super) client: reqwest::Client,
    /// The longest message that is taken.
    pub(super) longest: usize,
    pub(super) tools: Tools,
    session: Mutex<Session>,
}

/// What the handshake of an older revision has established.
#[derive(Clone, Default)]
pub(super) struct Session {
    pub(super) id: Option<HeaderValue>,
    pub(super) revision: Option<Revision>,
}

impl Shared {
    pub(super) fn new(url: reqwest::Url, headers: HeaderMap, client: reqwest::Client, longest: usize) -> Self {
        Self { url, headers, client, longest, tools: Tools::default(), session: Mutex::default() }
    }

    pub(super) fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request with the headers that every request has, and those of the session unless the message brings its own.
    pub(super) fn request(&self, method: http::Method, mirrored: Option<HeaderMap>) -> RequestBuilder {
        let accept =
            if method == http::Method::GET { "text/event-stream" } else { "application/json, text/event-stream" };
        let request =
            self.client.request(method, self.url.clone()).headers(self.headers.clone()).header(ACCEPT, accept);
        if let Some(mirrored) = mirrored {
            return request.headers(mirrored);
        }
        let Session { id, revision } = self.session().clone();
        let request = match id {
            Some(id) => request.header(name::SESSION_ID, id),
            None => request,
        };
        match revision {
            // Revision 2025-03-26 has no such header, and does not mind it.
            Some(revision) => request.header(name::PROTOCOL_VERSION, revision.as_str()),
            None => request,
        }
    }
}

/// Whether a response is a stream of events.
pub(super) fn is_events(response: &Response) -> bool {
    let media = response.headers().get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = media.and_then(|media| media.split(';').next()).unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("text/event-stream")
}

/// The body of a response, if it is not too long.
pub(super) async fn body_of(mut response: Response, longest: usize) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| describe(&error))? {
        if body.len().saturating_add(chunk.len()) > longest {
            return Err(format!("the answer is longer than {longest} bytes"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The events of a response, and of those that go on where it stopped.
pub(super) struct Events {
    response: Response,
    decoder: SseDecoder,
    chunk: bytes::Bytes,
    /// How often it was opened again since anything came.
    attempts: u32,
}

/// What comes of a stream.
pub(super) enum Heard {
    Message(Vec<u8>),
    TooLong,
    /// It has ended or broken off, and this is all that is known.
    End(String),
}

impl Events {
    pub(super) fn new(response: Response, longest: usize) -> Self {
        Self { response, decoder: SseDecoder::new(longest), chunk: bytes::Bytes::new(), attempts: 0 }
    }

    /// The next message.
    pub(super) async fn next(&mut self) -> Heard {
        loop {
            let mut rest: &[u8] = &self.chunk;
            let decoded = self.decoder.next(&mut rest);
            let taken = self.chunk.len() - rest.len();
            self.chunk = self.chunk.split_off(taken);
            match decoded {
                Some(Decoded::TooLong) => return Heard::TooLong,
                // Events without data set the id, and others are of no concern to us.
                Some(Decoded::Message(message)) => {
                    self.attempts = 0;
                    if !message.data.is_empty() && matches!(&*message.name, "" | "message") {
                        return Heard::Message(message.data);
                    }
                    continue;
                }
                None => {}
            }
            match self.response.chunk().await {
                Ok(Some(chunk)) => self.chunk = chunk,
                Ok(None) => return Heard::End("the server ended the stream".to_owned()),
                Err(error) => return Heard::End(describe(&error)),
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

    /// How long to wait before going on; `None` if it has been tried often enough.
    pub(super) fn pause(&mut self) -> Option<Duration> {
        let attempt = self.attempts;
        self.attempts += 1;
        pause(attempt, self.decoder.retry())
    }

    /// Goes on with another response. What was half read is forgotten: the server sends it again.
    pub(super) fn go_on(&mut self, response: Response, longest: usize) {
        let mut decoder = SseDecoder::new(longest);
        // The id and the pace outlive the response.
        decoder.carry_over(&self.decoder);
        (self.response, self.decoder, self.chunk) = (response, decoder, bytes::Bytes::new());
    }
}

/// The pause before an attempt; `None` after the last.
pub(super) fn pause(attempt: u32, retry: Option<Duration>) -> Option<Duration> {
    if attempt >= ATTEMPTS {
        return None;
    }
    let grown = PAUSE.saturating_mul(1 << attempt.min(10)).min(LONGEST_PAUSE);
    Some(match retry {
        Some(retry) if attempt == 0 => retry.min(LONGEST_RETRY),
        Some(retry) => retry.min(LONGEST_RETRY).max(jittered(grown)),
        None => jittered(grown),
    })
}

/// Between half of it and all of it, so that many clients do not come back at the same moment.
fn jittered(pause: Duration) -> Duration {
    let mut random = [0_u8; 1];
    // Without random numbers, all of it.
    if getrandom::fill(&mut random).is_err() {
        return pause;
    }
    pause / 2 + pause.mul_f64(f64::from(random[0]) / 512.0)
}

/// An error with its causes, without its URL, which may hold secrets.
pub(super) fn describe(error: &reqwest::Error) -> String {
    use std::error::Error as _;
    let mut text = String::new();
    let mut cause = error.source();
    while let Some(inner) = cause {
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    if text.is_empty() { "the request failed".to_owned() } else { text }
}
