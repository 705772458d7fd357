//! The threads that supervise a child process on systems without process groups and signals.
//!
//! One thread polls whether the child process has exited, one reads its standard error, and a third kills it after the
//! timeouts. Processes that the child process has started itself are not ended.

use std::io::{self, Read};
use std::process::{self, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use super::command::{Command, StderrTarget};
use super::lines::StderrLineSplitter;
use super::process_state::{ChildHandle, ChildProcessState, ProcessExitState};
use super::report;
use crate::transport::fd::input::TransportReadHalf;
use crate::transport::fd::output::TransportWriteHalf;
use crate::transport::fd::pump;

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How long to wait, after the process has exited, until its standard error is read to the end: the callback for its
/// lines may be slow, and another process may keep the pipe open.
const STDERR_TIMEOUT: Duration = Duration::from_secs(1);

/// A child process that was started: the byte streams of its standard output and standard input, and its handle.
pub(super) struct StartedProcess {
    pub(super) input: TransportReadHalf,
    pub(super) output: TransportWriteHalf,
    pub(super) handle: ChildHandle,
}

/// The handle with which the supervisor kills a child process.
pub(super) struct ChildKillHandle(process::Child);

/// Starts the process and the threads that supervise it.
pub(super) fn start(command: &mut Command) -> io::Result<StartedProcess> {
    let Command { process, stderr, line_limit, end_timeouts } = command;
    let (stderr, line_limit, end_timeouts) = (stderr.clone(), *line_limit, *end_timeouts);
    process.stdin(Stdio::piped()).stdout(Stdio::piped());
    process.stderr(match &stderr {
        StderrTarget::Log | StderrTarget::Lines(_) => Stdio::piped(),
        StderrTarget::Inherit => Stdio::inherit(),
        StderrTarget::Null => Stdio::null(),
    });
    let mut child = process.spawn().map_err(|error| report::spawn_error(process, &error))?;
    let id = child.id();
    let (stdin, stdout, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let state = ChildProcessState::new(id, report::name_of(process), end_timeouts, ChildKillHandle(child));
    let handle = ChildHandle { process: state };
    // Disconnected when standard error is read to its end.
    let (stderr_open, stderr_done) = mpsc::channel::<()>();
    let started = || {
        if let (Some(pipe), Some(lines)) = (errors, StderrLineSplitter::new(stderr, line_limit, id)) {
            let process = Arc::clone(&handle.process);
            thread("steadfast-stderr", move || {
                read_lines(pipe, lines, &process);
                drop(stderr_open);
            })?;
        } else {
            drop(stderr_open);
        }
        let process = Arc::clone(&handle.process);
        thread("steadfast-child", move || {
            wait_for_exit(&process);
            let _ = stderr_done.recv_timeout(STDERR_TIMEOUT);
            ChildProcessState::advance(process.lock(), ProcessExitState::GroupGone);
        })?;
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe));
        };
        Ok((TransportReadHalf::thread(pump::reader(stdout)?), TransportWriteHalf::thread(pump::writer(stdin)?)))
    };
    match started() {
        Ok((input, output)) => Ok(StartedProcess { input, output, handle }),
        Err(error) => {
            kill(&handle.process);
            Err(error)
        }
    }
}

/// Begins to end a process whose standard input is closed, or will be at the next poll of the transport.
pub(super) fn end(handle: &ChildHandle, unread: Option<TransportReadHalf>) {
    drop(unread);
    let mut state = handle.process.lock();
    let running = state.phase == ProcessExitState::Running;
    let first = !std::mem::replace(&mut state.ending, true);
    ChildProcessState::wake_watchers(state);
    if running && first {
        let process = Arc::clone(&handle.process);
        if thread("steadfast-ending", move || enforce_end_timeouts(&process)).is_err() {
            kill(&handle.process);
        }
    }
}

/// Kills the process.
pub(super) fn kill(process: &ChildProcessState) {
    let mut state = process.lock();
    if state.phase == ProcessExitState::Running {
        state.signalled = true;
        let _ = state.control.0.kill();
    }
}

fn wait_for_exit(process: &ChildProcessState) {
    loop {
        let mut state = process.lock();
        match state.control.0.try_wait() {
            Ok(None) => {}
            Ok(status) => {
                state.status = status;
                return ChildProcessState::advance(state, ProcessExitState::Exited);
            }
            Err(_) => return ChildProcessState::advance(state, ProcessExitState::Exited),
        }
        drop(state);
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Kills the process if it does not exit within both timeouts.
fn enforce_end_timeouts(process: &ChildProcessState) {
    let timeouts = process.end_timeouts;
    let deadline = Instant::now().checked_add(timeouts.leave.saturating_add(timeouts.terminate));
    while deadline.is_none_or(|deadline| Instant::now() < deadline) {
        if process.lock().phase != ProcessExitState::Running {
            return;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    kill(process);
}

fn read_lines(mut pipe: impl Read, mut lines: StderrLineSplitter, process: &ChildProcessState) {
    let mut buf = vec![0; 8 * 1024];
    loop {
        match pipe.read(&mut buf) {
            Ok(0) => break,
            Ok(count) => {
                let bytes = buf.get(..count).unwrap_or_default();
                process.record_stderr(bytes);
                lines.push(bytes);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    lines.finish();
}

fn thread(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body).map(drop)
}
