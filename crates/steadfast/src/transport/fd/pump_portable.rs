//! Threads that carry bytes to and from blocking handles, where handles have no readiness.
//!
//! The same two functions as on Unix, for anything that reads and writes. What is missing here is the hangup: a thread
//! that waits for room does not see that the peer is gone until it reads on. Nobody waits for such a thread, so one that
//! is stuck in a read does not keep the process from ending.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use crate::transport::memory::channel::{Receiver, Sender, channel};

/// How many bytes wait between a thread and its transport.
const HAND_OVER: usize = 64 * 1024;

/// Starts a thread that reads `source`.
pub(crate) fn reader(source: impl Read + Send + 'static) -> io::Result<Receiver> {
    let (sender, receiver) = channel(HAND_OVER);
    let thread = std::thread::Builder::new().name("steadfast-input".into());
    thread.spawn(move || carry_input(source, sender))?;
    Ok(receiver)
}

/// Starts a thread that writes `target`, and drops it when the sender is closed and all is written.
pub(crate) fn writer(target: impl Write + Send + 'static) -> io::Result<Sender> {
    let (sender, receiver) = channel(HAND_OVER);
    let thread = std::thread::Builder::new().name("steadfast-output".into());
    thread.spawn(move || carry_output(target, receiver))?;
    Ok(sender)
}

fn carry_input(mut source: impl Read, mut sender: Sender) {
    let mut buf = vec![0; HAND_OVER];
    while let Ok(space) = block(|cx| sender.poll_space(cx)) {
        let Some(room) = buf.get_mut(..space) else { return };
        match source.read(room) {
            Ok(0) => return,
            Ok(count) => {
                let bytes = room.get(..count).unwrap_or_default();
                if block(|cx| sender.poll_write(cx, bytes)).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return sender.fail(error),
        }
    }
}

fn carry_output(mut target: impl Write, mut receiver: Receiver) {
    let mut buf = vec![0; HAND_OVER];
    while let Ok(count @ 1..) = block(|cx| receiver.poll_peek(cx, &mut buf)) {
        let bytes = buf.get(..count).unwrap_or_default();
        if let Err(error) = target.write_all(bytes).and_then(|()| target.flush()) {
            return receiver.fail(error);
        }
        receiver.consume(count);
    }
}

/// Waits on this thread.
fn block<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    let waker = Waker::from(Arc::new(Parked(std::thread::current())));
    let mut cx = Context::from_waker(&waker);
    loop {
        match poll(&mut cx) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
