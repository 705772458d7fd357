//! The standard input and output of this process, given to the protocol.
//!
//! An MCP client starts a server and speaks to it through its standard input and output. Two things go wrong with that in
//! practice: something prints to standard output and breaks the wire, or a child process inherits standard input and eats
//! requests. [`Stdio::take`] ends both: it takes the real descriptors away, puts the null device where standard input
//! was and standard error where standard output was, and keeps the real ones to itself.
//!
//! The descriptors are shared with whoever started us, so this module never sets `O_NONBLOCK` on them. On Linux a pipe is
//! opened a second time for a non-blocking description of our own; a socket is asked not to wait call by call; everything
//! else (a file, a terminal, and pipes on systems that cannot reopen them) is carried by a thread for each direction.

use std::io;
#[cfg(unix)]
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use super::fd::input::Input;
use super::fd::output::Output;
use super::{Hangup, Transport};

static TAKEN: AtomicBool = AtomicBool::new(false);

/// A transport over standard input and output, or over two descriptors in their place.
///
/// It notices that the client has closed its end while nothing is read (behind unread requests) and while nothing is
/// written (behind answers that nobody takes): see [`Transport::poll_hangup`].
#[derive(Debug)]
pub struct Stdio {
    input: Input,
    output: Output,
}

impl Stdio {
    /// Takes standard input and output for the protocol, once in the life of the process.
    ///
    /// From here on `println!` and the output of child processes go to standard error, and whoever reads standard input
    /// finds it empty. What was read through [`std::io::stdin`] before this call may have taken more than it gave out:
    /// take the descriptors first. They are not given back when the transport is dropped.
    ///
    /// On systems other than Unix the streams are carried by threads and are not moved out of reach.
    ///
    /// # Errors
    ///
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists) when they were taken before, and whatever the system says when
    /// a descriptor cannot be duplicated.
    pub fn take() -> io::Result<Self> {
        if TAKEN.swap(true, Ordering::SeqCst) {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "standard input and output were already taken: one process can serve one peer on them",
            ));
        }
        Self::take_now()
    }

    #[cfg(unix)]
    fn take_now() -> io::Result<Self> {
        let (input, output) = super::fd::descriptors::take_standard()?;
        Self::from_descriptors(input, output)
    }

    #[cfg(not(unix))]
    fn take_now() -> io::Result<Self> {
        Ok(Self {
            input: Input::thread(super::fd::pump::reader(io::stdin())?),
            output: Output::thread(super::fd::pump::writer(io::stdout())?),
        })
    }

    /// Uses two descriptors in the way that [`take`](Stdio::take) uses standard input and output: pipes, sockets, files
    /// or terminals, which others may share and whose flags stay as they are.
    ///
    /// # Errors
    ///
    /// When the system does not say what they are, or a thread that is needed for one cannot be started.
    #[cfg(unix)]
    pub fn from_descriptors(input: OwnedFd, output: OwnedFd) -> io::Result<Self> {
        Ok(Self { input: Input::shared(input)?, output: Output::shared(output)? })
    }
}

impl Transport for Stdio {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.input.poll_read(cx, buf)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.output.poll_write(cx, buf)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.output.poll_flush(cx)
    }

    fn poll_hangup(&mut self, cx: &mut Context<'_>) -> Poll<Hangup> {
        if self.input.poll_hangup(cx).is_ready() {
            return Poll::Ready(Hangup::Input);
        }
        self.output.poll_hangup(cx).map(|()| Hangup::Output)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.output.poll_close(cx)
    }
}

#[cfg(all(test, unix))]
mod tests;
