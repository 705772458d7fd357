//! Helpers for the tests of the transports: `async` versions of the poll methods, with a timeout instead of a hang.

use std::future::{Future, poll_fn};
use std::io;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::{HangupDirection, Transport};

/// Makes a test fail that would hang. The timeout is long because these tests do not measure speed.
pub(super) async fn settle<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("nothing happened for a minute")
}

/// Runs blocking work on a thread of its own, so that a test which fails does not hang.
pub(super) async fn elsewhere<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || done.send(work()));
    settle(result).await.expect("the thread does not panic")
}

pub(super) async fn read(transport: &mut impl Transport, most: usize) -> io::Result<Vec<u8>> {
    let mut buf = vec![0; most];
    let count = settle(poll_fn(|cx| transport.poll_read(cx, &mut buf))).await?;
    buf.truncate(count);
    Ok(buf)
}

pub(super) async fn read_exactly(transport: &mut impl Transport, count: usize) -> Vec<u8> {
    let mut all = Vec::new();
    while all.len() < count {
        let part = read(transport, count - all.len()).await.unwrap();
        assert!(!part.is_empty(), "the stream ended after {} of {count} bytes", all.len());
        all.extend(part);
    }
    all
}

pub(super) async fn read_to_end(transport: &mut impl Transport) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let part = read(transport, 10_000).await.unwrap();
        if part.is_empty() {
            return all;
        }
        all.extend(part);
    }
}

pub(super) async fn write_all(transport: &mut impl Transport, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = settle(poll_fn(|cx| transport.poll_write(cx, bytes))).await?;
        bytes = &bytes[count..];
    }
    settle(poll_fn(|cx| transport.poll_flush(cx))).await
}

pub(super) async fn hangup(transport: &mut impl Transport) -> HangupDirection {
    settle(poll_fn(|cx| transport.poll_hangup(cx))).await
}

pub(super) async fn close(transport: &mut impl Transport) -> io::Result<()> {
    settle(poll_fn(|cx| transport.poll_close(cx))).await
}

/// Fails if a hangup is reported. Gives the runtime enough polls to notice one.
pub(super) async fn no_hangup(transport: &mut impl Transport) {
    for _ in 0..20 {
        tokio::task::yield_now().await;
        poll_fn(|cx| {
            assert_eq!(transport.poll_hangup(cx), Poll::Pending);
            Poll::Ready(())
        })
        .await;
    }
}

/// Writes until the transport accepts no more, and returns how many bytes it has accepted.
pub(super) async fn fill(transport: &mut impl Transport) -> usize {
    let mut total = 0;
    let mut refusals = 0;
    while refusals < 20 {
        tokio::task::yield_now().await;
        match poll_fn(|cx| Poll::Ready(transport.poll_write(cx, &[b'x'; 4096]))).await {
            Poll::Ready(count) => total += count.unwrap(),
            Poll::Pending => refusals += 1,
        }
    }
    total
}

/// A context that wakes nothing, for polls outside of any runtime.
pub(super) fn noop_context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}
