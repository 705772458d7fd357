//! Detects whether a handler that waits for input from its client waits for nothing else.
//!
//! A handler that waits for input is suspended: it is dropped, and runs again from its start when the client retries
//! the request with the input. A handler must not be dropped while it also does something else: it may read a file in
//! one branch and request input in another, and would request more input after reading the file. What else a handler
//! waits for is not visible, but everything that can wake the handler has to hold its waker. So once a handler has
//! requested input, each poll of the handler gets a waker of its own, whose clones are counted after the poll:
//!
//! - if only input requests hold a clone of that waker, nothing can ever wake the handler: the handler is suspended at
//!   once;
//! - otherwise the handler is given time, and is suspended when nothing has woken it for [`IDLE_BEFORE_SUSPEND`]: a timer around
//!   an input request, or a set of futures that stores the waker for its own purposes, would hold the waker forever.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use super::input_rounds::HandlerInputs;
use crate::runtime::{Runtime, Timer};

/// A handler that has requested input is dropped, until the client retries the request with the input, if nothing wakes
/// the handler for this long.
const IDLE_BEFORE_SUSPEND: Duration = Duration::from_millis(250);

/// The result of polling a handler.
pub(crate) enum HandlerPoll<T> {
    Ready(T),
    Pending,
    /// The handler waits only for input from the client, so it can be dropped until the client retries the request.
    Suspend,
}

/// Detects that a handler waits only for input from its client, so that it can be dropped until the client retries the
/// request. The probe waker and the timer are set while the handler has input requests and something else holds the
/// handler's waker.
#[derive(Default)]
pub(crate) struct HandlerSuspendDetector {
    probe: Option<Arc<SuspendProbeWaker>>,
    timer: Option<Box<dyn Timer>>,
}

impl HandlerSuspendDetector {
    /// Polls a handler that may request input. `poll` polls the future of the handler.
    pub(crate) fn poll<T, E>(
        &mut self,
        input_rounds: &HandlerInputs,
        runtime: &dyn Runtime,
        cx: &mut Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Result<Poll<T>, E>,
    ) -> Result<HandlerPoll<T>, E> {
        input_rounds.enter(cx.waker());
        if let Some(probe) = &self.probe {
            probe.set_inner(cx.waker());
            if !probe.is_woken() {
                // The task was woken, but not by the handler's waker.
                let idle = input_rounds.leave() && self.timer.as_mut().is_some_and(|timer| timer.poll(cx).is_ready());
                return Ok(if idle { HandlerPoll::Suspend } else { HandlerPoll::Pending });
            }
        } else {
            if let Poll::Ready(value) = poll(cx)? {
                return Ok(HandlerPoll::Ready(value));
            }
            if !input_rounds.leave() {
                return Ok(HandlerPoll::Pending);
            }
            input_rounds.enter(cx.waker());
        }
        self.poll_with_probe(input_rounds, runtime, cx, poll)
    }

    fn poll_with_probe<T, E>(
        &mut self,
        input_rounds: &HandlerInputs,
        runtime: &dyn Runtime,
        cx: &mut Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Result<Poll<T>, E>,
    ) -> Result<HandlerPoll<T>, E> {
        let probe = SuspendProbeWaker::new(cx.waker());
        let waker = Waker::from(Arc::clone(&probe));
        if let Poll::Ready(value) = poll(&mut Context::from_waker(&waker))? {
            return Ok(HandlerPoll::Ready(value));
        }
        if !input_rounds.leave() {
            // Whatever the handler waits for now holds the probe, which works like any other waker.
            (self.probe, self.timer) = (None, None);
            return Ok(HandlerPoll::Pending);
        }
        // Two are held here, the others by input requests.
        if probe.holders() <= 2 + input_rounds.holders(&waker) && !probe.is_woken() {
            return Ok(HandlerPoll::Suspend);
        }
        let mut timer = runtime.timer();
        timer.reset(Some(runtime.now() + IDLE_BEFORE_SUSPEND));
        let idle = timer.poll(cx).is_ready();
        (self.probe, self.timer) = (Some(probe), Some(timer));
        Ok(if idle { HandlerPoll::Suspend } else { HandlerPoll::Pending })
    }
}

/// A waker that records whether it was woken, and whose clones can be counted.
struct SuspendProbeWaker {
    woken: AtomicBool,
    inner: Mutex<Waker>,
}

impl SuspendProbeWaker {
    fn new(inner: &Waker) -> Arc<Self> {
        Arc::new(Self { woken: AtomicBool::new(false), inner: Mutex::new(inner.clone()) })
    }

    /// Replaces the waker that this waker forwards to.
    fn set_inner(&self, waker: &Waker) {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).clone_from(waker);
    }

    /// Returns the number of clones of this waker. The fence makes wakes visible that former holders of a clone did
    /// before they dropped it.
    fn holders(self: &Arc<Self>) -> usize {
        let holders = Arc::strong_count(self);
        fence(Ordering::Acquire);
        holders
    }

    fn is_woken(&self) -> bool {
        self.woken.load(Ordering::SeqCst)
    }
}

impl Wake for SuspendProbeWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner).clone();
        inner.wake();
    }
}
