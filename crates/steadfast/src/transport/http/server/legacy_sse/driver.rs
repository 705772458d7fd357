//! What drives a session of the old transport while its stream is not written: answers that come, deadlines, its end.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use super::session::SseSession;
use crate::runtime::{Timer, spawn_off_workers};
use crate::transport::http::server::load::LoadGuard;
use crate::transport::http::server::sessions::Sessions;

/// How many turns it takes before it lets another one on its thread have some.
const TURNS: usize = 32;

/// Drives one session to its end.
pub(crate) struct Driver {
    session: Arc<SseSession>,
    sessions: Weak<Sessions>,
    /// For its idle time.
    timer: Box<dyn Timer>,
    /// A shutdown waits for it.
    stay: LoadGuard,
}

impl Driver {
    /// Where no handler can hold it up.
    pub(crate) fn spawn(session: Arc<SseSession>, sessions: Weak<Sessions>) {
        let runtime = Arc::clone(&session.runtime);
        let driver = Self { timer: runtime.timer(), stay: session.load.stay(), session, sessions };
        spawn_off_workers(&*runtime, driver);
    }

    fn leave_table(&self) {
        if let Some(sessions) = self.sessions.upgrade() {
            sessions.remove(self.session.id());
        }
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let driver = &mut *self;
        let session = Arc::clone(&driver.session);
        for _ in 0..TURNS {
            let mut guard = session.lock();
            let state = &mut *guard;
            let progressed = state.engine.run_commands_and_timer(cx);
            state.engine.process_events();
            state.give_back();
            if state.engine.connection.waiting_bytes() > 0 {
                state.wake_reader();
            }
            if let Some(ended) = state.engine.ended() {
                driver.stay.abandoned(ended.abandoned);
                state.engine.abandon_all();
                state.over = true;
                state.wake_reader();
                drop(guard);
                driver.leave_table();
                return Poll::Ready(());
            }
            let now = session.runtime.now();
            let until = (!state.over).then(|| session.patience(state));
            if until.is_some_and(|until| until <= now) {
                state.end(now);
                drop(guard);
                driver.leave_table();
                continue;
            }
            driver.timer.reset(until);
            let due = driver.timer.poll(cx).is_ready();
            if !state.engine.prepare_sleep(cx, 0, progressed || due) {
                state.driver = Some(cx.waker().clone());
                return Poll::Pending;
            }
        }
        // Others on this thread have their turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
