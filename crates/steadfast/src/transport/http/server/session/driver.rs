//! What drives a session while nobody asks anything of it: answers that come, deadlines, and its end.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use steadfast_proto::mutant;

use super::Session;
use crate::runtime::{Timer, spawn_off_workers};
use crate::transport::http::server::load::LoadGuard;
use crate::transport::http::server::sessions::Sessions;

/// How many turns it takes before it lets another one on its thread have some.
const TURNS: usize = 32;

/// Drives one session to its end.
pub(crate) struct Driver {
    session: Arc<Session>,
    sessions: Weak<Sessions>,
    /// For its idle time and the age of its events.
    timer: Box<dyn Timer>,
    /// A shutdown waits for it.
    stay: LoadGuard,
}

impl Driver {
    /// On the carrier that the session was opened on, or the thread of the drivers: no handler can hold it up there.
    pub(crate) fn spawn(session: Arc<Session>, sessions: Weak<Sessions>) {
        let runtime = Arc::clone(&session.runtime);
        let driver = Self { timer: runtime.timer(), stay: session.load.stay(), session, sessions };
        spawn_off_workers(&*runtime, driver);
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let driver = &mut *self;
        let session = &driver.session;
        let mut guard = session.lock();
        let state = &mut *guard;
        for _ in 0..TURNS {
            let progressed = state.engine.run_commands_and_timer(cx);
            let now = session.runtime.now();
            state.engine.process_events();
            state.deliver(now, None);
            state.engine.process_events();
            if let Some(ended) = state.engine.ended() {
                driver.stay.abandoned(ended.abandoned);
                state.engine.abandon_all();
                state.finish();
                drop(guard);
                if let Some(sessions) = driver.sessions.upgrade() {
                    sessions.remove(session.id());
                }
                return Poll::Ready(());
            }
            state.log.expire(now);
            let idle_at =
                (state.open == 0 && !state.over && !mutant!(KeepIdle)).then(|| state.used + session.timing.idle);
            if idle_at.is_some_and(|idle_at| idle_at <= now) {
                if let Some(sessions) = driver.sessions.upgrade() {
                    sessions.remove(session.id());
                }
                state.end(now);
                continue;
            }
            driver.timer.reset(idle_at.into_iter().chain(state.log.next_expiry()).min());
            let due = driver.timer.poll(cx).is_ready();
            if !state.engine.prepare_sleep(cx, 0, progressed || due) {
                state.driver = Some(cx.waker().clone());
                return Poll::Pending;
            }
        }
        // Others on this thread have their turn.
        drop(guard);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
