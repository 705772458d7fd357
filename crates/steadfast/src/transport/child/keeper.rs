//! The threads that look after a process: one waits for its end, one reads its standard error, and one more hurries it
//! along when it is asked to end.
//!
//! They are plain threads that wait in system calls, so they need no runtime and cost nothing while nothing happens. All
//! but the first also watch a pipe that the first one closes when the process and its group are gone, so that none is
//! left behind, whoever keeps the process's pipes open.

use std::io::{self, PipeReader};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{self, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::command::{Command, Stderr};
use super::life::{Handle, Phase, ProcessState};
use super::lines::Lines;
use super::{group, report};
use crate::transport::fd::input::Input;
use crate::transport::fd::output::Output;

/// How long to wait for a group to vanish after it was killed. Its members may only be waiting for somebody else to reap
/// them, which is nothing that we could do.
const VANISH: Duration = Duration::from_secs(1);

/// How long to wait for the last words on standard error to be taken down: whoever wants its lines may be slow.
const LISTENING: Duration = Duration::from_secs(1);

/// How much of the last words on standard error is read when somebody outside the group keeps that pipe open.
const LAST_WORDS: usize = 256 * 1024;

/// A process that was started.
pub(super) struct StartedProcess {
    pub(super) input: Input,
    pub(super) output: Output,
    pub(super) handle: Handle,
}

/// How to signal a process, and how its threads learn that it is over.
pub(super) struct ProcessControl {
    /// The process, and the group that has its number.
    process: Pid,
    /// Hangs up when the process and its group are gone.
    over: Arc<PipeReader>,
}

/// Starts the process and the threads that look after it. The threads come first: a process that nobody looks after must
/// not exist.
pub(super) fn start(command: &mut Command) -> io::Result<StartedProcess> {
    let Command { process, stderr, line_limit, patience } = command;
    let (stderr, line_limit, patience) = (stderr.clone(), *line_limit, *patience);
    let (over, last_hold) = io::pipe()?;
    let over = Arc::new(over);
    let (keep, kept) = mpsc::channel::<(process::Child, Arc<ProcessState>)>();
    // Hangs up when standard error has been read.
    let (all_read, heard_all) = mpsc::channel::<()>();
    thread("steadfast-child", move || {
        if let Ok((child, life)) = kept.recv() {
            look_after(child, &life);
            // Whoever reads its standard error comes to the end of it.
            drop(last_hold);
            let _ = heard_all.recv_timeout(LISTENING);
            ProcessState::advance(life.lock(), Phase::Ended);
        }
    })?;
    let (read, reading) = mpsc::channel::<(OwnedFd, Lines, Arc<ProcessState>)>();
    if matches!(stderr, Stderr::Log | Stderr::Lines(_)) {
        let over = Arc::clone(&over);
        thread("steadfast-stderr", move || {
            if let Ok((pipe, mut lines, life)) = reading.recv() {
                read_until_over(&pipe, &over, |bytes| {
                    life.hear(bytes);
                    lines.push(bytes);
                });
                lines.finish();
            }
            drop(all_read);
        })?;
    }

    process.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
    process.stderr(match &stderr {
        Stderr::Log | Stderr::Lines(_) => Stdio::piped(),
        Stderr::Inherit => Stdio::inherit(),
        Stderr::Null => Stdio::null(),
    });
    let mut child = process.spawn().map_err(|error| report::unstartable(process, &error))?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let reach = ProcessControl { process: Pid::from_child(&child), over };
    let handle = Handle { life: ProcessState::new(child.id(), report::name_of(process), patience, reach) };
    if let (Some(pipe), Some(lines)) = (child.stderr.take(), Lines::new(stderr, line_limit, child.id())) {
        let _ = read.send((pipe.into(), lines, Arc::clone(&handle.life)));
    }
    let _ = keep.send((child, Arc::clone(&handle.life)));

    let pipes = match (stdin, stdout) {
        (Some(stdin), Some(stdout)) => {
            Input::own_pipe(stdout.into()).and_then(|input| Ok((input, Output::own_pipe(stdin.into())?)))
        }
        _ => Err(io::Error::from(io::ErrorKind::BrokenPipe)),
    };
    match pipes {
        Ok((input, output)) => Ok(StartedProcess { input, output, handle }),
        Err(error) => {
            kill(&handle.life);
            Err(error)
        }
    }
}

/// Begins the ending of a process whose standard input is closed, or about to be. `unread` is its standard output, if
/// nobody will read it any more.
pub(super) fn end(handle: &Handle, unread: Option<Input>) {
    let mut state = handle.life.lock();
    let running = state.phase == Phase::Running;
    let first = !std::mem::replace(&mut state.ending, true);
    let over = Arc::clone(&state.reach.over);
    ProcessState::announce(state);
    if !running {
        return;
    }
    if let Some(pipe) = unread.and_then(Input::into_descriptor) {
        let over = Arc::clone(&over);
        // Without a thread the pipe is closed instead, which is less polite and just as final.
        let _ = thread("steadfast-drain", move || read_until_over(&pipe, &over, |_| {}));
    }
    if first {
        let life = Arc::clone(&handle.life);
        if thread("steadfast-ending", move || hurry(&life, &over)).is_err() {
            kill(&handle.life);
        }
    }
}

/// Kills the process and its group.
pub(super) fn kill(life: &ProcessState) {
    let mut state = life.lock();
    match state.phase {
        Phase::Running => {
            state.forced = true;
            signal(state.reach.process, Signal::KILL);
        }
        Phase::Exited => {
            let _ = rustix::process::kill_process_group(state.reach.process, Signal::KILL);
        }
        Phase::Ended => {}
    }
}

/// The first thread: waits for the process, reaps it, and sees its group off.
fn look_after(mut child: process::Child, life: &ProcessState) {
    let process = Pid::from_child(&child);
    // The process is left unreaped until the lock is held, so that its number stays its own for as long as somebody may
    // send it a signal.
    let early = wait_unreaped(process).is_err().then(|| child.wait());
    let mut state = life.lock();
    state.status = early.unwrap_or_else(|| child.wait()).ok();
    ProcessState::advance(state, Phase::Exited);

    if !group::is_gone(process) {
        let _ = rustix::process::kill_process_group(process, Signal::TERM);
        if !group::vanishes_within(process, life.patience.terminate) {
            let _ = rustix::process::kill_process_group(process, Signal::KILL);
            group::vanishes_within(process, VANISH);
        }
    }
}

/// Waits for the end of a process and leaves it for others to reap.
fn wait_unreaped(process: Pid) -> io::Result<()> {
    loop {
        match rustix::process::waitid(WaitId::Pid(process), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The thread of an ending: SIGTERM and SIGKILL when the process takes too long.
fn hurry(life: &ProcessState, over: &PipeReader) {
    for (time, what) in [(life.patience.leave, Signal::TERM), (life.patience.terminate, Signal::KILL)] {
        if is_over_within(over, time) {
            return;
        }
        let mut state = life.lock();
        if state.phase != Phase::Running {
            return;
        }
        state.forced = true;
        signal(state.reach.process, what);
    }
}

/// Signals a process that was not reaped yet, with its group. A leader that went to another group gets it alone.
fn signal(process: Pid, signal: Signal) {
    if rustix::process::kill_process_group(process, signal).is_err() {
        let _ = rustix::process::kill_process(process, signal);
    }
}

/// Reads a pipe to its end, or until the process and its group are over and what they wrote is read.
fn read_until_over(pipe: &OwnedFd, over: &PipeReader, mut take: impl FnMut(&[u8])) {
    let mut buf = vec![0; 8 * 1024];
    let mut left = usize::MAX;
    while left > 0 {
        let is_last = left != usize::MAX;
        let mut polled = [
            PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(over.as_fd(), PollFlags::IN),
        ];
        let at_once = Timespec::default();
        match rustix::event::poll(&mut polled, is_last.then_some(&at_once)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
        }
        let [readable, ended] = polled;
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
        if !is_last && !ended.revents().is_empty() {
            left = LAST_WORDS;
        }
    }
}

fn is_over_within(over: &PipeReader, time: Duration) -> bool {
    let deadline = Instant::now().checked_add(time);
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // A time too long for the system to count is as good as for ever.
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        let mut polled = [PollFd::from_borrowed_fd(over.as_fd(), PollFlags::IN)];
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
