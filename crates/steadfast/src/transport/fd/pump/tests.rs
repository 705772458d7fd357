//! Pipes that threads read and write, as where they cannot be reopened.

use std::io::{Read, Write};

use super::*;
use crate::transport::fd::input::TransportReadHalf;
use crate::transport::fd::output::TransportWriteHalf;
use crate::transport::testing::{close, fill, hangup, no_hangup, read_exactly, read_to_end, write_all};
use crate::transport::{HangupDirection, Transport};

/// A transport of two threads, and the other ends of its pipes: one to write to it, one to read from it.
fn pumped() -> (Halves, PipeWriter, PipeReader) {
    let (input, to) = io::pipe().unwrap();
    let (from, output) = io::pipe().unwrap();
    let input = TransportReadHalf::thread(reader(input.into()).unwrap());
    let output = TransportWriteHalf::thread(writer(output.into()).unwrap());
    (Halves { input, output }, to, from)
}

struct Halves {
    input: TransportReadHalf,
    output: TransportWriteHalf,
}

impl Transport for Halves {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.input.poll_read(cx, buf)
    }
    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.output.poll_write(cx, buf)
    }
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.output.poll_flush(cx)
    }
    fn poll_hangup(&mut self, cx: &mut Context<'_>) -> Poll<HangupDirection> {
        if self.input.poll_hangup(cx).is_ready() {
            return Poll::Ready(HangupDirection::Input);
        }
        self.output.poll_hangup(cx).map(|()| HangupDirection::Output)
    }
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.output.poll_close(cx)
    }
}

#[tokio::test]
async fn bytes_arrive_in_order_and_then_the_end() {
    let (mut transport, mut to, mut from) = pumped();
    let sent: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
    let expected = sent.clone();
    let feeding = std::thread::spawn(move || to.write_all(&sent).unwrap());
    let echoed = std::thread::spawn(move || {
        let mut all = Vec::new();
        from.read_to_end(&mut all).unwrap();
        all
    });
    let received = read_to_end(&mut transport).await;
    assert!(received == expected);
    write_all(&mut transport, &received).await.unwrap();
    close(&mut transport).await.unwrap();
    feeding.join().unwrap();
    assert!(echoed.join().unwrap() == expected);
}

#[tokio::test]
async fn a_hangup_is_noticed_although_the_channel_and_the_pipe_are_full() {
    let (mut transport, to, from) = pumped();
    rustix::io::ioctl_fionbio(&to, true).unwrap();
    let mut sent = 0;
    let mut refusals = 0;
    // The thread reads ahead until the channel is full, so the pipe is full only if it stays full.
    while sent <= CHANNEL_CAPACITY || refusals < 20 {
        if let Ok(count) = (&to).write(&[b'x'; 4096]) {
            sent += count;
        } else {
            refusals += 1;
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    no_hangup(&mut transport).await;
    drop(to);
    assert_eq!(hangup(&mut transport).await, HangupDirection::Input);
    no_hangup(&mut transport).await;
    assert_eq!(read_to_end(&mut transport).await.len(), sent);
    drop(from);
}

#[tokio::test]
async fn a_reader_that_goes_away_is_noticed_while_nothing_is_written() {
    let (mut transport, _to, from) = pumped();
    no_hangup(&mut transport).await;
    drop(from);
    assert_eq!(hangup(&mut transport).await, HangupDirection::Output);
    let error = write_all(&mut transport, b"x").await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn a_reader_that_goes_away_is_noticed_while_everything_is_full() {
    let (mut transport, _to, from) = pumped();
    assert!(fill(&mut transport).await >= CHANNEL_CAPACITY);
    no_hangup(&mut transport).await;
    drop(from);
    assert_eq!(hangup(&mut transport).await, HangupDirection::Output);
    let error = write_all(&mut transport, b"x").await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn a_flush_waits_for_the_descriptor_and_not_for_the_thread() {
    let (mut transport, _to, mut from) = pumped();
    fill(&mut transport).await;
    assert!(std::future::poll_fn(|cx| Poll::Ready(transport.poll_flush(cx).is_pending())).await);
    let reading = std::thread::spawn(move || std::io::copy(&mut from, &mut std::io::sink()).unwrap());
    write_all(&mut transport, b"x").await.unwrap();
    drop(transport);
    reading.join().unwrap();
}

#[tokio::test]
async fn dropping_the_transport_ends_both_threads_although_the_peer_is_silent() {
    let (mut transport, mut to, mut from) = pumped();
    to.write_all(b"some").unwrap();
    assert_eq!(read_exactly(&mut transport, 4).await, b"some");
    drop(transport);
    // The threads own the descriptors: when these are closed, the threads are done with them.
    assert_eq!(from.read(&mut [0; 1]).unwrap(), 0);
    while to.write_all(b"x").is_ok() {
        std::thread::yield_now();
    }
}
