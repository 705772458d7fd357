//! Timers on the clock of the executor.

use std::pin::Pin;
use std::task::{Context, Poll};

use steadfast::runtime::Timer;
use steadfast_proto::Moment;

use super::Executor;

pub(super) struct VirtualTimer {
    pub(super) executor: Executor,
    pub(super) when: Option<Moment>,
    pub(super) entry: Option<(Moment, u64)>,
}

impl VirtualTimer {
    fn leave(&mut self) {
        if let Some(entry) = self.entry.take() {
            let waker = self.executor.lock().timers.remove(&entry);
            drop(waker);
        }
    }
}

impl Timer for VirtualTimer {
    fn reset(&mut self, when: Option<Moment>) {
        if self.when != when {
            self.leave();
            self.when = when;
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(when) = self.when else { return Poll::Pending };
        let mut state = self.executor.lock();
        if when <= state.now {
            drop(state);
            self.leave();
            self.when = None;
            return Poll::Ready(());
        }
        let entry = match self.entry {
            Some(entry) => entry,
            None => (when, state.number()),
        };
        let before = state.timers.insert(entry, cx.waker().clone());
        drop(state);
        drop(before);
        self.entry = Some(entry);
        Poll::Pending
    }
}

impl Drop for VirtualTimer {
    fn drop(&mut self) {
        self.leave();
    }
}

/// See [`Executor::sleep`].
pub(crate) struct Sleep(pub(super) VirtualTimer);

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll(cx)
    }
}
