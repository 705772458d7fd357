//! Responses that a server wrote before it died are read, although writes to it fail.

use std::io;
use std::task::{Context as Polling, Poll};

use serde_json::{Value, json};
use steadfast::client::NegotiationMode;
use steadfast::prelude::*;
use steadfast::transport::{HangupDirection, Transport};
use steadfast::{ErrorKind, Outcome};

use crate::soon;

/// How it is learned that the server takes nothing any more.
#[derive(Clone, Copy, PartialEq)]
enum LossNoticedBy {
    ByHangup,
    ByWriting,
}

/// A server that answers the calls of `answered`, and dies between the client's read and its check whether the server is
/// connected.
struct Dying {
    learned: LossNoticedBy,
    received: Vec<u8>,
    said: Vec<u8>,
    /// Answers that are written and cannot be read yet.
    last_words: Vec<u8>,
    dead: bool,
}

impl Dying {
    fn new(learned: LossNoticedBy) -> Self {
        Self { learned, received: Vec::new(), said: Vec::new(), last_words: Vec::new(), dead: false }
    }

    fn hear(&mut self, message: &Value) {
        let result = match message["method"].as_str() {
            Some("server/discover") => {
                json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
            }
            _ => json!({"resultType": "complete", "content": [{"type": "text", "text": "last words"}]}),
        };
        let answer = format!("{}\n", json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
        match message["params"]["name"].as_str() {
            None => self.said.extend_from_slice(answer.as_bytes()),
            Some("answered") => self.last_words.extend_from_slice(answer.as_bytes()),
            Some(_) => {}
        }
    }
}

impl Transport for Dying {
    fn poll_read(&mut self, cx: &mut Polling<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        if self.dead {
            self.said.append(&mut self.last_words);
        }
        if self.said.is_empty() && !self.dead {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let count = self.said.len().min(buf.len());
        buf[..count].copy_from_slice(&self.said[..count]);
        self.said.drain(..count);
        Poll::Ready(Ok(count))
    }

    fn poll_write(&mut self, _: &mut Polling<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if !self.last_words.is_empty() && self.learned == LossNoticedBy::ByWriting {
            self.dead = true;
        }
        if self.dead {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        // One line at a time, however many there are.
        let count = buf.iter().position(|byte| *byte == b'\n').map_or(buf.len(), |end| end + 1);
        self.received.extend_from_slice(&buf[..count]);
        if self.received.ends_with(b"\n") {
            let line = std::mem::take(&mut self.received);
            self.hear(&serde_json::from_slice(&line).unwrap());
        }
        Poll::Ready(Ok(count))
    }

    fn poll_flush(&mut self, _: &mut Polling<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_hangup(&mut self, _: &mut Polling<'_>) -> Poll<HangupDirection> {
        if self.last_words.is_empty() || self.dead || self.learned == LossNoticedBy::ByWriting {
            return Poll::Pending;
        }
        self.dead = true;
        Poll::Ready(HangupDirection::Output)
    }

    fn poll_close(&mut self, _: &mut Polling<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn a_response_that_was_written_before_the_server_died_is_read() {
    let client = soon(
        Client::connect(Dying::new(LossNoticedBy::ByHangup)).negotiation(NegotiationMode::Stateless).into_future(),
    )
    .await
    .unwrap();
    let never = client.call_tool("never", json!({})).start();
    let answered = soon(client.call_tool("answered", json!({})).into_future()).await.unwrap();
    assert_eq!(answered.content[0].as_text(), Some("last words"));
    let error = soon(never).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Closed, Outcome::Unknown));
    soon(client.closed()).await;
}

#[tokio::test]
async fn a_failed_write_does_not_lose_a_response() {
    let client = soon(
        Client::connect(Dying::new(LossNoticedBy::ByWriting)).negotiation(NegotiationMode::Stateless).into_future(),
    )
    .await
    .unwrap();
    let answered = client.call_tool("answered", json!({})).start();
    let late = client.call_tool("late", json!({})).start();
    let result = soon(answered).await.unwrap();
    assert_eq!(result.content[0].as_text(), Some("last words"));
    let error = soon(late).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Closed, Outcome::NotSent));
}

#[tokio::test]
async fn a_result_that_is_not_an_object_is_an_error() {
    use steadfast::CallToolResult;
    for text in ["[]", "[[]]", " []", "7", "null"] {
        assert!(steadfast_model::DeferrableResult::<CallToolResult>::from_json(text).is_err(), "{text}");
    }
}
