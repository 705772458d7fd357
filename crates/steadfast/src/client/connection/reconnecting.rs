//! The line of a client: the link that there is, and how there comes to be another.
//!
//! ```text
//!   a link --(a call on it fails)--> coming back --+--> a link: everyone who waits goes on with it
//!                                         |        +--> in vain: everyone who waits is told
//!                                         +--(closed, or nobody waits any more)--> nothing is opened
//! ```
//!
//! However many need another link, one task comes back for all of them. It lives as long as somebody waits for it. The
//! close of a line wins: what is being opened then is ended, and nothing is opened after it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steadfast_proto::{Moment, mutant};
use tokio::sync::watch;

use super::live::{LiveConnection, wait_until_closed};
use super::opening::{Opener, is_final};
use super::reconnect::{FailureStreak, Reconnect};
use crate::error::{Error, ErrorKind, Outcome};
use crate::runtime::connection::call_result::{CallLoss, LossKind, text_of};
use crate::runtime::timeout::sleep_until;

/// The way from a client to its server, over as many links as it takes.
pub(crate) struct ReconnectingConnection {
    pub(crate) opener: Opener,
    policy: Reconnect,
    state: Mutex<State>,
    /// Rings when the line is closed.
    closing: watch::Sender<bool>,
}

struct State {
    /// The newest.
    live: Arc<LiveConnection>,
    /// When it was found to work, until it fails somebody.
    good_since: Option<Moment>,
    /// Set while somebody comes back.
    returning: Option<Arc<watch::Sender<Option<ReconnectResult>>>>,
    streak: FailureStreak,
    closed: bool,
    /// The ends of links that were not over when it was last looked.
    ends: Vec<watch::Receiver<bool>>,
}

/// What coming back came to.
type ReconnectResult = Result<Arc<LiveConnection>, Arc<Error>>;

/// A link that has failed somebody.
pub(crate) struct LostConnection {
    pub(crate) live: Arc<LiveConnection>,
    /// When it was asked for what it failed at.
    pub(crate) at: Moment,
    pub(crate) lost: LossKind,
}

impl ReconnectingConnection {
    /// A line over a first link.
    pub(crate) fn new(opener: Opener, live: LiveConnection, policy: Reconnect) -> Arc<Self> {
        let policy = if opener.connector.opens_again() { policy } else { Reconnect::never() };
        let state = State {
            good_since: Some(live.since),
            ends: vec![live.closed()],
            live: Arc::new(live),
            returning: None,
            streak: FailureStreak::default(),
            closed: false,
        };
        Arc::new(Self { opener, policy, state: Mutex::new(state), closing: watch::Sender::new(false) })
    }

    /// The newest link, whether it lives or not.
    pub(crate) fn live(&self) -> Arc<LiveConnection> {
        Arc::clone(&self.lock().live)
    }

    /// How it comes back.
    pub(crate) fn policy(&self) -> &Reconnect {
        &self.policy
    }

    /// A link in the place of one that has failed: the same, if it turns out to work.
    pub(crate) async fn another(self: &Arc<Self>, failed: LostConnection) -> Result<Arc<LiveConnection>, Error> {
        let mut returned = match self.begin_return(failed) {
            Ok(live) => return live,
            Err(returned) => returned,
        };
        let returned = returned.wait_for(Option::is_some).await;
        // Whoever comes back says how it went, whatever happens to it.
        let returned = returned.ok().and_then(|returned| returned.clone());
        returned.unwrap_or_else(|| Err(Arc::new(Error::closed(Outcome::NotSent)))).map_err(Error::unreachable)
    }

    /// The link, if there is one already; or where to wait for it.
    fn begin_return(
        self: &Arc<Self>,
        failed: LostConnection,
    ) -> Result<Result<Arc<LiveConnection>, Error>, watch::Receiver<Option<ReconnectResult>>> {
        let now = self.opener.runtime.now();
        let mut state = self.lock();
        if state.closed || self.policy.most() == 0 {
            return Ok(Err(Error::closed(Outcome::NotSent)));
        }
        if let Some(returning) = &state.returning {
            return Err(returning.subscribe());
        }
        // Somebody has been there since.
        let good_again = failed.lost == LossKind::Call && state.good_since.is_some_and(|since| since > failed.at);
        if !Arc::ptr_eq(&state.live, &failed.live) || good_again {
            return Ok(Ok(Arc::clone(&state.live)));
        }
        // It is lost once, however often it is found to be.
        if let Some(since) = state.good_since.take() {
            state.streak.lost(now, now.since(since));
        }
        let (sender, receiver) = watch::channel(None);
        let sender = Arc::new(sender);
        state.returning = Some(Arc::clone(&sender));
        let left = state.streak.allowance(&self.policy);
        drop(state);
        let returning =
            ReconnectAttempt { connection: Arc::clone(self), sender, failed, left, trying: AtomicBool::new(false) };
        self.opener.runtime.spawn(Box::pin(returning.run()));
        Err(receiver)
    }

    /// Closes the line. Nothing is opened any more.
    pub(crate) fn close(&self) {
        drop(self.begin_close());
    }

    /// Begins to close the line: nothing is opened any more, and nothing is waited for. The link ends when this is dropped.
    pub(crate) fn begin_close(&self) -> LastConnection {
        let mut state = self.lock();
        state.closed = true;
        let live = Arc::clone(&state.live);
        drop(state);
        self.closing.send_replace(true);
        self.opener.cache.close();
        LastConnection(live)
    }

    /// Whether it is being closed, or is.
    pub(crate) fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }

    /// Waits until the line is closed.
    pub(crate) async fn wait_until_closing(&self) {
        if mutant!(OutlastClose) {
            return std::future::pending().await;
        }
        // The sender is ours, so there is one.
        let _ = self.closing.subscribe().wait_for(|closing| *closing).await;
    }

    /// Waits until nothing is left of a line that was closed.
    pub(crate) async fn wait_until_over(&self) {
        let returning = self.lock().returning.as_ref().map(|returning| returning.subscribe());
        if let Some(mut returning) = returning {
            // An error means that whoever came back has gone.
            let _ = returning.wait_for(Option::is_some).await;
        }
        self.wait_for_ends().await;
    }

    /// Waits until all links that were begun are over: they have to be ending.
    async fn wait_for_ends(&self) {
        let ends = self.lock().ends.clone();
        for end in ends {
            wait_until_closed(end).await;
        }
    }

    /// How the server at the end of a link ended. Whoever closes the line knows why a link ends.
    pub(crate) async fn obituary_of(&self, live: &LiveConnection) -> Option<Arc<str>> {
        if self.lock().closed { None } else { live.exit_reason(&*self.opener.runtime).await }
    }

    fn note_begun(&self, end: watch::Receiver<bool>) {
        let mut state = self.lock();
        state.ends.retain(|end| !*end.borrow());
        state.ends.push(end);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The link of a line that is being closed. Dropping this closes it, whoever else has it.
pub(crate) struct LastConnection(Arc<LiveConnection>);

impl Drop for LastConnection {
    fn drop(&mut self) {
        self.0.shut_down();
    }
}

/// Somebody on the way back. When it is dropped, everyone who waits is told.
struct ReconnectAttempt {
    connection: Arc<ReconnectingConnection>,
    sender: Arc<watch::Sender<Option<ReconnectResult>>>,
    failed: LostConnection,
    /// How many attempts there are.
    left: u32,
    /// One is past its pause, and counts.
    trying: AtomicBool,
}

impl ReconnectAttempt {
    async fn run(mut self) {
        let connection = Arc::clone(&self.connection);
        let mut closing = connection.closing.subscribe();
        loop {
            let returned = tokio::select! {
                biased;
                _ = closing.wait_for(|closing| *closing) => Some(Err(Error::closed(Outcome::NotSent))),
                () = self.wait_until_unwanted() => None,
                returned = self.attempt() => Some(returned),
            };
            match returned {
                None => {
                    if self.trying.swap(false, Ordering::SeqCst) {
                        // Impatience is no way around the pauses.
                        connection.lock().streak.failed(connection.opener.runtime.now());
                    }
                    // It begins again for whoever comes next.
                    if self.leave_unwanted() {
                        return;
                    }
                }
                Some(Ok(live)) => return self.arrive(live),
                Some(Err(error)) => {
                    self.trying.store(false, Ordering::SeqCst);
                    connection.lock().streak.failed(connection.opener.runtime.now());
                    self.left = self.left.saturating_sub(1);
                    if self.left == 0 || is_final(&error) || *connection.closing.borrow() {
                        return self.tell(Err(Arc::new(error)));
                    }
                }
            }
        }
    }

    /// One attempt, when its time has come.
    async fn attempt(&self) -> Result<Arc<LiveConnection>, Error> {
        let opener = &self.connection.opener;
        let when = self.connection.lock().streak.next(&self.connection.policy, &*opener.runtime);
        sleep_until(&*opener.runtime, when).await;
        self.trying.store(true, Ordering::SeqCst);
        let failed = &self.failed.live;
        if !opener.connector.is_http() {
            // One process at a time: the next may need what the last one holds, or one that was begun in vain.
            failed.shut_down();
            self.connection.wait_for_ends().await;
        }
        let deadline = opener.deadline();
        if self.failed.lost == LossKind::Call && opener.connector.is_http() {
            let ending = opener.probe(failed, deadline).await;
            let gone = CallLoss::from_end(&ending).is_some_and(|loss| loss.kind != LossKind::Call);
            match text_of(ending, "ping") {
                _ if gone => {}
                // Whatever it says, it is there.
                Err(error) if error.kind() != ErrorKind::Refused => return Err(error),
                _ => return Ok(Arc::clone(failed)),
            }
        }
        failed.shut_down();
        let revision = failed.peer.revision;
        let opened = opener.open(Some(revision), deadline, |end| self.connection.note_begun(end)).await?;
        opener.cache.begin_anew();
        opener.cache.logs.restore(&opened, opener);
        Ok(Arc::new(opened))
    }

    /// Completes when nobody waits any more.
    async fn wait_until_unwanted(&self) {
        self.sender.closed().await;
    }

    /// Ends it if nobody waits, and nobody can begin to.
    fn leave_unwanted(&self) -> bool {
        let mut state = self.connection.lock();
        let unwanted = self.sender.receiver_count() == 0;
        if unwanted {
            state.returning = None;
        }
        unwanted
    }

    fn arrive(&self, live: Arc<LiveConnection>) {
        let mut state = self.connection.lock();
        if state.closed {
            drop(state);
            live.shut_down();
            return self.tell(Err(Arc::new(Error::closed(Outcome::NotSent))));
        }
        state.live = Arc::clone(&live);
        state.good_since = Some(self.connection.opener.runtime.now());
        drop(state);
        self.tell(Ok(live));
    }

    /// Tells everyone how it went, once.
    fn tell(&self, returned: ReconnectResult) {
        let mut state = self.connection.lock();
        if state.returning.as_ref().is_some_and(|returning| Arc::ptr_eq(returning, &self.sender)) {
            state.returning = None;
        }
        drop(state);
        self.sender.send_if_modified(|told| {
            let first = told.is_none();
            if first {
                *told = Some(returned);
            }
            first
        });
    }
}

impl Drop for ReconnectAttempt {
    fn drop(&mut self) {
        self.tell(Err(Arc::new(Error::closed(Outcome::NotSent))));
    }
}
