//! The driver of an HTTP+SSE session on the server: processes responses of handlers, timeouts and the end of the
//! session.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use super::session::ServerLegacySseSession;
use crate::runtime::{Timer, spawn_off_workers};
use crate::transport::http::server::load::ServerLoadGuard;
use crate::transport::http::server::sessions::HttpSessionTable;

/// The maximum number of turns that the driver of a session takes in one poll before it yields to other tasks on its
/// thread.
const TURNS: usize = 32;

/// Drives one HTTP+SSE session to its end.
pub(crate) struct ServerLegacySseDriver {
    session: Arc<ServerLegacySseSession>,
    sessions: Weak<HttpSessionTable>,
    /// Fires at the idle timeout of the session.
    timer: Box<dyn Timer>,
    /// A shutdown of the HTTP server waits until this guard is dropped.
    load: ServerLoadGuard,
}

impl ServerLegacySseDriver {
    /// Spawns the driver on a thread that handlers cannot block.
    pub(crate) fn spawn(session: Arc<ServerLegacySseSession>, sessions: Weak<HttpSessionTable>) {
        let runtime = Arc::clone(&session.runtime);
        let driver = Self { timer: runtime.timer(), load: session.load.guard(), session, sessions };
        spawn_off_workers(&*runtime, driver);
    }

    fn remove_session(&self) {
        if let Some(sessions) = self.sessions.upgrade() {
            sessions.remove(self.session.id());
        }
    }
}

impl Future for ServerLegacySseDriver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let driver = &mut *self;
        let session = Arc::clone(&driver.session);
        for _ in 0..TURNS {
            let mut guard = session.lock();
            let state = &mut *guard;
            let progressed = state.engine.run_commands_and_timer(cx);
            state.engine.process_events();
            state.release_permits();
            if state.engine.connection.waiting_bytes() > 0 {
                state.wake_reader();
            }
            if let Some(ended) = state.engine.ended() {
                driver.load.abandoned(ended.abandoned);
                state.engine.abandon_all();
                state.ended = true;
                state.wake_reader();
                drop(guard);
                driver.remove_session();
                return Poll::Ready(());
            }
            let now = session.runtime.now();
            let idle_at = (!state.ended).then(|| session.idle_deadline(state));
            if idle_at.is_some_and(|idle_at| idle_at <= now) {
                state.end(now);
                drop(guard);
                driver.remove_session();
                continue;
            }
            driver.timer.reset(idle_at);
            let due = driver.timer.poll(cx).is_ready();
            if !state.engine.prepare_sleep(cx, 0, progressed || due) {
                state.driver = Some(cx.waker().clone());
                return Poll::Pending;
            }
        }
        // Yields to others on this thread.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
