//! Gives the protocol core access to the headers of an HTTP request, and reads the body of the request within limits.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use bytes::{Buf, Bytes};
use http::{HeaderMap, StatusCode};
use http_body::Body;
use steadfast_proto::Moment;
use steadfast_proto::http::{Headers, SingleHeader};

use super::load::ServerLoadPermit;
use crate::runtime::Timer;

/// Adapts the headers of an HTTP request to the trait [`Headers`] of the protocol crate.
pub(crate) struct HeaderMapAdapter<'a>(pub(crate) &'a HeaderMap);

impl Headers for HeaderMapAdapter<'_> {
    fn values<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.0.get_all(name).iter().map(http::HeaderValue::as_bytes)
    }
}

impl HeaderMapAdapter<'_> {
    /// Reads a header that must not occur more than once.
    pub(crate) fn single(&self, name: &str) -> SingleHeader<'_> {
        SingleHeader::of(self, name)
    }
}

/// Why the body of an HTTP request was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestBodyError {
    TooLong,
    TooSlow,
    Overloaded,
    Broken,
}

impl RequestBodyError {
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken => StatusCode::BAD_REQUEST,
        }
    }

    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::TooLong => "the request body is longer than the limit",
            Self::TooSlow => "the request body was not received in time",
            Self::Overloaded => "limit of the bytes of all requests in flight reached",
            Self::Broken => "the request body could not be read",
        }
    }
}

/// Reads the whole body of an HTTP request, of at most `limit` bytes, until `deadline`.
pub(crate) async fn read_body<B: Body>(
    body: B,
    limit: usize,
    permit: &mut ServerLoadPermit,
    timer: impl FnOnce() -> Box<dyn Timer>,
    deadline: Moment,
) -> Result<Bytes, RequestBodyError> {
    let fits = usize::try_from(body.size_hint().lower()).is_ok_and(|length| length <= limit);
    if !fits {
        return Err(RequestBodyError::TooLong);
    }
    let mut body = pin!(body);
    let mut make_timer = Some(timer);
    let mut timer: Option<Box<dyn Timer>> = None;
    let mut first = Bytes::new();
    let mut rest: Vec<u8> = Vec::new();
    loop {
        let frame = poll_fn(|cx| {
            if let Poll::Ready(frame) = body.as_mut().poll_frame(cx) {
                return Poll::Ready(Ok(frame));
            }
            // Most bodies arrive together with the head, and need no timer.
            if let Some(make) = make_timer.take() {
                timer.insert(make()).reset(Some(deadline));
            }
            let due = timer.as_mut().is_some_and(|timer| timer.poll(cx).is_ready());
            if due { Poll::Ready(Err(RequestBodyError::TooSlow)) } else { Poll::Pending }
        })
        .await?;
        let Some(frame) = frame else { break };
        let Ok(mut data) = frame.map_err(|_| RequestBodyError::Broken)?.into_data() else { continue };
        let length = data.remaining();
        if length > limit - first.len() - rest.len() {
            return Err(RequestBodyError::TooLong);
        }
        if !permit.add_bytes(length) {
            return Err(RequestBodyError::Overloaded);
        }
        if first.is_empty() && rest.is_empty() {
            // Usually the only frame: it is not copied.
            first = data.copy_to_bytes(length);
        } else {
            if rest.is_empty() {
                rest.extend_from_slice(&std::mem::take(&mut first));
            }
            while data.has_remaining() {
                let chunk = data.chunk();
                let count = chunk.len();
                rest.extend_from_slice(chunk);
                data.advance(count);
            }
        }
        if body.is_end_stream() {
            break;
        }
    }
    Ok(if rest.is_empty() { first } else { Bytes::from(rest) })
}
