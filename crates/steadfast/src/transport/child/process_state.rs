//! The state of a child process, shared by the threads that supervise it and all tasks that wait for its end.
//!
//! ```text
//!  Running --(the process has exited and is reaped)--> Exited --(its group is gone, or was killed)--> GroupGone
//! ```
//!
//! Only the threads of the supervisor change the phase of the process. Signals are sent under the lock under which the
//! process is reaped, so no signal can reach another process that got the same id later.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::command::ChildShutdownTimeouts;
use super::report::{ProcessExitCause, StderrTail};
use super::{report, supervisor};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ProcessExitState {
    Running,
    Exited,
    GroupGone,
}

pub(super) struct ChildProcessState {
    pub(super) id: u32,
    program: String,
    pub(super) end_timeouts: ChildShutdownTimeouts,
    state: Mutex<ProcessLifecycleState>,
    /// The last bytes that the process wrote to standard error.
    stderr_tail: Mutex<StderrTail>,
}

pub(super) struct ProcessLifecycleState {
    pub(super) phase: ProcessExitState,
    /// This program has requested the end of the child process.
    pub(super) ending: bool,
    /// The supervisor has sent a signal to the process.
    pub(super) signalled: bool,
    /// The process was killed through a [`ChildHandle`].
    killed: bool,
    /// The exit status of the process; stays `None` if other code in this program has reaped the process.
    pub(super) status: Option<ExitStatus>,
    /// The handle with which the supervisor kills the process.
    pub(super) control: supervisor::ChildKillHandle,
    wakers: BTreeMap<u64, Waker>,
    next_key: u64,
}

impl ChildProcessState {
    pub(super) fn new(
        id: u32,
        program: String,
        end_timeouts: ChildShutdownTimeouts,
        control: supervisor::ChildKillHandle,
    ) -> Arc<Self> {
        let state = ProcessLifecycleState {
            phase: ProcessExitState::Running,
            ending: false,
            signalled: false,
            killed: false,
            status: None,
            control,
            wakers: BTreeMap::new(),
            next_key: 0,
        };
        Arc::new(Self { id, program, end_timeouts, state: Mutex::new(state), stderr_tail: Mutex::default() })
    }

    /// Stores bytes of standard error for the exit report.
    pub(super) fn record_stderr(&self, bytes: &[u8]) {
        self.stderr_tail.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
    }

    /// A text for people that says how the process exited.
    pub(super) fn exit_report(&self) -> String {
        let state = self.lock();
        let cause = match (state.status, state.signalled) {
            _ if state.killed => ProcessExitCause::Killed,
            (_, true) => ProcessExitCause::ClosedPipes,
            (status, false) => ProcessExitCause::Exited(status),
        };
        drop(state);
        let stderr_tail = self.stderr_tail.lock().unwrap_or_else(PoisonError::into_inner);
        report::exit_report(&self.program, cause, &stderr_tail)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ProcessLifecycleState> {
        // Each change under the lock is a single assignment, so a poisoned state is consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Advances the state of the process to `phase` and wakes all tasks that wait for a change of it.
    pub(super) fn advance(mut state: MutexGuard<'_, ProcessLifecycleState>, phase: ProcessExitState) {
        state.phase = phase;
        Self::wake_watchers(state);
    }

    pub(super) fn wake_watchers(mut state: MutexGuard<'_, ProcessLifecycleState>) {
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        wakers.into_values().for_each(Waker::wake);
    }
}

/// Waits for the end of the process of a [`Child`](super::Child), or ends it, independently of the transport.
#[derive(Clone)]
pub struct ChildHandle {
    pub(super) process: Arc<ChildProcessState>,
}

impl ChildHandle {
    /// The process id.
    pub fn id(&self) -> u32 {
        self.process.id
    }

    /// Completes with the exit status as soon as the process has exited.
    pub fn exit(&self) -> ProcessExitFuture {
        ProcessExitFuture(self.watcher())
    }

    /// Completes when the process is reaped and its process group is gone. `group_exit` only waits for the process,
    /// and does not end it.
    pub fn group_exit(&self) -> ProcessGroupExitFuture {
        ProcessGroupExitFuture(self.watcher())
    }

    /// Begins to end the process: the transport closes the standard input of the process when the transport is polled
    /// next, and the timeouts for SIGTERM and SIGKILL start now.
    pub fn shutdown(&self) {
        supervisor::end(self, None);
    }

    /// Kills the process and its whole group at once.
    pub fn kill(&self) {
        let mut state = self.process.lock();
        state.killed |= state.phase == ProcessExitState::Running;
        drop(state);
        supervisor::kill(&self.process);
    }

    /// Whether this program has requested the end of the child process.
    pub(super) fn is_ending(&self) -> bool {
        self.process.lock().ending
    }

    pub(super) fn watcher(&self) -> ProcessStateWaiter {
        let mut state = self.process.lock();
        let key = state.next_key;
        state.next_key += 1;
        drop(state);
        ProcessStateWaiter { process: Arc::clone(&self.process), key }
    }
}

impl fmt::Debug for ChildHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ChildHandle").field("id", &self.process.id).finish_non_exhaustive()
    }
}

/// Waits for changes of the state of a child process, for one async task.
pub(super) struct ProcessStateWaiter {
    process: Arc<ChildProcessState>,
    /// The key in `ProcessLifecycleState::wakers` under which the waiter stores its waker.
    key: u64,
}

impl ProcessStateWaiter {
    /// Whether the process has exited, and whether its end was requested. Wakes the polling task when the process exits
    /// or its end is requested.
    pub(super) fn poll_view(&mut self, cx: &mut Context<'_>) -> ProcessStatus {
        let state = self.process.lock();
        let view = ProcessStatus { exited: state.phase >= ProcessExitState::Exited, ending: state.ending };
        if !view.exited {
            self.store_waker(state, cx);
        }
        view
    }

    /// Ready when the process is reaped and its group is gone.
    pub(super) fn poll_group_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll(cx, ProcessExitState::GroupGone).map(drop)
    }

    fn poll(&mut self, cx: &mut Context<'_>, phase: ProcessExitState) -> Poll<Option<ExitStatus>> {
        let state = self.process.lock();
        if state.phase >= phase {
            return Poll::Ready(state.status);
        }
        self.store_waker(state, cx);
        Poll::Pending
    }

    /// Stores the waker of the polling task. The previous waker is dropped outside of the lock, because it may be the
    /// last reference to a task that waits for the process.
    fn store_waker(&self, mut state: MutexGuard<'_, ProcessLifecycleState>, cx: &Context<'_>) {
        let displaced = match state.wakers.get(&self.key) {
            Some(waker) if waker.will_wake(cx.waker()) => None,
            _ => state.wakers.insert(self.key, cx.waker().clone()),
        };
        drop(state);
        drop(displaced);
    }
}

/// What the transport has to know about the state of its child process.
pub(super) struct ProcessStatus {
    pub(super) exited: bool,
    pub(super) ending: bool,
}

impl Drop for ProcessStateWaiter {
    fn drop(&mut self) {
        let mut state = self.process.lock();
        let waker = state.wakers.remove(&self.key);
        drop(state);
        drop(waker);
    }
}

impl fmt::Debug for ProcessStateWaiter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ProcessStateWaiter").field("id", &self.process.id).finish_non_exhaustive()
    }
}

/// Completes with the exit status of a process as soon as it has exited.
///
/// The exit status is `None` if other code in this program has reaped the process first.
#[derive(Debug)]
#[must_use = "futures do nothing unless they are polled"]
pub struct ProcessExitFuture(ProcessStateWaiter);

impl Future for ProcessExitFuture {
    type Output = Option<ExitStatus>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(cx, ProcessExitState::Exited)
    }
}

/// Completes with the exit status of a process when its whole process group is gone.
///
/// The exit status is `None` if other code in this program has reaped the process first.
#[derive(Debug)]
#[must_use = "this future only waits until the process group is gone: dropping it does not stop a shutdown"]
pub struct ProcessGroupExitFuture(ProcessStateWaiter);

impl Future for ProcessGroupExitFuture {
    type Output = Option<ExitStatus>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(cx, ProcessExitState::GroupGone)
    }
}
