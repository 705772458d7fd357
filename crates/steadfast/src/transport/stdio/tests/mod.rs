use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::unix::net::UnixStream;

use rustix::fs::OFlags;

use super::*;
use crate::transport::testing::{close, fill, hangup, no_hangup, read, read_exactly, read_to_end, write_all};

mod taking;

/// A transport over two pipes, and the other ends of the pipes.
fn piped() -> (Stdio, PipeWriter, PipeReader) {
    let (input, to) = io::pipe().unwrap();
    let (from, output) = io::pipe().unwrap();
    (Stdio::from_descriptors(input.into(), output.into()).unwrap(), to, from)
}

/// A transport over two socket pairs, which some clients use instead of pipes.
fn socketed() -> (Stdio, UnixStream, UnixStream) {
    let (input, to) = UnixStream::pair().unwrap();
    let (output, from) = UnixStream::pair().unwrap();
    (Stdio::from_descriptors(input.into(), output.into()).unwrap(), to, from)
}

fn flags(descriptor: &impl std::os::fd::AsFd) -> OFlags {
    rustix::fs::fcntl_getfl(descriptor).unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn pipes_and_sockets_need_no_threads() {
    let (pipes, _to, _from) = piped();
    assert!(matches!((pipes.input, pipes.output), (TransportReadHalf::Watched(_), TransportWriteHalf::Watched(_))));
    let (sockets, _to, _from) = socketed();
    assert!(matches!((sockets.input, sockets.output), (TransportReadHalf::Watched(_), TransportWriteHalf::Watched(_))));
}

#[tokio::test]
async fn bytes_pass_through_pipes_in_both_directions() {
    let (mut transport, mut to, mut from) = piped();
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
async fn inherited_descriptors_stay_blocking() {
    let (input, to) = io::pipe().unwrap();
    let (from, output) = io::pipe().unwrap();
    let shared = (input.try_clone().unwrap(), output.try_clone().unwrap());
    let mut transport = Stdio::from_descriptors(input.into(), output.into()).unwrap();
    (&to).write_all(b"hello").unwrap();
    assert_eq!(read_exactly(&mut transport, 5).await, b"hello");
    write_all(&mut transport, b"world").await.unwrap();
    assert!(!flags(&shared.0).contains(OFlags::NONBLOCK));
    assert!(!flags(&shared.1).contains(OFlags::NONBLOCK));
    drop(from);

    let (input, to) = UnixStream::pair().unwrap();
    let (output, mut from) = UnixStream::pair().unwrap();
    let shared = (input.try_clone().unwrap(), output.try_clone().unwrap());
    let mut transport = Stdio::from_descriptors(input.into(), output.into()).unwrap();
    (&to).write_all(b"hello").unwrap();
    assert_eq!(read_exactly(&mut transport, 5).await, b"hello");
    write_all(&mut transport, b"world").await.unwrap();
    from.read_exact(&mut [0; 5]).unwrap();
    assert!(!flags(&shared.0).contains(OFlags::NONBLOCK));
    assert!(!flags(&shared.1).contains(OFlags::NONBLOCK));
}

#[tokio::test]
async fn a_pipe_that_hangs_up_is_noticed_despite_unread_bytes() {
    let (mut transport, mut to, _from) = piped();
    no_hangup(&mut transport).await;
    to.write_all(b"unread").unwrap();
    no_hangup(&mut transport).await;
    drop(to);
    assert_eq!(hangup(&mut transport).await, HangupDirection::Input);
    no_hangup(&mut transport).await;
    assert_eq!(read_to_end(&mut transport).await, b"unread");
}

#[tokio::test]
async fn a_pipe_that_hangs_up_is_noticed_although_it_is_full() {
    let (mut transport, to, _from) = piped();
    rustix::io::ioctl_fionbio(&to, true).unwrap();
    let mut sent = 0;
    while let Ok(count) = (&to).write(&[b'x'; 4096]) {
        sent += count;
    }
    no_hangup(&mut transport).await;
    drop(to);
    assert_eq!(hangup(&mut transport).await, HangupDirection::Input);
    assert_eq!(read_to_end(&mut transport).await.len(), sent);
}

#[tokio::test]
async fn waiting_for_a_hangup_does_not_steal_the_wakeup_of_the_reader() {
    let (mut transport, mut to, _from) = piped();
    for round in 0..50_u8 {
        to.write_all(&[round; 3]).unwrap();
        no_hangup(&mut transport).await;
        assert_eq!(read(&mut transport, 2).await.unwrap(), [round; 2]);
        no_hangup(&mut transport).await;
        assert_eq!(read(&mut transport, 2).await.unwrap(), [round]);
        // Both now wait for the same empty pipe, before the bytes arrive.
        let late = to.try_clone().unwrap();
        let writing = std::thread::spawn(move || (&late).write_all(b"late").unwrap());
        let mut buf = [0; 8];
        let count = crate::transport::testing::settle(std::future::poll_fn(|cx| {
            assert_eq!(transport.poll_hangup(cx), Poll::Pending);
            let read = transport.poll_read(cx, &mut buf);
            assert_eq!(transport.poll_hangup(cx), Poll::Pending);
            read
        }))
        .await
        .unwrap();
        writing.join().unwrap();
        let mut seen = buf[..count].to_vec();
        seen.extend(read_exactly(&mut transport, 4 - count).await);
        assert_eq!(seen, b"late");
    }
}

#[tokio::test]
async fn a_pipe_without_a_reader_is_noticed_while_nothing_is_written() {
    let (mut transport, _to, from) = piped();
    no_hangup(&mut transport).await;
    drop(from);
    assert_eq!(hangup(&mut transport).await, HangupDirection::Output);
    no_hangup(&mut transport).await;
    let error = write_all(&mut transport, b"x").await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn a_pipe_without_a_reader_is_noticed_although_it_is_full() {
    let (mut transport, _to, from) = piped();
    assert!(fill(&mut transport).await > 0);
    no_hangup(&mut transport).await;
    drop(from);
    assert_eq!(hangup(&mut transport).await, HangupDirection::Output);
    let error = write_all(&mut transport, b"x").await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn a_writer_that_waits_for_space_goes_on_when_the_peer_reads() {
    let (mut transport, _to, mut from) = piped();
    let filled = fill(&mut transport).await;
    let reading = std::thread::spawn(move || {
        let mut all = Vec::new();
        from.read_to_end(&mut all).unwrap();
        all.len()
    });
    write_all(&mut transport, &vec![b'y'; 300_000]).await.unwrap();
    close(&mut transport).await.unwrap();
    assert_eq!(reading.join().unwrap(), filled + 300_000);
}

#[tokio::test]
async fn a_writer_that_waits_for_space_learns_that_the_reader_is_gone() {
    let (mut transport, _to, from) = piped();
    fill(&mut transport).await;
    let leaving = std::thread::spawn(move || drop(from));
    let error = write_all(&mut transport, b"x").await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    leaving.join().unwrap();
}

#[tokio::test]
async fn after_a_close_nothing_can_be_written_and_reading_goes_on() {
    let (mut transport, mut to, mut from) = piped();
    write_all(&mut transport, b"bye").await.unwrap();
    close(&mut transport).await.unwrap();
    close(&mut transport).await.unwrap();
    let mut all = Vec::new();
    from.read_to_end(&mut all).unwrap();
    assert_eq!(all, b"bye");
    assert_eq!(write_all(&mut transport, b"x").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    no_hangup(&mut transport).await;
    to.write_all(b"still here").unwrap();
    assert_eq!(read_exactly(&mut transport, 10).await, b"still here");
}

#[tokio::test]
async fn bytes_pass_through_socket_pairs_and_then_the_end() {
    let (mut transport, mut to, mut from) = socketed();
    let sent: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
    let expected = sent.clone();
    let feeding = std::thread::spawn(move || to.write_all(&sent).unwrap());
    let echoed = std::thread::spawn(move || {
        let mut all = Vec::new();
        from.read_to_end(&mut all).unwrap();
        all
    });
    let received = read_to_end(&mut transport).await;
    write_all(&mut transport, &received).await.unwrap();
    close(&mut transport).await.unwrap();
    feeding.join().unwrap();
    assert!(echoed.join().unwrap() == expected);
}

#[tokio::test]
async fn a_socket_pair_that_hangs_up_is_noticed_despite_unread_bytes() {
    let (mut transport, mut to, _from) = socketed();
    to.write_all(b"unread").unwrap();
    no_hangup(&mut transport).await;
    drop(to);
    assert_eq!(hangup(&mut transport).await, HangupDirection::Input);
    assert_eq!(read_to_end(&mut transport).await, b"unread");
}

#[tokio::test]
async fn a_socket_pair_that_is_closed_in_one_direction_is_noticed() {
    let (mut transport, mut to, _from) = socketed();
    to.write_all(b"unread").unwrap();
    no_hangup(&mut transport).await;
    to.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(hangup(&mut transport).await, HangupDirection::Input);
    assert_eq!(read_to_end(&mut transport).await, b"unread");
}

#[tokio::test]
async fn a_socket_pair_without_a_reader_is_noticed_idle_and_full() {
    let (mut transport, _to, from) = socketed();
    no_hangup(&mut transport).await;
    drop(from);
    assert_eq!(hangup(&mut transport).await, HangupDirection::Output);

    let (mut transport, _to, from) = socketed();
    assert!(fill(&mut transport).await > 0);
    no_hangup(&mut transport).await;
    drop(from);
    assert_eq!(hangup(&mut transport).await, HangupDirection::Output);
    assert_eq!(write_all(&mut transport, b"x").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn one_socket_can_be_both_input_and_output() {
    let (near, mut far) = UnixStream::pair().unwrap();
    let again = near.try_clone().unwrap();
    let mut transport = Stdio::from_descriptors(near.into(), again.into()).unwrap();
    far.write_all(b"ping").unwrap();
    assert_eq!(read_exactly(&mut transport, 4).await, b"ping");
    write_all(&mut transport, b"pong").await.unwrap();
    close(&mut transport).await.unwrap();
    let mut all = Vec::new();
    far.read_to_end(&mut all).unwrap();
    assert_eq!(all, b"pong");
    drop(far);
    assert_eq!(hangup(&mut transport).await, HangupDirection::Input);
    no_hangup(&mut transport).await;
}

#[tokio::test]
async fn files_are_read_to_their_end_and_written() {
    let directory = std::env::temp_dir().join(format!("steadfast-stdio-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (from, to) = (directory.join("in"), directory.join("out"));
    let content: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    std::fs::write(&from, &content).unwrap();
    let (input, output) = (File::open(&from).unwrap(), File::create(&to).unwrap());
    let mut transport = Stdio::from_descriptors(input.into(), output.into()).unwrap();
    let received = read_to_end(&mut transport).await;
    write_all(&mut transport, &received).await.unwrap();
    assert!(std::fs::read(&to).unwrap() == content, "a flush writes everything");
    close(&mut transport).await.unwrap();
    std::fs::remove_dir_all(directory).unwrap();
}

#[tokio::test]
async fn the_null_device_is_empty_and_takes_everything() {
    let input = File::open("/dev/null").unwrap();
    let output = File::options().write(true).open("/dev/null").unwrap();
    let mut transport = Stdio::from_descriptors(input.into(), output.into()).unwrap();
    write_all(&mut transport, &vec![0; 200_000]).await.unwrap();
    assert_eq!(read_to_end(&mut transport).await, b"");
}

#[tokio::test]
async fn a_pipe_that_lost_its_reader_before_it_was_opened_is_reported() {
    let (from, output) = io::pipe().unwrap();
    drop(from);
    let (input, _to) = io::pipe().unwrap();
    let mut transport = Stdio::from_descriptors(input.into(), output.into()).unwrap();
    assert_eq!(hangup(&mut transport).await, HangupDirection::Output);
    assert_eq!(write_all(&mut transport, b"x").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn the_runtime_that_polls_is_the_one_that_watches() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let made = runtime().block_on(async { piped() });
    let (mut transport, mut to, _from) = made;
    runtime().block_on(async {
        let feeding = std::thread::spawn(move || to.write_all(b"hello").unwrap());
        assert_eq!(read_exactly(&mut transport, 5).await, b"hello");
        feeding.join().unwrap();
        assert_eq!(hangup(&mut transport).await, HangupDirection::Input);
    });
}

#[test]
fn without_a_runtime_there_is_an_error_and_no_panic() {
    let (mut transport, _to, _from) = piped();
    let mut cx = crate::transport::testing::noop_context();
    assert!(matches!(transport.poll_read(&mut cx, &mut [0; 8]), Poll::Ready(Err(_))));
}
