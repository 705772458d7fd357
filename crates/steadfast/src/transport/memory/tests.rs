use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use super::*;
use crate::transport::testing::noop_context;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Count {
    fn pair() -> (Arc<Self>, Waker) {
        let count = Arc::new(Self::default());
        (Arc::clone(&count), Waker::from(count))
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

fn read(end: &mut MemoryTransport, most: usize) -> Poll<Vec<u8>> {
    let mut buf = vec![0; most];
    end.poll_read(&mut noop_context(), &mut buf).map(|count| {
        buf.truncate(count.unwrap());
        buf
    })
}

fn write(end: &mut MemoryTransport, bytes: &[u8]) -> Poll<Result<usize, io::ErrorKind>> {
    end.poll_write(&mut noop_context(), bytes).map_err(|error| error.kind())
}

#[test]
fn bytes_arrive_in_order_in_both_directions() {
    let (mut near, mut far) = pair(100);
    assert_eq!(write(&mut near, b"one "), Poll::Ready(Ok(4)));
    assert_eq!(write(&mut near, b"two"), Poll::Ready(Ok(3)));
    assert_eq!(write(&mut far, b"back"), Poll::Ready(Ok(4)));
    assert_eq!(read(&mut far, 5), Poll::Ready(b"one t".to_vec()));
    assert_eq!(read(&mut far, 100), Poll::Ready(b"wo".to_vec()));
    assert_eq!(read(&mut near, 100), Poll::Ready(b"back".to_vec()));
}

#[test]
fn a_full_direction_takes_no_more_until_it_is_read() {
    let (mut near, mut far) = pair(4);
    assert_eq!(write(&mut near, b"abcdef"), Poll::Ready(Ok(4)));
    assert_eq!(write(&mut near, b"ef"), Poll::Pending);
    assert_eq!(write(&mut far, b"other"), Poll::Ready(Ok(4)), "the other direction has space of its own");
    assert_eq!(read(&mut far, 3), Poll::Ready(b"abc".to_vec()));
    assert_eq!(write(&mut near, b"efgh"), Poll::Ready(Ok(3)));
    assert_eq!(read(&mut far, 10), Poll::Ready(b"defg".to_vec()));
}

#[test]
fn the_order_holds_when_the_buffer_wraps_around() {
    let (mut near, mut far) = pair(7);
    let sent: Vec<u8> = (0..=255).cycle().take(5000).collect();
    let (mut offset, mut received) = (0, Vec::new());
    for step in 0.. {
        if offset < sent.len() {
            let part = &sent[offset..sent.len().min(offset + 1 + step % 5)];
            if let Poll::Ready(count) = write(&mut near, part) {
                offset += count.unwrap();
            }
        }
        if let Poll::Ready(part) = read(&mut far, 1 + step % 3) {
            received.extend(part);
        }
        if received.len() == sent.len() {
            break;
        }
    }
    assert_eq!(received, sent);
}

#[test]
fn a_reader_is_woken_by_bytes_and_by_nothing_else() {
    let (mut near, mut far) = pair(4);
    let (count, waker) = Count::pair();
    assert!(far.poll_read(&mut Context::from_waker(&waker), &mut [0; 4]).is_pending());
    assert_eq!(count.get(), 0);
    assert_eq!(write(&mut near, b"a"), Poll::Ready(Ok(1)));
    assert_eq!(count.get(), 1);
    assert_eq!(write(&mut near, b"b"), Poll::Ready(Ok(1)));
    assert_eq!(count.get(), 1, "it has not polled again");
}

#[test]
fn a_writer_is_woken_by_space() {
    let (mut near, mut far) = pair(1);
    let (count, waker) = Count::pair();
    assert_eq!(write(&mut near, b"a"), Poll::Ready(Ok(1)));
    assert!(near.poll_write(&mut Context::from_waker(&waker), b"b").is_pending());
    assert_eq!(read(&mut far, 1), Poll::Ready(b"a".to_vec()));
    assert_eq!(count.get(), 1);
}

#[test]
fn dropping_an_end_ends_the_stream_after_the_bytes_in_flight() {
    let (mut near, mut far) = pair(100);
    assert_eq!(write(&mut near, b"last words"), Poll::Ready(Ok(10)));
    drop(near);
    assert_eq!(read(&mut far, 4), Poll::Ready(b"last".to_vec()));
    assert_eq!(read(&mut far, 100), Poll::Ready(b" words".to_vec()));
    assert_eq!(read(&mut far, 100), Poll::Ready(Vec::new()));
    assert_eq!(read(&mut far, 100), Poll::Ready(Vec::new()));
}

#[test]
fn dropping_an_end_breaks_the_pipe_for_the_other() {
    let (near, mut far) = pair(100);
    assert_eq!(write(&mut far, b"unread"), Poll::Ready(Ok(6)));
    drop(near);
    assert_eq!(write(&mut far, b"x"), Poll::Ready(Err(io::ErrorKind::BrokenPipe)));
    assert_eq!(write(&mut far, b"x"), Poll::Ready(Err(io::ErrorKind::BrokenPipe)));
}

#[test]
fn dropping_an_end_wakes_a_reader_and_a_writer_that_wait() {
    let (near, mut far) = pair(1);
    assert_eq!(write(&mut far, b"x"), Poll::Ready(Ok(1)));
    let (reading, reader) = Count::pair();
    let (writing, writer) = Count::pair();
    assert!(far.poll_read(&mut Context::from_waker(&reader), &mut [0; 4]).is_pending());
    assert!(far.poll_write(&mut Context::from_waker(&writer), b"y").is_pending());
    drop(near);
    assert_eq!((reading.get(), writing.get()), (1, 1));
}

#[test]
fn closing_one_direction_leaves_the_other_open() {
    let (mut near, mut far) = pair(100);
    assert_eq!(write(&mut near, b"ask"), Poll::Ready(Ok(3)));
    assert!(matches!(near.poll_close(&mut noop_context()), Poll::Ready(Ok(()))));
    assert_eq!(write(&mut near, b"more"), Poll::Ready(Err(io::ErrorKind::BrokenPipe)));
    assert_eq!(read(&mut far, 100), Poll::Ready(b"ask".to_vec()));
    assert_eq!(read(&mut far, 100), Poll::Ready(Vec::new()));
    assert_eq!(write(&mut far, b"answer"), Poll::Ready(Ok(6)));
    assert_eq!(read(&mut near, 100), Poll::Ready(b"answer".to_vec()));
}

#[test]
fn a_hangup_is_noticed_despite_unread_bytes_and_each_kind_once() {
    let (mut near, mut far) = pair(100);
    let (count, waker) = Count::pair();
    let mut cx = Context::from_waker(&waker);
    assert_eq!(write(&mut near, b"unread"), Poll::Ready(Ok(6)));
    assert_eq!(far.poll_hangup(&mut cx), Poll::Pending);
    drop(near);
    assert!(count.get() > 0);
    assert_eq!(far.poll_hangup(&mut cx), Poll::Ready(HangupDirection::Input));
    assert_eq!(far.poll_hangup(&mut cx), Poll::Ready(HangupDirection::Output));
    assert_eq!(far.poll_hangup(&mut cx), Poll::Pending);
    assert_eq!(read(&mut far, 100), Poll::Ready(b"unread".to_vec()));
}

#[test]
fn a_close_of_one_direction_is_a_hangup_of_input_only() {
    let (mut near, mut far) = pair(100);
    assert!(near.poll_close(&mut noop_context()).is_ready());
    assert_eq!(far.poll_hangup(&mut noop_context()), Poll::Ready(HangupDirection::Input));
    assert_eq!(far.poll_hangup(&mut noop_context()), Poll::Pending);
    assert_eq!(near.poll_hangup(&mut noop_context()), Poll::Pending, "its own close is not a hangup");
}

#[test]
fn waiting_for_a_hangup_is_not_disturbed_by_traffic() {
    let (mut near, mut far) = pair(100);
    let (count, waker) = Count::pair();
    assert_eq!(far.poll_hangup(&mut Context::from_waker(&waker)), Poll::Pending);
    assert_eq!(write(&mut near, b"to"), Poll::Ready(Ok(2)));
    assert_eq!(read(&mut far, 10), Poll::Ready(b"to".to_vec()));
    assert_eq!(write(&mut far, b"fro"), Poll::Ready(Ok(3)));
    assert_eq!(read(&mut near, 10), Poll::Ready(b"fro".to_vec()));
    assert_eq!(count.get(), 0);
}

#[test]
fn dropping_the_last_waker_of_a_task_that_owns_an_end_does_not_deadlock() {
    struct Task(#[expect(dead_code, reason = "only its end matters")] std::sync::Mutex<MemoryTransport>);
    impl Wake for Task {
        fn wake(self: Arc<Self>) {}
    }
    let (done, result) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (mut near, far) = pair(1);
        let task = Arc::new(Task(std::sync::Mutex::new(far)));
        let waker = Waker::from(task);
        // Only these wakers, which are inside the channel itself, reference the task that owns the far end.
        assert!(near.poll_read(&mut Context::from_waker(&waker), &mut [0; 1]).is_pending());
        assert_eq!(near.poll_hangup(&mut Context::from_waker(&waker)), Poll::Pending);
        drop(waker);
        assert!(near.poll_read(&mut noop_context(), &mut [0; 1]).is_pending());
        assert_eq!(near.poll_hangup(&mut noop_context()), Poll::Pending);
        // The last waker was the one that waits for the hangup.
        drop(near);
        done.send(()).unwrap();
    });
    result.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
}

#[test]
fn a_capacity_of_zero_still_moves_bytes() {
    let (mut near, mut far) = pair(0);
    assert_eq!(write(&mut near, b"ab"), Poll::Ready(Ok(1)));
    assert_eq!(read(&mut far, 9), Poll::Ready(b"a".to_vec()));
}

#[test]
fn two_threads_move_a_megabyte_without_a_runtime() {
    struct ThreadWaker(std::thread::Thread);
    impl Wake for ThreadWaker {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    fn block<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
        let waker = Waker::from(Arc::new(ThreadWaker(std::thread::current())));
        loop {
            match poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(value) => return value,
                Poll::Pending => std::thread::park(),
            }
        }
    }
    let (mut near, mut far) = pair(997);
    let sent: Vec<u8> = (0..=250).cycle().take(1 << 20).collect();
    let expected = sent.clone();
    let writer = std::thread::spawn(move || {
        let mut rest = sent.as_slice();
        while !rest.is_empty() {
            let count = block(|cx| near.poll_write(cx, rest)).unwrap();
            rest = &rest[count..];
        }
    });
    let (mut received, mut buf) = (Vec::new(), [0; 1009]);
    loop {
        match block(|cx| far.poll_read(cx, &mut buf)).unwrap() {
            0 => break,
            count => received.extend_from_slice(&buf[..count]),
        }
    }
    writer.join().unwrap();
    assert!(received == expected);
}
