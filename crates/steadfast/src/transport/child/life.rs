//! What is known of a process, shared by the threads that look after it and everybody who waits for its end.
//!
//! ```text
//!  Running --(the process ended and was reaped)--> Exited --(its group is gone, or was killed)--> Ended
//! ```
//!
//! The keeper's threads are the only ones that move it along. Signals are sent under the same lock that the reaping is
//! done under, so none can reach a process that merely got the old one's number.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::command::EndTimeouts;
use super::report::{Cause, Tail};
use super::{keeper, report};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Running,
    Exited,
    Ended,
}

pub(super) struct ProcessState {
    pub(super) id: u32,
    program: String,
    pub(super) patience: EndTimeouts,
    state: Mutex<State>,
    /// What it has said on standard error, the last of it.
    said: Mutex<Tail>,
}

pub(super) struct State {
    pub(super) phase: Phase,
    /// Somebody asked for the end.
    pub(super) ending: bool,
    /// It was sent a signal by us.
    pub(super) forced: bool,
    /// Whoever has its handle killed it.
    killed: bool,
    /// How it ended. Stays empty when somebody else in this process reaped it.
    pub(super) status: Option<ExitStatus>,
    /// What the keeper needs to reach the process.
    pub(super) reach: keeper::ProcessControl,
    waiting: BTreeMap<u64, Waker>,
    next_key: u64,
}

impl ProcessState {
    pub(super) fn new(id: u32, program: String, patience: EndTimeouts, reach: keeper::ProcessControl) -> Arc<Self> {
        let state = State {
            phase: Phase::Running,
            ending: false,
            forced: false,
            killed: false,
            status: None,
            reach,
            waiting: BTreeMap::new(),
            next_key: 0,
        };
        Arc::new(Self { id, program, patience, state: Mutex::new(state), said: Mutex::default() })
    }

    /// Takes note of what the process says on standard error.
    pub(super) fn hear(&self, bytes: &[u8]) {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
    }

    /// How it ended, for people.
    pub(super) fn obituary(&self) -> String {
        let state = self.lock();
        let cause = match (state.status, state.forced) {
            _ if state.killed => Cause::Killed,
            (_, true) => Cause::ClosedPipes,
            (status, false) => Cause::Itself(status),
        };
        drop(state);
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        report::obituary(&self.program, cause, &said)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // Each change under the lock is a single assignment, so a poisoned state is a whole state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves on to `phase` and wakes everybody who waits.
    pub(super) fn advance(mut state: MutexGuard<'_, State>, phase: Phase) {
        state.phase = phase;
        Self::announce(state);
    }

    /// Wakes everybody, to look again.
    pub(super) fn announce(mut state: MutexGuard<'_, State>) {
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_values().for_each(Waker::wake);
    }
}

/// A way to learn of the end of a [`Child`](super::Child), or to bring it about, from anywhere.
#[derive(Clone)]
pub struct Handle {
    pub(super) life: Arc<ProcessState>,
}

impl Handle {
    /// The process id.
    pub fn id(&self) -> u32 {
        self.life.id
    }

    /// Completes with the exit status as soon as the process has ended.
    pub fn exit(&self) -> Exit {
        Exit(self.watch())
    }

    /// Completes when nothing is left: the process is reaped, and the group that it started is gone. Does not start
    /// the ending.
    pub fn ended(&self) -> Ended {
        Ended(self.watch())
    }

    /// Starts the ending: the transport closes the process's standard input when it is polled next, and the clock
    /// towards SIGTERM and SIGKILL runs from now.
    pub fn shutdown(&self) {
        keeper::end(self, None);
    }

    /// Kills the process and its whole group at once.
    pub fn kill(&self) {
        let mut state = self.life.lock();
        state.killed |= state.phase == Phase::Running;
        drop(state);
        keeper::kill(&self.life);
    }

    /// Whether somebody has asked for the end.
    pub(super) fn is_ending(&self) -> bool {
        self.life.lock().ending
    }

    pub(super) fn watch(&self) -> Watch {
        let mut state = self.life.lock();
        let key = state.next_key;
        state.next_key += 1;
        drop(state);
        Watch { life: Arc::clone(&self.life), key }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Handle").field("id", &self.life.id).finish_non_exhaustive()
    }
}

/// The place of one waiter.
pub(super) struct Watch {
    life: Arc<ProcessState>,
    key: u64,
}

impl Watch {
    /// Whether the process has ended, and whether its end was asked for. Wakes when either changes.
    pub(super) fn look(&mut self, cx: &mut Context<'_>) -> ProcessView {
        let state = self.life.lock();
        let seen = ProcessView { exited: state.phase >= Phase::Exited, ending: state.ending };
        if !seen.exited {
            self.park(state, cx);
        }
        seen
    }

    /// Ready when nothing is left of the process and its group.
    pub(super) fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll(cx, Phase::Ended).map(drop)
    }

    fn poll(&mut self, cx: &mut Context<'_>, phase: Phase) -> Poll<Option<ExitStatus>> {
        let state = self.life.lock();
        if state.phase >= phase {
            return Poll::Ready(state.status);
        }
        self.park(state, cx);
        Poll::Pending
    }

    /// A waker may be the last hold on a task that waits here, so none is dropped under the lock.
    fn park(&self, mut state: MutexGuard<'_, State>, cx: &Context<'_>) {
        let displaced = match state.waiting.get(&self.key) {
            Some(waker) if waker.will_wake(cx.waker()) => None,
            _ => state.waiting.insert(self.key, cx.waker().clone()),
        };
        drop(state);
        drop(displaced);
    }
}

/// What a transport has to know of its process.
pub(super) struct ProcessView {
    pub(super) exited: bool,
    pub(super) ending: bool,
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut state = self.life.lock();
        let waker = state.waiting.remove(&self.key);
        drop(state);
        drop(waker);
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Watch").field("id", &self.life.id).finish_non_exhaustive()
    }
}

/// Completes with the exit status of a process as soon as it has ended.
///
/// `None` means that something else in this program reaped the process first, and that its status is lost.
#[derive(Debug)]
#[must_use = "futures do nothing unless they are polled"]
pub struct Exit(Watch);

impl Future for Exit {
    type Output = Option<ExitStatus>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(cx, Phase::Exited)
    }
}

/// Completes with the exit status of a process when nothing of it and its group is left.
///
/// `None` means that something else in this program reaped the process first, and that its status is lost.
#[derive(Debug)]
#[must_use = "the process is ended anyway, but nobody knows when"]
pub struct Ended(Watch);

impl Future for Ended {
    type Output = Option<ExitStatus>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(cx, Phase::Ended)
    }
}
