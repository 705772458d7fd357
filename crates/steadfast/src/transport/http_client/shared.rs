//! What all requests to one server share: its address, its session, and how events are read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, COOKIE};
use http::{HeaderMap, HeaderValue, StatusCode};
use reqwest::Response;
use steadfast_model::Revision;
use steadfast_proto::frame::sse::{Decoded, SseDecoder};
use steadfast_proto::http::name;

use super::authorize::{Attempt, Authorize, Authorizing};
use crate::client::kept::Kept;
use crate::runtime::poll_quietly;

/// How long to wait before a stream is opened again, if the server does not say; it doubles up to the ceiling.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A server that names less than this is asked less often when nothing comes of it.
const SHORTEST_RETRY: Duration = Duration::from_millis(100);
const LONGEST_EMPTY_PAUSE: Duration = Duration::from_secs(5);

/// A server that asks to be left alone for longer than this has gone.
const LONGEST_RETRY: Duration = Duration::from_secs(300);

/// How often one request is made again because it was not let in.
const ASKED_AGAIN: usize = 4;

/// How often in a row a stream is opened again without anything coming of it.
const ATTEMPTS: u32 = 8;

/// One server.
pub(super) struct Shared {
    url: reqwest::Url,
    headers: HeaderMap,
    client: reqwest::Client,
    authorize: Option<Arc<dyn Authorize>>,
    /// The longest message that is taken.
    pub(super) longest: usize,
    /// What the client knows of tools, and has to know of who it is.
    pub(super) kept: Arc<Kept>,
    session: Mutex<Session>,
}

/// What the handshake of an older revision has established.
#[derive(Clone, Default)]
pub(super) struct Session {
    pub(super) id: Option<HeaderValue>,
    pub(super) revision: Option<Revision>,
}

impl Shared {
    pub(super) fn new(
        url: reqwest::Url,
        headers: HeaderMap,
        client: reqwest::Client,
        authorize: Option<Arc<dyn Authorize>>,
        kept: Arc<Kept>,
        longest: usize,
    ) -> Self {
        Self { url, headers, client, authorize, longest, kept, session: Mutex::default() }
    }

    pub(super) fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a request, as often as whoever authorizes it asks for.
    pub(super) async fn send(&self, wanted: Wanted<'_>) -> Result<Response, Unsent> {
        let mut attempt = self.authorize.as_ref().map(|all| all.attempt(&wanted.method, self.url.as_str()));
        for _ in 0..ASKED_AGAIN {
            let response = self.send_once(&wanted, attempt.as_deref_mut()).await?;
            let Some(attempt) = &mut attempt else { return Ok(response) };
            let answered = fenced(attempt.answered(response.status(), response.headers())).await;
            let refused = matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
            match answered {
                Ok(true) if refused => {}
                Err(error) if refused => return Err(Unsent::Unauthorized(error)),
                // What is wrong with its books is not the request's concern: it was let in.
                _ => return Ok(response),
            }
        }
        self.send_once(&wanted, attempt.as_deref_mut()).await
    }

    async fn send_once(
        &self,
        wanted: &Wanted<'_>,
        attempt: Option<&mut (dyn Attempt + 'static)>,
    ) -> Result<Response, Unsent> {
        let accept = if wanted.method == http::Method::GET {
            "text/event-stream"
        } else {
            "application/json, text/event-stream"
        };
        let mut headers = self.headers.clone();
        if let Some(attempt) = attempt {
            fenced(attempt.sign(&mut headers)).await.map_err(Unsent::Unauthorized)?;
        }
        let credentials = [AUTHORIZATION, COOKIE].into_iter().flat_map(|name| headers.get_all(name));
        self.kept.identify(credentials.map(HeaderValue::as_bytes));
        let request = self.client.request(wanted.method.clone(), self.url.clone());
        let mut request = request.headers(headers).header(ACCEPT, accept);
        request = match wanted.mirrored {
            Some(mirrored) => request.headers(mirrored.clone()),
            None => request.headers(self.session().headers()),
        };
        if let Some(id) = wanted.last_event_id {
            request = request.header(name::LAST_EVENT_ID, id);
        }
        if let Some(body) = &wanted.body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.clone());
        }
        if let Some(timeout) = wanted.timeout {
            request = request.timeout(timeout);
        }
        request.send().await.map_err(Unsent::Failed)
    }
}

/// What authorizes requests is somebody else's code: its panic is its failure, and nobody waits for ever.
async fn fenced<T>(mut step: Authorizing<'_, T>) -> Result<T, Box<dyn std::error::Error + Send + Sync>> {
    std::future::poll_fn(|cx| {
        poll_quietly(step.as_mut(), cx).unwrap_or_else(|_| Poll::Ready(Err("it failed unexpectedly".into())))
    })
    .await
}

/// A request to be made.
#[derive(Default)]
pub(super) struct Wanted<'a> {
    pub(super) method: http::Method,
    /// The headers that a message of 2026-07-28 is mirrored in. Others have those of the session.
    pub(super) mirrored: Option<&'a HeaderMap>,
    pub(super) last_event_id: Option<&'a str>,
    pub(super) body: Option<bytes::Bytes>,
    pub(super) timeout: Option<Duration>,
}

/// Why there is no response.
pub(super) enum Unsent {
    /// Whoever authorizes requests could not.
    Unauthorized(Box<dyn std::error::Error + Send + Sync>),
    Failed(reqwest::Error),
}

impl Session {
    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(id) = &self.id {
            headers.insert(name::SESSION_ID, id.clone());
        }
        if let Some(revision) = self.revision {
            // Revision 2025-03-26 has no such header, and does not mind it.
            headers.insert(name::PROTOCOL_VERSION, HeaderValue::from_static(revision.as_str()));
        }
        headers
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
    pub(super) fn new(response: Response, longest: usize) -> Self {
        Self { response, decoder: SseDecoder::new(longest), chunk: bytes::Bytes::new(), attempts: 0, empty: 0 }
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
                    if !message.data.is_empty() && matches!(&*message.name, "" | "message") {
                        self.empty = 0;
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

    /// How long to wait before going on; `None` if the server could not be reached often enough.
    pub(super) fn pause(&self) -> Option<Duration> {
        match (self.attempts, self.decoder.retry()) {
            (0, Some(retry)) if retry >= SHORTEST_RETRY => Some(retry.min(LONGEST_RETRY)),
            // One who is told to come at once, and finds nothing, comes less and less often.
            (0, Some(retry)) if self.empty == 0 => Some(retry),
            (0, Some(_)) => Some(jittered(grown(self.empty).min(LONGEST_EMPTY_PAUSE))),
            (attempts, retry) => pause(attempts, retry),
        }
    }

    /// It is tried again.
    pub(super) fn note_attempt(&mut self) {
        self.attempts += 1;
    }

    /// Goes on with another response. What was half read is forgotten: the server sends it again.
    pub(super) fn go_on(&mut self, response: Response, longest: usize) {
        let mut decoder = SseDecoder::new(longest);
        // The id and the pace outlive the response.
        decoder.carry_over(&self.decoder);
        (self.response, self.decoder, self.chunk) = (response, decoder, bytes::Bytes::new());
        self.attempts = 0;
        self.empty = self.empty.saturating_add(1);
    }
}

/// The pause before an attempt; `None` after the last.
pub(super) fn pause(attempt: u32, retry: Option<Duration>) -> Option<Duration> {
    if attempt >= ATTEMPTS {
        return None;
    }
    let grown = grown(attempt);
    Some(match retry {
        Some(retry) if attempt == 0 => retry.min(LONGEST_RETRY),
        Some(retry) => retry.min(LONGEST_RETRY).max(jittered(grown)),
        None => jittered(grown),
    })
}

fn grown(attempt: u32) -> Duration {
    PAUSE.saturating_mul(1 << attempt.min(10)).min(LONGEST_PAUSE)
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
