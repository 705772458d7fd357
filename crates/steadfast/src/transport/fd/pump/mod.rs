//! Threads that carry bytes to and from a descriptor for which the runtime offers no readiness.
//!
//! Files, terminals, and pipes that could not be opened a second time come here. A thread hands over at most
//! [`HAND_OVER`] bytes ahead, and still notices a hangup while there is no room. It waits in `poll(2)`, for the descriptor
//! and for a bell that the transport's side rings, so it ends soon after the transport is dropped. Nobody waits for such
//! a thread: one that is stuck in a call on a terminal does not keep the process from ending.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};

use crate::transport::memory::channel::{Receiver, Sender, channel};

/// How many bytes wait between a thread and its transport.
pub(crate) const HAND_OVER: usize = 64 * 1024;

/// `poll(2)` calls a pipe writable when this much fits, so that a write of it does not wait.
const WRITE_UNIT: usize = 4096;

const GONE: PollFlags = PollFlags::HUP.union(PollFlags::ERR);

/// Starts a thread that reads `descriptor`.
pub(crate) fn reader(descriptor: OwnedFd) -> io::Result<Receiver> {
    let (sender, receiver) = channel(HAND_OVER);
    let mut watch = Watch::new(descriptor)?;
    let thread = std::thread::Builder::new().name("steadfast-input".into());
    thread.spawn(move || carry_input(&mut watch, sender))?;
    Ok(receiver)
}

/// Starts a thread that writes `descriptor`, and closes it when the sender is closed and all is written.
pub(crate) fn writer(descriptor: OwnedFd) -> io::Result<Sender> {
    let (sender, receiver) = channel(HAND_OVER);
    let mut watch = Watch::new(descriptor)?;
    let thread = std::thread::Builder::new().name("steadfast-output".into());
    thread.spawn(move || carry_output(&mut watch, receiver))?;
    Ok(sender)
}

fn carry_input(watch: &mut Watch, mut sender: Sender) {
    let mut buf = vec![0; HAND_OVER];
    let waker = watch.waker();
    let mut cx = Context::from_waker(&waker);
    let mut hung_up = false;
    while sender.poll_gone(&mut cx).is_pending() {
        let space = match sender.poll_space(&mut cx) {
            Poll::Ready(Ok(space)) => space.min(buf.len()),
            Poll::Ready(Err(_)) => return,
            Poll::Pending => 0,
        };
        let seen = if space > 0 { watch.wait(PollFlags::IN) } else { watch.wait_for_end(hung_up) };
        if seen.intersects(GONE) && !hung_up {
            hung_up = true;
            sender.hang_up();
        }
        let (true, Some(room)) = (!seen.is_empty(), buf.get_mut(..space)) else { continue };
        if room.is_empty() {
            continue;
        }
        match rustix::io::read(watch.descriptor(), &mut *room) {
            Ok(0) => return,
            Ok(count) => {
                // There is room: this thread is the only one that fills the channel.
                if let Poll::Ready(Err(_)) = sender.poll_write(&mut cx, room.get(..count).unwrap_or_default()) {
                    return;
                }
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => breathe(),
            Err(error) => return sender.fail(error.into()),
        }
    }
}

fn carry_output(watch: &mut Watch, mut receiver: Receiver) {
    let mut buf = vec![0; WRITE_UNIT];
    let waker = watch.waker();
    let mut cx = Context::from_waker(&waker);
    loop {
        let count = match receiver.poll_peek(&mut cx, &mut buf) {
            // The stream ended and every byte of it was written.
            Poll::Ready(Ok(0) | Err(_)) => return,
            Poll::Ready(Ok(count)) => count,
            Poll::Pending => 0,
        };
        if count == 0 {
            // Dropping the receiver is what tells the transport that nobody reads.
            if watch.wait_for_end(false).intersects(GONE) {
                return;
            }
            continue;
        }
        if watch.wait(PollFlags::OUT).is_empty() {
            continue;
        }
        match rustix::io::write(watch.descriptor(), buf.get(..count).unwrap_or_default()) {
            Ok(written) => receiver.consume(written),
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => breathe(),
            Err(error) => return receiver.fail(error.into()),
        }
    }
}

/// Waiting did not work, and trying found nothing: do not spin.
fn breathe() {
    std::thread::sleep(Duration::from_millis(1));
}

/// A descriptor, and the bell that interrupts waiting for it.
struct Watch {
    descriptor: OwnedFd,
    bell: Arc<Bell>,
    heard: PipeReader,
    /// Some systems cannot poll every device; then only the calls themselves can tell.
    pollable: bool,
}

/// A waker for a thread that waits in `poll(2)`.
struct Bell(PipeWriter);

impl Watch {
    fn new(descriptor: OwnedFd) -> io::Result<Self> {
        let (heard, bell) = io::pipe()?;
        rustix::io::ioctl_fionbio(&heard, true)?;
        rustix::io::ioctl_fionbio(&bell, true)?;
        Ok(Self { descriptor, bell: Arc::new(Bell(bell)), heard, pollable: true })
    }

    fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.bell))
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Waits until the descriptor is ready, or the bell rings. Empty: only the bell.
    fn wait(&mut self, wanted: PollFlags) -> PollFlags {
        if !self.pollable {
            return wanted;
        }
        self.poll(wanted, true)
    }

    /// Waits for a hangup or the bell, or for the bell alone when the hangup is already known.
    fn wait_for_end(&mut self, known: bool) -> PollFlags {
        self.poll(PollFlags::empty(), self.pollable && !known)
    }

    fn poll(&mut self, wanted: PollFlags, with_descriptor: bool) -> PollFlags {
        let mut polled = [
            PollFd::from_borrowed_fd(self.heard.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.descriptor.as_fd(), wanted),
        ];
        let count = if with_descriptor { 2 } else { 1 };
        match rustix::event::poll(polled.get_mut(..count).unwrap_or_default(), None) {
            // An interrupted wait shows no events, and the caller comes back.
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => breathe(),
        }
        let [bell, descriptor] = polled;
        let (rung, mut seen) = (bell.revents(), descriptor.revents());
        if !rung.is_empty() {
            self.quiet();
        }
        if seen.contains(PollFlags::NVAL) {
            self.pollable = false;
            seen = wanted;
        }
        seen
    }

    fn quiet(&mut self) {
        let mut rings = [0; 64];
        while matches!(self.heard.read(&mut rings), Ok(count) if count == rings.len()) {}
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // A full bell is ringing already.
        let _ = (&self.0).write(&[1]);
    }
}

#[cfg(test)]
mod tests;
