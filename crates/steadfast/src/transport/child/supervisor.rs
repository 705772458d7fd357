//! The threads that supervise a child process: one waits for its exit, one reads its standard error, and two more are started
//! when it has to end: one sends signals after the timeouts, one discards the rest of its output.
//!
//! The threads wait in system calls, so they need no async runtime, and no processor time while nothing happens. The
//! thread that waits for the exit closes a pipe when the process and its group are gone, and the other threads poll
//! that pipe, so no thread outlives the process, even if another process keeps the process's pipes open.

use std::io::{self, PipeReader};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{self, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::command::{Command, StderrTarget};
use super::lines::StderrLineSplitter;
use super::process_state::{ChildHandle, ChildProcessState, ProcessExitState};
use super::{group, report};
use crate::transport::fd::input::TransportReadHalf;
use crate::transport::fd::output::TransportWriteHalf;

/// How long to wait for the end of a process group that was killed. Members of the killed group may be zombies that
/// another process has to reap.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// How long to wait, after the process group is gone, until its standard error is read to the end: the callback for its
/// lines may be slow.
const STDERR_TIMEOUT: Duration = Duration::from_secs(1);

/// The maximum number of bytes that are read from a pipe after the process group is gone, if a process outside the
/// group keeps the pipe open.
const MAX_LAST_BYTES: usize = 256 * 1024;

/// A child process that was started: the byte streams of its standard output and standard input, and its handle.
pub(super) struct StartedProcess {
    pub(super) input: TransportReadHalf,
    pub(super) output: TransportWriteHalf,
    pub(super) handle: ChildHandle,
}

/// Sends signals to a child process, and tells the threads that supervise it when its group is gone.
pub(super) struct ChildKillHandle {
    /// The id of the child process and of its process group.
    process: Pid,
    /// The reading end of a pipe, which hangs up when the process and its group are gone.
    group_gone: Arc<PipeReader>,
}

/// Starts the process and the threads that supervise it. The supervising threads are started before the process: there
/// must never be a process without them.
pub(super) fn start(command: &mut Command) -> io::Result<StartedProcess> {
    let Command { process, stderr, line_limit, end_timeouts } = command;
    let (stderr, line_limit, end_timeouts) = (stderr.clone(), *line_limit, *end_timeouts);
    let (group_gone, writer) = io::pipe()?;
    let group_gone = Arc::new(group_gone);
    let (child_sender, child_receiver) = mpsc::channel::<(process::Child, Arc<ChildProcessState>)>();
    // Disconnected when standard error is read to its end.
    let (stderr_open, stderr_done) = mpsc::channel::<()>();
    thread("steadfast-child", move || {
        if let Ok((child, process)) = child_receiver.recv() {
            wait_and_reap(child, &process);
            // Makes the thread that reads standard error finish.
            drop(writer);
            let _ = stderr_done.recv_timeout(STDERR_TIMEOUT);
            ChildProcessState::advance(process.lock(), ProcessExitState::GroupGone);
        }
    })?;
    let (stderr_sender, stderr_receiver) = mpsc::channel::<(OwnedFd, StderrLineSplitter, Arc<ChildProcessState>)>();
    if matches!(stderr, StderrTarget::Log | StderrTarget::Lines(_)) {
        let group_gone = Arc::clone(&group_gone);
        thread("steadfast-stderr", move || {
            if let Ok((pipe, mut lines, process)) = stderr_receiver.recv() {
                read_until_group_gone(&pipe, &group_gone, |bytes| {
                    process.record_stderr(bytes);
                    lines.push(bytes);
                });
                lines.finish();
            }
            drop(stderr_open);
        })?;
    }

    process.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
    process.stderr(match &stderr {
        StderrTarget::Log | StderrTarget::Lines(_) => Stdio::piped(),
        StderrTarget::Inherit => Stdio::inherit(),
        StderrTarget::Null => Stdio::null(),
    });
    let mut child = process.spawn().map_err(|error| report::spawn_error(process, &error))?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let control = ChildKillHandle { process: Pid::from_child(&child), group_gone };
    let handle =
        ChildHandle { process: ChildProcessState::new(child.id(), report::name_of(process), end_timeouts, control) };
    if let (Some(pipe), Some(lines)) = (child.stderr.take(), StderrLineSplitter::new(stderr, line_limit, child.id())) {
        let _ = stderr_sender.send((pipe.into(), lines, Arc::clone(&handle.process)));
    }
    let _ = child_sender.send((child, Arc::clone(&handle.process)));

    let pipes = match (stdin, stdout) {
        (Some(stdin), Some(stdout)) => TransportReadHalf::own_pipe(stdout.into())
            .and_then(|input| Ok((input, TransportWriteHalf::own_pipe(stdin.into())?))),
        _ => Err(io::Error::from(io::ErrorKind::BrokenPipe)),
    };
    match pipes {
        Ok((input, output)) => Ok(StartedProcess { input, output, handle }),
        Err(error) => {
            kill(&handle.process);
            Err(error)
        }
    }
}

/// Begins to end a process whose standard input is closed, or will be at the next poll of the transport. `unread` is
/// the standard output of the process, if the transport does not read it any more.
pub(super) fn end(handle: &ChildHandle, unread: Option<TransportReadHalf>) {
    let mut state = handle.process.lock();
    let running = state.phase == ProcessExitState::Running;
    let first = !std::mem::replace(&mut state.ending, true);
    let group_gone = Arc::clone(&state.control.group_gone);
    ChildProcessState::wake_watchers(state);
    if !running {
        return;
    }
    if let Some(pipe) = unread.and_then(TransportReadHalf::into_descriptor) {
        let group_gone = Arc::clone(&group_gone);
        // If the thread cannot be started, the pipe is closed instead, and the process gets SIGPIPE when it writes.
        let _ = thread("steadfast-drain", move || read_until_group_gone(&pipe, &group_gone, |_| {}));
    }
    if first {
        let process = Arc::clone(&handle.process);
        if thread("steadfast-ending", move || enforce_end_timeouts(&process, &group_gone)).is_err() {
            kill(&handle.process);
        }
    }
}

/// Kills the child process and its process group.
pub(super) fn kill(process: &ChildProcessState) {
    let mut state = process.lock();
    match state.phase {
        ProcessExitState::Running => {
            state.signalled = true;
            signal(state.control.process, Signal::KILL);
        }
        ProcessExitState::Exited => {
            let _ = rustix::process::kill_process_group(state.control.process, Signal::KILL);
        }
        ProcessExitState::GroupGone => {}
    }
}

/// Waits for the child process, reaps it, and ends the rest of its group; runs on the first thread of the supervisor.
fn wait_and_reap(mut child: process::Child, process: &ChildProcessState) {
    let pid = Pid::from_child(&child);
    // The process is not reaped before the lock is held, so that its id is not reused while another thread may send it a
    // signal.
    let early = wait_unreaped(pid).is_err().then(|| child.wait());
    let mut state = process.lock();
    state.status = early.unwrap_or_else(|| child.wait()).ok();
    ChildProcessState::advance(state, ProcessExitState::Exited);

    if !group::is_gone(pid) {
        let _ = rustix::process::kill_process_group(pid, Signal::TERM);
        if !group::wait_until_gone(pid, process.end_timeouts.terminate) {
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
            group::wait_until_gone(pid, KILL_TIMEOUT);
        }
    }
}

/// Waits for the exit of a process without reaping it.
fn wait_unreaped(process: Pid) -> io::Result<()> {
    loop {
        match rustix::process::waitid(WaitId::Pid(process), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Sends SIGTERM and SIGKILL when a process does not exit within the timeouts.
fn enforce_end_timeouts(process: &ChildProcessState, group_gone: &PipeReader) {
    let timeouts = process.end_timeouts;
    for (timeout, next_signal) in [(timeouts.leave, Signal::TERM), (timeouts.terminate, Signal::KILL)] {
        if wait_for_group_gone(group_gone, timeout) {
            return;
        }
        let mut state = process.lock();
        if state.phase != ProcessExitState::Running {
            return;
        }
        state.signalled = true;
        signal(state.control.process, next_signal);
    }
}

/// Signals a process that is not reaped yet, and its group. If the process has moved to another group, it alone is signalled.
fn signal(process: Pid, signal: Signal) {
    if rustix::process::kill_process_group(process, signal).is_err() {
        let _ = rustix::process::kill_process(process, signal);
    }
}

/// Reads a pipe to its end, or until the process and its group are gone and everything they wrote is read.
fn read_until_group_gone(pipe: &OwnedFd, group_gone: &PipeReader, mut take: impl FnMut(&[u8])) {
    let mut buf = vec![0; 8 * 1024];
    let mut left = usize::MAX;
    while left > 0 {
        let is_last = left != usize::MAX;
        let mut polled = [
            PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(group_gone.as_fd(), PollFlags::IN),
        ];
        let at_once = Timespec::default();
        match rustix::event::poll(&mut polled, is_last.then_some(&at_once)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
        }
        let [readable, gone] = polled;
        if readable.revents().is_empty() {
            if is_last {
                return;
            }
        } else {
            match rustix::io::read(pipe, &mut buf) {
                Ok(0) => return,
                Ok(count) => {
                    take(buf.get(..count).unwrap_or_default());
                    if is_last {
                        left = left.saturating_sub(count);
                    }
                }
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(_) => return,
            }
        }
        if !is_last && !gone.revents().is_empty() {
            left = MAX_LAST_BYTES;
        }
    }
}

/// Waits until the process group is gone, for at most `timeout`. Returns whether the process group is gone.
fn wait_for_group_gone(group_gone: &PipeReader, timeout: Duration) -> bool {
    let deadline = Instant::now().checked_add(timeout);
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // A time that is too long for the system is treated as no timeout.
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        let mut polled = [PollFd::from_borrowed_fd(group_gone.as_fd(), PollFlags::IN)];
        match rustix::event::poll(&mut polled, timeout.as_ref()) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return true,
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
        if left.is_some_and(|left| left.is_zero()) {
            return false;
        }
    }
}

fn thread(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body).map(drop)
}
