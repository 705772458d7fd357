//! The standard input and output of this process as a transport.
//!
//! An MCP client starts a server and communicates with it through its standard input and output. Two things go wrong
//! in practice with servers on standard input and output: code prints to standard output, between the messages, or a
//! child process inherits standard input and consumes requests. [`Stdio::take`] prevents stray output and lost
//! requests: it moves the descriptors of standard input and output to other numbers that only the transport knows,
//! and puts the null device in the place of standard input and standard error in the place of standard output.
//!
//! The parent process shares the descriptors, so this module never sets `O_NONBLOCK` on them. On Linux a pipe is reopened to get
//! a non-blocking open file description of its own; each call on a socket has the flag not to wait; everything else (a file,
//! a terminal, and pipes on systems that cannot reopen them) is read and written by one thread for each direction.

use std::io;
#[cfg(unix)]
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use super::fd::input::TransportReadHalf;
use super::fd::output::TransportWriteHalf;
use super::{HangupDirection, Transport};

static TAKEN: AtomicBool = AtomicBool::new(false);

/// A transport over standard input and output, or over two descriptors in their place.
///
/// The transport notices that the client has closed its end even while there are unread requests or responses that the
/// client does not read: see [`Transport::poll_hangup`].
#[derive(Debug)]
pub struct Stdio {
    input: TransportReadHalf,
    output: TransportWriteHalf,
}

impl Stdio {
    /// Takes standard input and output for the protocol. Standard input and output can be taken only once in a process.
    ///
    /// After `Stdio::take`, `println!` and the output of child processes go to standard error, and reading standard
    /// input returns the end of input. Do not read from [`std::io::stdin`] before `Stdio::take`: it may buffer more
    /// bytes than it returns, and they would be lost. Dropping the transport does not restore standard input and
    /// output.
    ///
    /// On systems other than Unix, threads read and write the standard streams, and `println!` still goes to standard
    /// output.
    ///
    /// # Errors
    ///
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists) if standard input and output were taken before, and the error of
    /// the system if a descriptor cannot be duplicated.
    pub fn take() -> io::Result<Self> {
        if TAKEN.swap(true, Ordering::SeqCst) {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "standard input and output are already taken: a process can serve only one peer on them",
            ));
        }
        Self::take_now()
    }

    #[cfg(unix)]
    fn take_now() -> io::Result<Self> {
        let (input, output) = super::fd::descriptors::take_standard_streams()?;
        Self::from_descriptors(input, output)
    }

    #[cfg(not(unix))]
    fn take_now() -> io::Result<Self> {
        Ok(Self {
            input: TransportReadHalf::thread(super::fd::pump::reader(io::stdin())?),
            output: TransportWriteHalf::thread(super::fd::pump::writer(io::stdout())?),
        })
    }

    /// Uses two descriptors as [`take`](Stdio::take) uses standard input and output. The descriptors may be pipes,
    /// sockets, files or terminals, and other processes may share them: their flags are not changed.
    ///
    /// # Errors
    ///
    /// Fails if the kind of a descriptor cannot be determined, or if a thread that reads or writes it cannot be
    /// started.
    #[cfg(unix)]
    pub fn from_descriptors(input: OwnedFd, output: OwnedFd) -> io::Result<Self> {
        Ok(Self { input: TransportReadHalf::shared(input)?, output: TransportWriteHalf::shared(output)? })
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

#[cfg(all(test, unix))]
mod tests;
