//! Threads that read and write blocking handles, on systems where handles have no readiness.
//!
//! The functions `reader` and `writer` exist for Unix too, where they take a file descriptor; here they take any
//! `Read` and `Write`. Hangups are not noticed on these systems: a thread that waits for space in its channel does
//! not see that the peer is gone until it reads again. The threads are never joined, so one that is stuck in a read
//! does not prevent the process from exiting.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use crate::transport::memory::channel::{ByteReceiver, ByteSender, channel};

/// The capacity of the channel between an I/O thread and its transport, in bytes.
const CHANNEL_CAPACITY: usize = 64 * 1024;

/// Starts a thread that reads `source`.
pub(crate) fn reader(source: impl Read + Send + 'static) -> io::Result<ByteReceiver> {
    let (sender, receiver) = channel(CHANNEL_CAPACITY);
    let thread = std::thread::Builder::new().name("steadfast-input".into());
    thread.spawn(move || pump_input(source, sender))?;
    Ok(receiver)
}

/// Starts a thread that writes to `target`. The thread drops `target` when the sender is closed and everything is
/// written.
pub(crate) fn writer(target: impl Write + Send + 'static) -> io::Result<ByteSender> {
    let (sender, receiver) = channel(CHANNEL_CAPACITY);
    let thread = std::thread::Builder::new().name("steadfast-output".into());
    thread.spawn(move || pump_output(target, receiver))?;
    Ok(sender)
}

fn pump_input(mut source: impl Read, mut sender: ByteSender) {
    let mut buf = vec![0; CHANNEL_CAPACITY];
    while let Ok(space) = block(|cx| sender.poll_space(cx)) {
        let Some(free) = buf.get_mut(..space) else { return };
        match source.read(free) {
            Ok(0) => return,
            Ok(count) => {
                let bytes = free.get(..count).unwrap_or_default();
                if block(|cx| sender.poll_write(cx, bytes)).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return sender.fail(error),
        }
    }
}

fn pump_output(mut target: impl Write, mut receiver: ByteReceiver) {
    let mut buf = vec![0; CHANNEL_CAPACITY];
    while let Ok(count @ 1..) = block(|cx| receiver.poll_peek(cx, &mut buf)) {
        let bytes = buf.get(..count).unwrap_or_default();
        if let Err(error) = target.write_all(bytes).and_then(|()| target.flush()) {
            return receiver.fail(error);
        }
        receiver.consume(count);
    }
}

/// Calls `poll` until it returns `Ready`, and parks the calling thread after each `Pending`.
fn block<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    let waker = Waker::from(Arc::new(ThreadWaker(std::thread::current())));
    let mut cx = Context::from_waker(&waker);
    loop {
        match poll(&mut cx) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
