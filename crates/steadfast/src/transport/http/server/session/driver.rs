//! The driver of a Streamable HTTP session on the server: processes responses of handlers, timeouts and the end of the
//! session between the client's requests.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use steadfast_proto::mutant;

use super::ServerHttpSession;
use crate::runtime::{Timer, spawn_off_workers};
use crate::transport::http::server::load::ServerLoadGuard;
use crate::transport::http::server::sessions::HttpSessionTable;

/// The maximum number of turns that the driver of a session takes in one poll before it yields to other tasks on its
/// thread.
const TURNS: usize = 32;

/// Drives one Streamable HTTP session to its end.
pub(crate) struct ServerHttpSessionDriver {
    session: Arc<ServerHttpSession>,
    sessions: Weak<HttpSessionTable>,
    /// Fires at the idle timeout of the session, and when stored events expire.
    timer: Box<dyn Timer>,
    /// A shutdown of the HTTP server waits until this guard is dropped.
    load: ServerLoadGuard,
}

impl ServerHttpSessionDriver {
    /// Spawns the driver on the I/O loop that the session was opened on.
    pub(crate) fn spawn(session: Arc<ServerHttpSession>, sessions: Weak<HttpSessionTable>) {
        let runtime = Arc::clone(&session.runtime);
        let driver = Self { timer: runtime.timer(), load: session.load.guard(), session, sessions };
        spawn_off_workers(&*runtime, driver);
    }
}

impl Future for ServerHttpSessionDriver {
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
            state.release_lingering();
            if let Some(ended) = state.engine.ended() {
                driver.load.abandoned(ended.abandoned);
                state.engine.abandon_all();
                state.lingering.clear();
                state.finish();
                drop(guard);
                if let Some(sessions) = driver.sessions.upgrade() {
                    sessions.remove(session.id());
                }
                return Poll::Ready(());
            }
            state.log.expire(now);
            let idle_at = (state.open_responses == 0 && !state.ended && !mutant!(KeepIdle))
                .then(|| state.last_used + session.timing.idle);
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
        // Yields to others on this thread.
        drop(guard);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
