//! Whether a handler that waits for answers waits for nothing else.
//!
//! A handler whose questions have no answers can only be suspended, but not while it does something else as well: it may read
//! a file in one branch and ask in another, and would have more to ask when it has read it. What else it waits for cannot be
//! seen, but whatever is to wake the handler has to hold its waker. So once something is asked, the handler is polled with
//! a waker of its own for each poll, and then:
//!
//! - if nobody but the questions has kept that waker, nothing can ever wake the handler: it is suspended at once;
//! - otherwise it is given time, and suspended when nothing has woken it for a while ([`QUIET`]): a timer around a question,
//!   or a set of futures that keeps the waker for its own purposes, would hold it for ever.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use super::input_rounds::InputRounds;
use crate::runtime::{Runtime, Timer};

/// How long a handler with questions may go without being woken by anything else that it waits for.
const QUIET: Duration = Duration::from_millis(250);

/// What a poll of a handler comes to.
pub(crate) enum HandlerPoll<T> {
    Ready(T),
    Pending,
    /// It waits for answers only.
    Suspend,
}

/// Set while there are questions.
#[derive(Default)]
pub(crate) struct SuspendDetector {
    probe: Option<Arc<CountingWaker>>,
    timer: Option<Box<dyn Timer>>,
}

impl SuspendDetector {
    /// Polls a handler that may ask, by `poll`.
    pub(crate) fn poll<T, E>(
        &mut self,
        input_rounds: &InputRounds,
        runtime: &dyn Runtime,
        cx: &mut Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Result<Poll<T>, E>,
    ) -> Result<HandlerPoll<T>, E> {
        input_rounds.enter(cx.waker());
        if let Some(probe) = &self.probe {
            probe.pass_on_to(cx.waker());
            if !probe.is_woken() {
                // It was not the handler that was woken.
                let over = input_rounds.leave() && self.timer.as_mut().is_some_and(|timer| timer.poll(cx).is_ready());
                return Ok(if over { HandlerPoll::Suspend } else { HandlerPoll::Pending });
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
        input_rounds: &InputRounds,
        runtime: &dyn Runtime,
        cx: &mut Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Result<Poll<T>, E>,
    ) -> Result<HandlerPoll<T>, E> {
        let probe = CountingWaker::new(cx.waker());
        let waker = Waker::from(Arc::clone(&probe));
        if let Poll::Ready(value) = poll(&mut Context::from_waker(&waker))? {
            return Ok(HandlerPoll::Ready(value));
        }
        if !input_rounds.leave() {
            // Whatever it waits for now holds the probe, which wakes as well as any waker.
            (self.probe, self.timer) = (None, None);
            return Ok(HandlerPoll::Pending);
        }
        // The two that are held here, and those of the questions.
        if probe.holders() <= 2 + input_rounds.holders(&waker) && !probe.is_woken() {
            return Ok(HandlerPoll::Suspend);
        }
        let mut timer = runtime.timer();
        timer.reset(Some(runtime.now() + QUIET));
        let over = timer.poll(cx).is_ready();
        (self.probe, self.timer) = (Some(probe), Some(timer));
        Ok(if over { HandlerPoll::Suspend } else { HandlerPoll::Pending })
    }
}

/// A waker that knows whether it was used, and whose holders can be counted.
struct CountingWaker {
    woken: AtomicBool,
    inner: Mutex<Waker>,
}

impl CountingWaker {
    fn new(inner: &Waker) -> Arc<Self> {
        Arc::new(Self { woken: AtomicBool::new(false), inner: Mutex::new(inner.clone()) })
    }

    fn pass_on_to(&self, waker: &Waker) {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).clone_from(waker);
    }

    /// Who has been seen to let go of it has been seen to wake it before, if it did.
    fn holders(self: &Arc<Self>) -> usize {
        let holders = Arc::strong_count(self);
        fence(Ordering::Acquire);
        holders
    }

    fn is_woken(&self) -> bool {
        self.woken.load(Ordering::SeqCst)
    }
}

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner).clone();
        inner.wake();
    }
}
