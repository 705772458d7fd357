//! A server process that we start, speak to, and end for certain.
//!
//! The process gets a process group of its own, pipes for its standard input and output, and somebody who reads what it
//! says on standard error. Its end is the same whether it is asked for with [`Child::shutdown`], comes by dropping the
//! [`Child`], or starts with the process leaving on its own: standard input is closed; if that is not enough after a
//! while, SIGTERM goes to the whole group; after another while, SIGKILL. The process is always reaped.
//!
//! All of this is done by plain threads, one that waits for the process and one for its standard error, so it works
//! without a runtime, and while a runtime is going down. The last of what it says on standard error is kept, for whoever wants
//! to know why it left. A process that moved itself out of the group and keeps our pipes
//! open is no reason to wait: the peer is the process that was started, and when that one has ended the stream ends too.
//!
//! On systems other than Unix there are no groups and no SIGTERM: the process itself is killed when its time is up.

use std::io;
use std::task::{Context, Poll};

use super::fd::input::Input;
use super::fd::output::Output;
use super::{Hangup, Transport, broken_pipe};

mod command;
#[cfg(unix)]
mod group;
#[cfg_attr(not(unix), path = "child/keeper_portable.rs")]
mod keeper;
mod life;
mod lines;
mod report;

pub use command::Command;
pub use life::{Ended, Exit, Handle};

/// A running server process, as a transport to it.
///
/// ```no_run
/// # async fn example() -> std::io::Result<()> {
/// use steadfast::transport::child::{Child, Command};
///
/// let server = Child::spawn(Command::new("my-server").arg("--verbose").on_stderr_line(|line| eprintln!("{line}")))?;
/// let status = server.shutdown().await;
/// # let _ = status;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Child {
    /// `None` once the process has ended and everything that it wrote was read.
    input: Option<Input>,
    /// `None` once it is closed.
    output: Option<Output>,
    handle: Handle,
    watch: life::Watch,
    input_reported: bool,
    output_reported: bool,
    /// Its end was begun by us.
    leaving: bool,
    /// It left, or closed its end of a pipe, before it was asked to.
    left: bool,
}

impl Child {
    /// Starts the process.
    ///
    /// # Errors
    ///
    /// When there is no such program, or the system cannot start it, or a thread to look after it. Nothing is left
    /// running then.
    pub fn spawn(mut command: Command) -> io::Result<Self> {
        command.spawn()
    }

    fn start(command: &mut Command) -> io::Result<Self> {
        let keeper::StartedProcess { input, output, handle } = keeper::start(command)?;
        let watch = handle.watch();
        Ok(Self {
            input: Some(input),
            output: Some(output),
            handle,
            watch,
            input_reported: false,
            output_reported: false,
            leaving: false,
            left: false,
        })
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.handle.id()
    }

    /// A handle that outlives the transport: to learn of the end of the process, or to bring it about.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Completes with the exit status as soon as the process has ended.
    pub fn exit(&self) -> Exit {
        self.handle.exit()
    }

    /// Closes the process's standard input, gives it time to leave, and sees to it that it does. What it still writes
    /// is read and thrown away, so that it is not stuck in a write.
    ///
    /// The future completes when the process is reaped and its group is gone. Dropping the future stops the waiting, not
    /// the ending.
    pub fn shutdown(mut self) -> Ended {
        self.begin_end();
        self.handle.ended()
    }

    /// Whether the process has ended. Also carries out what was asked for through a [`Handle`], which cannot reach our
    /// pipes.
    fn look(&mut self, cx: &mut Context<'_>) -> bool {
        let seen = self.watch.look(cx);
        if seen.ending {
            self.output = None;
        }
        self.left |= seen.exited && !seen.ending;
        seen.exited
    }

    /// Its end of a pipe is closed.
    fn note_left(&mut self) {
        self.left |= !self.handle.is_ending();
    }

    fn begin_end(&mut self) {
        if !std::mem::replace(&mut self.leaving, true) {
            self.output = None;
            keeper::end(&self.handle, self.input.take());
        }
    }
}

impl Transport for Child {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        // Asked before reading: what the process wrote before it ended is then certain to be seen by this read.
        let exited = self.look(cx);
        let Some(input) = &mut self.input else { return Poll::Ready(Ok(0)) };
        if exited {
            // The end may have come here sooner than the news of what was written before it.
            input.look_again();
        }
        match input.poll_read(cx, buf) {
            Poll::Pending if exited => {
                // Somebody else still holds the pipe open, but that is not our peer.
                self.input = None;
                Poll::Ready(Ok(0))
            }
            Poll::Ready(Ok(0)) if !buf.is_empty() => {
                self.note_left();
                Poll::Ready(Ok(0))
            }
            other => other,
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.look(cx) {
            return Poll::Ready(Err(broken_pipe()));
        }
        let written = match &mut self.output {
            Some(output) => output.poll_write(cx, buf),
            None => Poll::Ready(Err(broken_pipe())),
        };
        if let Poll::Ready(Err(_)) = written {
            self.note_left();
        }
        written
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.output {
            Some(output) => output.poll_flush(cx),
            None => Poll::Ready(Ok(())),
        }
    }

    /// Both kinds, also when the process has ended while somebody else holds its pipes.
    fn poll_hangup(&mut self, cx: &mut Context<'_>) -> Poll<Hangup> {
        let exited = self.look(cx);
        if !self.input_reported {
            let gone = self.input.as_mut().is_some_and(|input| input.poll_hangup(cx).is_ready());
            if gone || exited {
                self.input_reported = true;
                self.note_left();
                return Poll::Ready(Hangup::Input);
            }
        }
        if !self.output_reported {
            let gone = match &mut self.output {
                Some(output) => output.poll_hangup(cx).is_ready(),
                None => true,
            };
            if gone || exited {
                self.output_reported = true;
                self.note_left();
                return Poll::Ready(Hangup::Output);
            }
        }
        Poll::Pending
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.output_reported = true;
        let closed = match &mut self.output {
            Some(output) => output.poll_close(cx),
            None => return Poll::Ready(Ok(())),
        };
        if closed.is_ready() {
            self.output = None;
        }
        closed
    }

    /// Begins the ending, and waits for the process to be reaped and its group to be gone.
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.begin_end();
        self.watch.poll_ended(cx)
    }

    /// The program, how it ended and what it said last on standard error, unless it was asked to end.
    fn poll_exit_reason(&mut self, cx: &mut Context<'_>) -> Poll<Option<String>> {
        self.look(cx);
        if self.handle.is_ending() && !self.left {
            return Poll::Ready(None);
        }
        self.watch.poll_ended(cx).map(|()| self.left.then(|| self.handle.life.obituary()))
    }

    fn leave_runtime(&mut self) -> bool {
        self.input.iter_mut().for_each(Input::leave_runtime);
        self.output.iter_mut().for_each(Output::leave_runtime);
        true
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.begin_end();
    }
}

#[cfg(all(test, unix))]
mod tests;
