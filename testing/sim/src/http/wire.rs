//! What carries a request to the service and its response back: a body that comes in pieces, stops or breaks, and a buffer
//! between the service and a client that reads when it likes. What is in the buffer when the client goes is lost, and the
//! service does not know.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame};
use steadfast::transport::http::HttpServiceBody;
use steadfast_proto::frame::sse::{SseDecoder, SseDecoderOutput};

use super::journal::Journal;
use super::script::{ClientBehavior, Pace, Upload};
use crate::executor::{Executor, Sleep};
use crate::script::rng::Random;

/// Longer than any event.
const LONGEST: usize = 1 << 20;

/// A request to be made.
pub(super) struct RequestParts {
    pub(super) method: &'static str,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
}

impl RequestParts {
    pub(super) fn new(method: &'static str) -> Self {
        let headers =
            vec![("host", "localhost".to_owned()), ("accept", "application/json, text/event-stream".to_owned())];
        Self { method, headers, body: Vec::new() }
    }

    /// A message.
    pub(super) fn post(message: impl ToString) -> Self {
        let mut asked = Self::new("POST").with("content-type", "application/json");
        asked.body = message.to_string().into_bytes();
        asked
    }

    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The request with its body on the way.
    pub(super) fn begin(
        self,
        behavior: ClientBehavior,
        random: &mut Random,
        observer: ArrivalObserver,
    ) -> Request<Incoming> {
        let mut request = Request::builder().method(self.method).uri("/mcp");
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        let body = Incoming::new(self.body, behavior.upload, random, observer);
        // The names and values above are all such as can be sent.
        request.body(body).unwrap_or_default()
    }
}

/// Who learns that a body has arrived.
pub(super) struct ArrivalObserver {
    pub(super) executor: Executor,
    pub(super) journal: Arc<Journal>,
    pub(super) exchange: u64,
}

/// A body as the service reads it.
#[derive(Default)]
pub(super) struct Incoming {
    pieces: VecDeque<(Duration, Bytes)>,
    breaks: bool,
    stalls: bool,
    waits: Option<Sleep>,
    observer: Option<ArrivalObserver>,
}

impl Incoming {
    fn new(body: Vec<u8>, upload: Upload, random: &mut Random, observer: ArrivalObserver) -> Self {
        let mut pieces = VecDeque::new();
        let body = Bytes::from(body);
        if upload == Upload::Whole {
            pieces.push_back((Duration::ZERO, body));
        } else {
            let middle = random.index(body.len().max(1));
            pieces.push_back((random.delay(Duration::from_millis(50)), body.slice(..middle)));
            if upload == Upload::Pieces {
                pieces.push_back((random.delay(Duration::from_millis(300)), body.slice(middle..)));
            }
        }
        let (breaks, stalls) = (upload == Upload::Breaks, upload == Upload::Stalls);
        Self { pieces, breaks, stalls, waits: None, observer: Some(observer) }
    }
}

/// The client stopped sending.
#[derive(Debug)]
pub(super) struct Broken;

impl Body for Incoming {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let incoming = &mut *self;
        let Some((delay, piece)) = incoming.pieces.front_mut() else {
            return match (incoming.breaks, incoming.stalls) {
                (true, _) => Poll::Ready(Some(Err(Broken))),
                (_, true) => Poll::Pending,
                _ => Poll::Ready(None),
            };
        };
        if *delay > Duration::ZERO
            && let Some(observer) = &incoming.observer
        {
            let waits = incoming.waits.get_or_insert_with(|| observer.executor.sleep(*delay));
            std::task::ready!(Pin::new(waits).poll(cx));
            incoming.waits = None;
        }
        let piece = std::mem::take(piece);
        incoming.pieces.pop_front();
        if self.is_end_stream()
            && let Some(observer) = &self.observer
        {
            observer.journal.delivered(observer.exchange);
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && !self.breaks && !self.stalls
    }
}

/// A response on its way to the client.
pub(super) struct ResponseReader {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    body: Pin<Box<HttpServiceBody>>,
    /// Sent by the service and not read by the client.
    buffer: BytesMut,
    capacity: usize,
    ended: bool,
    /// Reads what the service gives, for the journal.
    decoder: SseDecoder,
    waits: Option<Sleep>,
    observer: ArrivalObserver,
    random: Random,
    pace: Pace,
}

impl ResponseReader {
    pub(super) fn new(
        response: Response<HttpServiceBody>,
        behavior: ClientBehavior,
        mut random: Random,
        observer: ArrivalObserver,
    ) -> Self {
        let (parts, body) = response.into_parts();
        let capacity = *random.pick(&[1, 200, 4_000, 1 << 20]);
        Self {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: Box::pin(body),
            buffer: BytesMut::new(),
            capacity,
            ended: false,
            decoder: SseDecoder::new(LONGEST),
            waits: None,
            observer,
            random,
            pace: behavior.pace,
        }
    }

    pub(super) fn is_events(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Some more bytes; `None` when there are no more.
    pub(super) async fn piece(&mut self) -> Option<Bytes> {
        if self.pace == Pace::Slow {
            let pause = self.random.delay(Duration::from_millis(900));
            self.waits = Some(self.observer.executor.sleep(pause));
        }
        std::future::poll_fn(|cx| {
            self.fill(cx);
            if self.pace == Pace::Stuck {
                return Poll::Pending;
            }
            if let Some(waits) = &mut self.waits {
                std::task::ready!(Pin::new(waits).poll(cx));
                self.waits = None;
            }
            let length = self.buffer.len();
            if length > 0 {
                let count = if self.random.chance(60) { length } else { 1 + self.random.index(length) };
                let piece = self.buffer.split_to(count).freeze();
                // There is room again.
                self.fill(cx);
                return Poll::Ready(Some(piece));
            }
            if self.ended { Poll::Ready(None) } else { Poll::Pending }
        })
        .await
    }

    /// Takes what the service gives while there is room.
    fn fill(&mut self, cx: &mut Context<'_>) {
        let events = self.is_events();
        while !self.ended && self.buffer.len() < self.capacity {
            match self.body.as_mut().poll_frame(cx) {
                Poll::Pending => return,
                Poll::Ready(None) => {
                    self.ended = true;
                    self.observer.journal.given_all(self.observer.exchange);
                }
                Poll::Ready(Some(Err(never))) => match never {},
                Poll::Ready(Some(Ok(frame))) => {
                    let Ok(bytes) = frame.into_data() else { continue };
                    if events {
                        self.note(&bytes);
                    } else {
                        self.observer.journal.given(self.observer.exchange, None, &bytes);
                    }
                    self.buffer.extend_from_slice(&bytes);
                }
            }
        }
    }

    fn note(&mut self, bytes: &[u8]) {
        let mut input = bytes;
        while let Some(decoded) = self.decoder.next(&mut input) {
            if let SseDecoderOutput::Message(message) = decoded {
                self.observer.journal.given(self.observer.exchange, message.id.as_deref(), &message.data);
            }
        }
    }
}
