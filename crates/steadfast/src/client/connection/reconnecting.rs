//! The connection of a client over its whole life: the current [`ClientConnection`], and its replacement when it is lost.
//!
//! ```text
//!   connected --(a call is lost: see `resend_at_once`)--> the same connection
//!   connected --(a call is lost)--> reconnecting --+--> connected: all waiting calls continue on the new connection
//!                                        |         +--> failed: all waiting calls end with the error
//!                                        +--(closed, or no call waits any more)--> nothing is opened
//! ```
//!
//! However many calls need another connection, one spawned task reconnects for all of them. The reconnect task runs as
//! long as a call waits for it. Closing the client takes precedence: a connection that is being opened at that time is
//! closed, and none is opened afterwards.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadfast_proto::{Moment, mutant};
use tokio::sync::watch;

use super::live::{ClientConnection, wait_until_closed};
use super::opening::{ClientConnectionOpener, is_permanent};
use super::reconnect::{ReconnectFailureStreak, ReconnectPolicy, STABLE_UPTIME};
use crate::error::{Error, ErrorKind, Outcome};
use crate::runtime::connection::call_result::{CallLoss, CallLossScope, text_of};
use crate::runtime::timeout::sleep_until;

/// A request that fails later than this after it was sent is not sent again at once.
const QUICK_FAILURE: Duration = Duration::from_secs(1);

/// See the [module](self).
pub(crate) struct ReconnectingConnection {
    pub(crate) opener: ClientConnectionOpener,
    policy: ReconnectPolicy,
    state: Mutex<ReconnectingConnectionState>,
    /// True as soon as the client begins to close.
    closing: watch::Sender<bool>,
}

struct ReconnectingConnectionState {
    /// The newest connection of the client, which may be lost.
    live: Arc<ClientConnection>,
    /// When the connection was opened or last found to work; `None` from the loss of the connection to its replacement.
    working_since: Option<Moment>,
    /// The sender for the result of the [`ReconnectTask`], which is set while such a task runs.
    reconnecting: Option<Arc<ReconnectResultSender>>,
    streak: ReconnectFailureStreak,
    closed: bool,
    /// The close signals of all connections that were opened, without those that were known to be closed when the last
    /// one was added.
    open_connections: Vec<watch::Receiver<bool>>,
}

type ReconnectResult = Result<Arc<ClientConnection>, Arc<Error>>;

/// Sends the result of a [`ReconnectTask`] to all calls that wait for it.
type ReconnectResultSender = watch::Sender<Option<ReconnectResult>>;

/// A connection on which a call was lost.
pub(crate) struct CallLossReport {
    pub(crate) live: Arc<ClientConnection>,
    pub(crate) call_sent_at: Moment,
    pub(crate) kind: CallLossScope,
    /// The call may be sent again at once on the same connection, without a reconnect: it was lost before it was sent, for the first
    /// time, and has another retry left.
    pub(crate) resend_at_once: bool,
}

impl ReconnectingConnection {
    pub(crate) fn new(
        opener: ClientConnectionOpener,
        live: ClientConnection,
        policy: ReconnectPolicy,
        closing: watch::Sender<bool>,
    ) -> Arc<Self> {
        let policy = if opener.connector.can_reopen() { policy } else { ReconnectPolicy::never() };
        let state = ReconnectingConnectionState {
            working_since: Some(live.opened_at),
            open_connections: vec![live.closed()],
            live: Arc::new(live),
            reconnecting: None,
            streak: ReconnectFailureStreak::default(),
            closed: false,
        };
        Arc::new(Self { opener, policy, state: Mutex::new(state), closing })
    }

    /// The newest connection of the client, which may be lost.
    pub(crate) fn live(&self) -> Arc<ClientConnection> {
        Arc::clone(&self.lock().live)
    }

    pub(crate) fn policy(&self) -> &ReconnectPolicy {
        &self.policy
    }

    /// Waits for a connection in place of the one on which a call was lost. The result may be the same connection, if
    /// only the call was lost: for the first time, or while the server still responds.
    pub(crate) async fn replace(self: &Arc<Self>, lost: CallLossReport) -> Result<Arc<ClientConnection>, Error> {
        let mut result = match self.start_reconnecting(lost) {
            Ok(live) => return live,
            Err(receiver) => receiver,
        };
        let result = result.wait_for(Option::is_some).await;
        // Never an error: the task sends a result when it is dropped.
        let result = result.ok().and_then(|result| result.clone());
        result.unwrap_or_else(|| Err(Arc::new(Error::closed(Outcome::NotSent)))).map_err(Error::reconnect_failed)
    }

    /// Returns the current connection, if the lost connection was replaced already, and an error if it must not be
    /// replaced. If the connection has to be replaced, returns a receiver for the result of the reconnect task, which
    /// is started here unless it runs.
    fn start_reconnecting(
        self: &Arc<Self>,
        lost: CallLossReport,
    ) -> Result<Result<Arc<ClientConnection>, Error>, watch::Receiver<Option<ReconnectResult>>> {
        let now = self.opener.runtime.now();
        let mut state = self.lock();
        if state.closed || self.policy.max_attempts() == 0 {
            return Ok(Err(Error::closed(Outcome::NotSent)));
        }
        if let Some(reconnecting) = &state.reconnecting {
            return Err(reconnecting.subscribe());
        }
        // Another call may have reconnected, or found the connection to work, since this one was sent.
        let works_again =
            lost.kind == CallLossScope::Call && state.working_since.is_some_and(|since| since > lost.call_sent_at);
        // Without a pause and without a probe: servers close idle connections, and restart. Not if the connection was lost just
        // before, nor if it took long to fail.
        let stable = state.working_since.is_some_and(|since| now.since(since) >= STABLE_UPTIME);
        let at_once = lost.kind == CallLossScope::Call
            && lost.resend_at_once
            && stable
            && now.since(lost.call_sent_at) < QUICK_FAILURE;
        if !Arc::ptr_eq(&state.live, &lost.live) || works_again || at_once {
            return Ok(Ok(Arc::clone(&state.live)));
        }
        // The loss counts once, however many calls report it.
        if let Some(since) = state.working_since.take() {
            state.streak.record_loss(now, now.since(since));
        }
        let (sender, receiver) = watch::channel(None);
        let sender = Arc::new(sender);
        state.reconnecting = Some(Arc::clone(&sender));
        let attempts_left = state.streak.remaining_attempts(&self.policy);
        drop(state);
        let connection = Arc::clone(self);
        let task = ReconnectTask { connection, sender, lost, attempts_left, attempting: AtomicBool::new(false) };
        self.opener.runtime.spawn(Box::pin(task.run()));
        Err(receiver)
    }

    /// Closes the connection for good.
    pub(crate) fn close(&self) {
        drop(self.begin_close());
    }

    /// Begins to close the client: no connection is opened and no call is sent any more. The current connection is shut
    /// down when the returned guard is dropped.
    pub(crate) fn begin_close(&self) -> ConnectionShutdownGuard {
        let mut state = self.lock();
        state.closed = true;
        let live = Arc::clone(&state.live);
        drop(state);
        self.closing.send_replace(true);
        self.opener.cache.close();
        ConnectionShutdownGuard(live)
    }

    /// Whether the close of the client has begun.
    pub(crate) fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }

    /// Waits until the close of the client begins.
    pub(crate) async fn wait_until_closing(&self) {
        if mutant!(WaitPastClose) {
            return std::future::pending().await;
        }
        // Never an error: the sender is a field of this.
        let _ = self.closing.subscribe().wait_for(|closing| *closing).await;
    }

    /// Waits until the client is closed: no task reconnects, and every connection is closed.
    pub(crate) async fn wait_until_closed(&self) {
        let reconnecting = self.lock().reconnecting.as_ref().map(|sender| sender.subscribe());
        if let Some(mut result) = reconnecting {
            // An error means that the task has ended.
            let _ = result.wait_for(Option::is_some).await;
        }
        self.wait_for_open_connections().await;
    }

    /// Waits until every connection that was opened is closed. The caller has to shut down all of the connections
    /// before.
    async fn wait_for_open_connections(&self) {
        let open_connections = self.lock().open_connections.clone();
        for closed in open_connections {
            wait_until_closed(closed).await;
        }
    }

    /// Returns why the server of a connection exited. Returns `None` if the client was closed, because the reason is
    /// known then.
    pub(crate) async fn exit_reason(&self, live: &ClientConnection) -> Option<Arc<str>> {
        if self.lock().closed { None } else { live.exit_reason(&*self.opener.runtime).await }
    }

    fn add_open_connection(&self, closed: watch::Receiver<bool>) {
        let mut state = self.lock();
        state.open_connections.retain(|closed| !*closed.borrow());
        state.open_connections.push(closed);
    }

    fn lock(&self) -> MutexGuard<'_, ReconnectingConnectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last connection of a client that is being closed. Dropping the [`ConnectionShutdownGuard`] shuts the
/// connection down, even if calls still hold the connection.
pub(crate) struct ConnectionShutdownGuard(Arc<ClientConnection>);

impl Drop for ConnectionShutdownGuard {
    fn drop(&mut self) {
        self.0.shut_down();
    }
}

/// The task that reconnects a client. All calls that wait for the reconnect task get a result, even if the task is
/// dropped.
struct ReconnectTask {
    connection: Arc<ReconnectingConnection>,
    sender: Arc<ReconnectResultSender>,
    lost: CallLossReport,
    attempts_left: u32,
    /// Whether the pause before the current attempt to reconnect is over: from then on, a dropped attempt counts as a
    /// failure.
    attempting: AtomicBool,
}

impl ReconnectTask {
    async fn run(mut self) {
        let connection = Arc::clone(&self.connection);
        let mut closing = connection.closing.subscribe();
        loop {
            let result = tokio::select! {
                biased;
                _ = closing.wait_for(|closing| *closing) => Some(Err(Error::closed(Outcome::NotSent))),
                () = self.wait_until_no_call_waits() => None,
                result = self.attempt() => Some(result),
            };
            match result {
                None => {
                    if self.attempting.swap(false, Ordering::SeqCst) {
                        // Otherwise calls with short timeouts would get around the pauses.
                        connection.lock().streak.record_failure(connection.opener.runtime.now());
                    }
                    // If another call has begun to wait meanwhile, the next attempt is for that one.
                    if self.stop_if_no_call_waits() {
                        return;
                    }
                }
                Some(Ok(live)) => return self.succeed(live),
                Some(Err(error)) => {
                    self.attempting.store(false, Ordering::SeqCst);
                    connection.lock().streak.record_failure(connection.opener.runtime.now());
                    self.attempts_left = self.attempts_left.saturating_sub(1);
                    if self.attempts_left == 0 || is_permanent(&error) || *connection.closing.borrow() {
                        return self.finish(Err(Arc::new(error)));
                    }
                }
            }
        }
    }

    /// Makes one attempt to reconnect, after its pause.
    async fn attempt(&self) -> Result<Arc<ClientConnection>, Error> {
        let opener = &self.connection.opener;
        let when = self.connection.lock().streak.next_attempt_at(&self.connection.policy, &*opener.runtime);
        sleep_until(&*opener.runtime, when).await;
        self.attempting.store(true, Ordering::SeqCst);
        let lost = &self.lost.live;
        if !opener.connector.is_http() {
            // One process at a time: the next may need a resource (a port, a lock) that the last one, or one of a
            // failed attempt, still holds.
            lost.shut_down();
            self.connection.wait_for_open_connections().await;
        }
        let deadline = opener.deadline();
        if self.lost.kind == CallLossScope::Call && opener.connector.is_http() {
            let end = opener.probe(lost, deadline).await;
            let connection_lost = CallLoss::from_end(&end).is_some_and(|loss| loss.kind != CallLossScope::Call);
            match text_of(end, "ping") {
                _ if connection_lost => {}
                // Any response shows that the connection works, even an error.
                Err(error) if error.kind() != ErrorKind::Refused => return Err(error),
                _ => return Ok(Arc::clone(lost)),
            }
        }
        lost.shut_down();
        let revision = lost.peer.revision;
        let on_opened = |closed| self.connection.add_open_connection(closed);
        let opened = opener.open(Some(revision), deadline, on_opened).await?;
        opener.cache.reset();
        opener.cache.logs.restore(&opened, opener);
        Ok(Arc::new(opened))
    }

    async fn wait_until_no_call_waits(&self) {
        self.sender.closed().await;
    }

    /// Unregisters the reconnect task if no call waits for it. The lock is held, so that no call can begin to wait
    /// meanwhile.
    fn stop_if_no_call_waits(&self) -> bool {
        let mut state = self.connection.lock();
        let stop = self.sender.receiver_count() == 0;
        if stop {
            state.reconnecting = None;
        }
        stop
    }

    fn succeed(&self, live: Arc<ClientConnection>) {
        let mut state = self.connection.lock();
        if state.closed {
            drop(state);
            live.shut_down();
            return self.finish(Err(Arc::new(Error::closed(Outcome::NotSent))));
        }
        state.live = Arc::clone(&live);
        state.working_since = Some(self.connection.opener.runtime.now());
        drop(state);
        self.finish(Ok(live));
    }

    /// Unregisters the reconnect task, and sends its result to the waiting calls. If the task finishes twice, only the
    /// first result is sent.
    fn finish(&self, result: ReconnectResult) {
        let mut state = self.connection.lock();
        if state.reconnecting.as_ref().is_some_and(|sender| Arc::ptr_eq(sender, &self.sender)) {
            state.reconnecting = None;
        }
        drop(state);
        self.sender.send_if_modified(|sent| {
            let first = sent.is_none();
            if first {
                *sent = Some(result);
            }
            first
        });
    }
}

impl Drop for ReconnectTask {
    fn drop(&mut self) {
        self.finish(Err(Arc::new(Error::closed(Outcome::NotSent))));
    }
}
