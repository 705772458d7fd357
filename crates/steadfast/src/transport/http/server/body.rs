//! The body of an HTTP response of the server.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::exchange::ServerHttpExchangeStream;
#[cfg(feature = "legacy-sse")]
use super::legacy_sse::ServerLegacySseStream;
use super::session::ServerHttpSessionStream;

/// The body of a response of [`HttpService`](super::HttpService): empty, one message, or an event stream.
pub struct HttpServiceBody(HttpServiceBodyKind);

enum HttpServiceBodyKind {
    Full(Bytes),
    /// The event stream of one request of 2026-07-28.
    Exchange(Box<ServerHttpExchangeStream>),
    /// One event stream of a Streamable HTTP session.
    Session(Box<ServerHttpSessionStream>),
    /// The event stream of an HTTP+SSE session.
    #[cfg(feature = "legacy-sse")]
    Sse(Box<ServerLegacySseStream>),
}

impl HttpServiceBody {
    pub(crate) fn empty() -> Self {
        Self(HttpServiceBodyKind::Full(Bytes::new()))
    }

    pub(crate) fn full(bytes: Bytes) -> Self {
        Self(HttpServiceBodyKind::Full(bytes))
    }

    pub(crate) fn exchange(stream: ServerHttpExchangeStream) -> Self {
        Self(HttpServiceBodyKind::Exchange(Box::new(stream)))
    }

    pub(crate) fn session(stream: ServerHttpSessionStream) -> Self {
        Self(HttpServiceBodyKind::Session(Box::new(stream)))
    }

    #[cfg(feature = "legacy-sse")]
    pub(crate) fn sse(stream: ServerLegacySseStream) -> Self {
        Self(HttpServiceBodyKind::Sse(Box::new(stream)))
    }
}

/// An empty body. With the default body and [`From<Bytes>`], middleware around the service builds responses of its own.
impl Default for HttpServiceBody {
    fn default() -> Self {
        Self::empty()
    }
}

impl From<Bytes> for HttpServiceBody {
    fn from(bytes: Bytes) -> Self {
        Self::full(bytes)
    }
}

impl Body for HttpServiceBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match &mut self.0 {
            HttpServiceBodyKind::Full(bytes) => Poll::Ready((!bytes.is_empty()).then(|| std::mem::take(bytes))),
            HttpServiceBodyKind::Exchange(stream) => stream.poll_next(cx),
            HttpServiceBodyKind::Session(stream) => stream.poll_next(cx),
            #[cfg(feature = "legacy-sse")]
            HttpServiceBodyKind::Sse(stream) => stream.poll_next(cx),
        };
        bytes.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, HttpServiceBodyKind::Full(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            HttpServiceBodyKind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            _ => SizeHint::default(),
        }
    }
}

impl fmt::Debug for HttpServiceBody {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.0 {
            HttpServiceBodyKind::Full(_) => "HttpServiceBody(message)",
            _ => "HttpServiceBody(events)",
        })
    }
}
