//! A transport to a server process that the client starts and always ends.
//!
//! The process gets a process group of its own, pipes for its standard input and output, and a thread that reads its
//! standard error. [`Child::shutdown`] and dropping the [`Child`] end the process in the same way: its standard input
//! is closed; after a timeout SIGTERM is sent to the whole group; after another timeout SIGKILL. If the process exits
//! while other processes of its group still run, these get SIGTERM at once, and SIGKILL after a timeout. The server
//! process is always reaped.
//!
//! Plain threads supervise the process: one waits for its exit and one reads its standard error, so the process is
//! ended even without a runtime and while a runtime shuts down. The last lines of standard error are stored, to explain
//! in errors why the process exited. If a descendant of the process has moved to another group and keeps the pipes
//! open, this module does not wait for the descendant: the peer is the process that was started, and the byte stream
//! ends when that process has exited.
//!
//! On systems other than Unix there are no process groups and no SIGTERM: the process alone is killed after both timeouts.

use std::io;
use std::task::{Context, Poll};

use super::fd::input::TransportReadHalf;
use super::fd::output::TransportWriteHalf;
use super::{HangupDirection, Transport, broken_pipe};

mod command;
#[cfg(unix)]
mod group;
mod lines;
mod process_state;
mod report;
#[cfg_attr(not(unix), path = "supervisor_portable.rs")]
mod supervisor;

pub use command::Command;
pub use process_state::{ChildHandle, ProcessExitFuture, ProcessGroupExitFuture};

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
    /// The pipe from the standard output of the process; `None` once the process has exited and everything that it
    /// wrote was read, or this transport has begun to end the process.
    input: Option<TransportReadHalf>,
    /// The pipe to the standard input of the process; `None` once it is closed.
    output: Option<TransportWriteHalf>,
    handle: ChildHandle,
    watcher: process_state::ProcessStateWaiter,
    input_reported: bool,
    output_reported: bool,
    /// The transport has begun to end the server process.
    ending: bool,
    /// The process exited, or closed its end of a pipe, before this program requested its end.
    left_early: bool,
}

impl Child {
    /// Starts the process.
    ///
    /// # Errors
    ///
    /// Fails if the server program does not exist, or if the system cannot start the program or a thread that
    /// supervises it. After an error no process is left running.
    pub fn spawn(mut command: Command) -> io::Result<Self> {
        command.spawn()
    }

    fn start(command: &mut Command) -> io::Result<Self> {
        let supervisor::StartedProcess { input, output, handle } = supervisor::start(command)?;
        let watcher = handle.watcher();
        Ok(Self {
            input: Some(input),
            output: Some(output),
            handle,
            watcher,
            input_reported: false,
            output_reported: false,
            ending: false,
            left_early: false,
        })
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.handle.id()
    }

    /// A handle to the server process that outlives the transport, to wait for the end of the process or to end it.
    pub fn handle(&self) -> ChildHandle {
        self.handle.clone()
    }

    /// Completes with the exit status as soon as the process has exited.
    pub fn exit(&self) -> ProcessExitFuture {
        self.handle.exit()
    }

    /// Closes the standard input of the process, gives it time to exit, and ends it if it does not. Whatever the
    /// process still writes to standard output is read and discarded, so that it does not block in a write.
    ///
    /// The future completes when the process is reaped and its group is gone. Dropping the future does not stop the shutdown.
    pub fn shutdown(mut self) -> ProcessGroupExitFuture {
        self.begin_end();
        self.handle.group_exit()
    }

    /// Returns whether the server process has exited. Closes the standard input of the process if its end was
    /// requested through a [`ChildHandle`], which has no access to the pipes.
    fn poll_exited(&mut self, cx: &mut Context<'_>) -> bool {
        let process = self.watcher.poll_view(cx);
        if process.ending {
            self.output = None;
        }
        self.left_early |= process.exited && !process.ending;
        process.exited
    }

    /// Notes that the process has closed its end of a pipe.
    fn note_closed_pipe(&mut self) {
        self.left_early |= !self.handle.is_ending();
    }

    fn begin_end(&mut self) {
        if !std::mem::replace(&mut self.ending, true) {
            self.output = None;
            supervisor::end(&self.handle, self.input.take());
        }
    }
}

impl Transport for Child {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        // Checked before the read: then this read is certain to return what the process wrote before it exited.
        let exited = self.poll_exited(cx);
        let Some(input) = &mut self.input else { return Poll::Ready(Ok(0)) };
        if exited {
            // The exit may have been noticed before the readiness event of the last bytes.
            input.skip_readiness();
        }
        match input.poll_read(cx, buf) {
            Poll::Pending if exited => {
                // Another process still holds the pipe open, but it is not the peer.
                self.input = None;
                Poll::Ready(Ok(0))
            }
            Poll::Ready(Ok(0)) if !buf.is_empty() => {
                self.note_closed_pipe();
                Poll::Ready(Ok(0))
            }
            other => other,
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.poll_exited(cx) {
            return Poll::Ready(Err(broken_pipe()));
        }
        let written = match &mut self.output {
            Some(output) => output.poll_write(cx, buf),
            None => Poll::Ready(Err(broken_pipe())),
        };
        if let Poll::Ready(Err(_)) = written {
            self.note_closed_pipe();
        }
        written
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.output {
            Some(output) => output.poll_flush(cx),
            None => Poll::Ready(Ok(())),
        }
    }

    /// Reports a hangup of both directions, also when the process has exited while another process holds its pipes
    /// open.
    fn poll_hangup(&mut self, cx: &mut Context<'_>) -> Poll<HangupDirection> {
        let exited = self.poll_exited(cx);
        if !self.input_reported {
            let gone = self.input.as_mut().is_some_and(|input| input.poll_hangup(cx).is_ready());
            if gone || exited {
                self.input_reported = true;
                self.note_closed_pipe();
                return Poll::Ready(HangupDirection::Input);
            }
        }
        if !self.output_reported {
            let gone = match &mut self.output {
                Some(output) => output.poll_hangup(cx).is_ready(),
                None => true,
            };
            if gone || exited {
                self.output_reported = true;
                self.note_closed_pipe();
                return Poll::Ready(HangupDirection::Output);
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

    /// Begins to end the process, and waits until it is reaped and its group is gone.
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.begin_end();
        self.watcher.poll_group_gone(cx)
    }

    /// The exit report: the program, how it exited and its last lines of standard error; `None` if this program
    /// requested its end.
    fn poll_exit_reason(&mut self, cx: &mut Context<'_>) -> Poll<Option<String>> {
        self.poll_exited(cx);
        if self.handle.is_ending() && !self.left_early {
            return Poll::Ready(None);
        }
        self.watcher.poll_group_gone(cx).map(|()| self.left_early.then(|| self.handle.process.exit_report()))
    }

    fn leave_runtime(&mut self) -> bool {
        self.input.iter_mut().for_each(TransportReadHalf::leave_runtime);
        self.output.iter_mut().for_each(TransportWriteHalf::leave_runtime);
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
