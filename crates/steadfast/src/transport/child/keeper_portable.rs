//! The threads that look after a process on systems without process groups and signals.
//!
//! One asks again and again whether the process has ended, one reads its standard error, and one more kills it when its
//! time is up. Processes that it started are not reached.

use std::io::{self, Read};
use std::process::{self, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use super::command::{Command, Stderr};
use super::life::{Handle, ProcessState, Phase};
use super::lines::Lines;
use super::report;
use crate::transport::fd::input::Input;
use crate::transport::fd::output::Output;
use crate::transport::fd::pump;

const PAUSE: Duration = Duration::from_millis(20);

/// How long to wait for the last words on standard error to be taken down: whoever wants its lines may be slow, and somebody
/// else may keep the pipe open.
const LISTENING: Duration = Duration::from_secs(1);

/// A process that was started.
pub(super) struct StartedProcess {
    pub(super) input: Input,
    pub(super) output: Output,
    pub(super) handle: Handle,
}

/// How to kill a process.
pub(super) struct ProcessControl(process::Child);

/// Starts the process and the threads that look after it.
pub(super) fn start(command: &mut Command) -> io::Result<StartedProcess> {
    let Command { process, stderr, line_limit, patience } = command;
    let (stderr, line_limit, patience) = (stderr.clone(), *line_limit, *patience);
    process.stdin(Stdio::piped()).stdout(Stdio::piped());
    process.stderr(match &stderr {
        Stderr::Log | Stderr::Lines(_) => Stdio::piped(),
        Stderr::Inherit => Stdio::inherit(),
        Stderr::Null => Stdio::null(),
    });
    let mut child = process.spawn().map_err(|error| report::unstartable(process, &error))?;
    let id = child.id();
    let (stdin, stdout, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let handle = Handle { life: ProcessState::new(id, report::name_of(process), patience, ProcessControl(child)) };
    // Hangs up when standard error has been read.
    let (all_read, heard_all) = mpsc::channel::<()>();
    let started = || {
        if let (Some(pipe), Some(lines)) = (errors, Lines::new(stderr, line_limit, id)) {
            let life = Arc::clone(&handle.life);
            thread("steadfast-stderr", move || {
                read_lines(pipe, lines, &life);
                drop(all_read);
            })?;
        } else {
            drop(all_read);
        }
        let life = Arc::clone(&handle.life);
        thread("steadfast-child", move || {
            look_after(&life);
            let _ = heard_all.recv_timeout(LISTENING);
            ProcessState::advance(life.lock(), Phase::Ended);
        })?;
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe));
        };
        Ok((Input::thread(pump::reader(stdout)?), Output::thread(pump::writer(stdin)?)))
    };
    match started() {
        Ok((input, output)) => Ok(StartedProcess { input, output, handle }),
        Err(error) => {
            kill(&handle.life);
            Err(error)
        }
    }
}

/// Begins the ending of a process whose standard input is closed, or about to be.
pub(super) fn end(handle: &Handle, unread: Option<Input>) {
    drop(unread);
    let mut state = handle.life.lock();
    let running = state.phase == Phase::Running;
    let first = !std::mem::replace(&mut state.ending, true);
    ProcessState::announce(state);
    if running && first {
        let life = Arc::clone(&handle.life);
        if thread("steadfast-ending", move || hurry(&life)).is_err() {
            kill(&handle.life);
        }
    }
}

/// Kills the process.
pub(super) fn kill(life: &ProcessState) {
    let mut state = life.lock();
    if state.phase == Phase::Running {
        state.forced = true;
        let _ = state.reach.0.kill();
    }
}

fn look_after(life: &ProcessState) {
    loop {
        let mut state = life.lock();
        match state.reach.0.try_wait() {
            Ok(None) => {}
            Ok(status) => {
                state.status = status;
                return ProcessState::advance(state, Phase::Exited);
            }
            Err(_) => return ProcessState::advance(state, Phase::Exited),
        }
        drop(state);
        std::thread::sleep(PAUSE);
    }
}

fn hurry(life: &ProcessState) {
    let time = life.patience.leave.saturating_add(life.patience.terminate);
    let deadline = Instant::now().checked_add(time);
    while deadline.is_none_or(|deadline| Instant::now() < deadline) {
        if life.lock().phase != Phase::Running {
            return;
        }
        std::thread::sleep(PAUSE);
    }
    kill(life);
}

fn read_lines(mut pipe: impl Read, mut lines: Lines, life: &ProcessState) {
    let mut buf = vec![0; 8 * 1024];
    loop {
        match pipe.read(&mut buf) {
            Ok(0) => break,
            Ok(count) => {
                let bytes = buf.get(..count).unwrap_or_default();
                life.hear(bytes);
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
