//! Threads that read and write descriptors for which the tokio runtime has no readiness events.
//!
//! Threads read and write files, terminals, and pipes that could not be reopened. A reading thread is at most
//! [`CHANNEL_CAPACITY`] bytes ahead of its transport, and still notices a hangup while the channel to the transport is
//! full. A thread waits in `poll(2)` for the descriptor and for a pipe to which the transport writes to wake the
//! thread, so the thread ends soon after the transport is dropped. The threads are never joined: one that is stuck in a
//! call on a terminal does not prevent the process from exiting.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};

use crate::transport::memory::channel::{ByteReceiver, ByteSender, channel};

/// The capacity of the channel between an I/O thread and its transport, in bytes.
pub(crate) const CHANNEL_CAPACITY: usize = 64 * 1024;

/// The maximum number of bytes in one write: `poll(2)` reports a pipe as writable when this many bytes fit, so the
/// write does not block.
const WRITE_SIZE: usize = 4096;

const HUNG_UP: PollFlags = PollFlags::HUP.union(PollFlags::ERR);

/// Starts a thread that reads `descriptor`.
pub(crate) fn reader(descriptor: OwnedFd) -> io::Result<ByteReceiver> {
    let (sender, receiver) = channel(CHANNEL_CAPACITY);
    let mut wait = InterruptibleDescriptor::new(descriptor)?;
    let thread = std::thread::Builder::new().name("steadfast-input".into());
    thread.spawn(move || pump_input(&mut wait, sender))?;
    Ok(receiver)
}

/// Starts a thread that writes to `descriptor`. The thread closes the descriptor when the sender is closed and
/// everything is written.
pub(crate) fn writer(descriptor: OwnedFd) -> io::Result<ByteSender> {
    let (sender, receiver) = channel(CHANNEL_CAPACITY);
    let mut wait = InterruptibleDescriptor::new(descriptor)?;
    let thread = std::thread::Builder::new().name("steadfast-output".into());
    thread.spawn(move || pump_output(&mut wait, receiver))?;
    Ok(sender)
}

fn pump_input(wait: &mut InterruptibleDescriptor, mut sender: ByteSender) {
    let mut buf = vec![0; CHANNEL_CAPACITY];
    let waker = wait.waker();
    let mut cx = Context::from_waker(&waker);
    let mut hung_up = false;
    while sender.poll_receiver_dropped(&mut cx).is_pending() {
        let space = match sender.poll_space(&mut cx) {
            Poll::Ready(Ok(space)) => space.min(buf.len()),
            Poll::Ready(Err(_)) => return,
            Poll::Pending => 0,
        };
        let ready = if space > 0 { wait.wait(PollFlags::IN) } else { wait.wait_for_hangup(hung_up) };
        if ready.intersects(HUNG_UP) && !hung_up {
            hung_up = true;
            sender.hang_up();
        }
        let (true, Some(free)) = (!ready.is_empty(), buf.get_mut(..space)) else { continue };
        if free.is_empty() {
            continue;
        }
        match rustix::io::read(wait.descriptor(), &mut *free) {
            Ok(0) => return,
            Ok(count) => {
                // The bytes fit: only this thread writes to the channel.
                if let Poll::Ready(Err(_)) = sender.poll_write(&mut cx, free.get(..count).unwrap_or_default()) {
                    return;
                }
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => pause_before_retry(),
            Err(error) => return sender.fail(error.into()),
        }
    }
}

fn pump_output(wait: &mut InterruptibleDescriptor, mut receiver: ByteReceiver) {
    let mut buf = vec![0; WRITE_SIZE];
    let waker = wait.waker();
    let mut cx = Context::from_waker(&waker);
    loop {
        let count = match receiver.poll_peek(&mut cx, &mut buf) {
            // The stream has ended, and all of it is written.
            Poll::Ready(Ok(0) | Err(_)) => return,
            Poll::Ready(Ok(count)) => count,
            Poll::Pending => 0,
        };
        if count == 0 {
            // Dropping the receiver tells the transport that the peer does not read.
            if wait.wait_for_hangup(false).intersects(HUNG_UP) {
                return;
            }
            continue;
        }
        if wait.wait(PollFlags::OUT).is_empty() {
            continue;
        }
        match rustix::io::write(wait.descriptor(), buf.get(..count).unwrap_or_default()) {
            Ok(written) => receiver.consume(written),
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => pause_before_retry(),
            Err(error) => return receiver.fail(error.into()),
        }
    }
}

/// Sleeps before a retry if neither `poll(2)` nor the read or write itself has waited, so that the thread does not
/// spin.
fn pause_before_retry() {
    std::thread::sleep(Duration::from_millis(1));
}

/// A descriptor that a thread waits for, and a waker that interrupts the wait.
struct InterruptibleDescriptor {
    descriptor: OwnedFd,
    waker: Arc<PollThreadWaker>,
    /// The pipe that becomes readable when the waker is used.
    wakeups: PipeReader,
    /// False if the system cannot poll this descriptor; then the thread reads or writes it without polling.
    pollable: bool,
}

/// A waker for a thread that waits in `poll(2)`.
struct PollThreadWaker(PipeWriter);

impl InterruptibleDescriptor {
    fn new(descriptor: OwnedFd) -> io::Result<Self> {
        let (wakeups, waker) = io::pipe()?;
        rustix::io::ioctl_fionbio(&wakeups, true)?;
        rustix::io::ioctl_fionbio(&waker, true)?;
        Ok(Self { descriptor, waker: Arc::new(PollThreadWaker(waker)), wakeups, pollable: true })
    }

    fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.waker))
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Waits until the descriptor is ready or the waker is used. The returned flags are empty if only the waker was
    /// used.
    fn wait(&mut self, wanted: PollFlags) -> PollFlags {
        if !self.pollable {
            return wanted;
        }
        self.poll(wanted, true)
    }

    /// Blocks the thread until the descriptor hangs up or the transport wakes the thread. If the hangup is `known`
    /// already, only the transport ends the wait.
    fn wait_for_hangup(&mut self, known: bool) -> PollFlags {
        self.poll(PollFlags::empty(), self.pollable && !known)
    }

    fn poll(&mut self, wanted: PollFlags, with_descriptor: bool) -> PollFlags {
        let mut polled = [
            PollFd::from_borrowed_fd(self.wakeups.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.descriptor.as_fd(), wanted),
        ];
        let count = if with_descriptor { 2 } else { 1 };
        match rustix::event::poll(polled.get_mut(..count).unwrap_or_default(), None) {
            // An interrupted wait has no events, and the caller waits again.
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => pause_before_retry(),
        }
        let [wakeups, descriptor] = polled;
        let (woken, mut ready) = (wakeups.revents(), descriptor.revents());
        if !woken.is_empty() {
            self.drain_wakeups();
        }
        if ready.contains(PollFlags::NVAL) {
            self.pollable = false;
            ready = wanted;
        }
        ready
    }

    fn drain_wakeups(&mut self) {
        let mut bytes = [0; 64];
        while matches!(self.wakeups.read(&mut bytes), Ok(count) if count == bytes.len()) {}
    }
}

impl Wake for PollThreadWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // If the pipe is full, the thread is being woken already.
        let _ = (&self.0).write(&[1]);
    }
}

#[cfg(test)]
mod tests;
