//! Hands out tokens for one server: gets them, refreshes them, and lets nobody do either twice.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use http::Method;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedMutexGuard;
use url::Url;

use super::{AssertionSource, Attempt, UserAgent, Visit};
use crate::client::challenge::Challenge;
use crate::client::flow::{Command, Event, Flow, Outcome, Situation};
use crate::client::profile::Profile;
use crate::client::random::Randomness;
use crate::client::reach::shown;
use crate::client::scope::is_step_up;
use crate::client::store::{Key, Lock, TokenStore};
use crate::client::token::Tokens;
use crate::client::{Error, Secret};
use crate::{HttpClient, HttpError};

/// No document or token is longer.
const LONGEST: usize = 256 * 1024;
/// How long one request may take, whatever the HTTP client thinks: others wait for it.
const PATIENCE: Duration = Duration::from_secs(30);

/// Tokens for one server, shared by everybody who sends requests to it. Clones are the same authorizer.
#[derive(Clone)]
pub struct Authorizer(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) profile: Arc<Profile>,
    pub(super) server: Url,
    pub(super) server_text: String,
    pub(super) http: Arc<dyn HttpClient>,
    pub(super) store: Arc<dyn TokenStore>,
    pub(super) user: Option<Arc<dyn UserAgent>>,
    pub(super) assertions: Option<Arc<dyn AssertionSource>>,
    pub(super) random: Arc<dyn Randomness>,
    pub(super) held: Mutex<Held>,
    /// Whoever has it gets or refreshes tokens; the others wait and take what came of it.
    pub(super) turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
pub(super) struct Held {
    tokens: Option<Arc<Tokens>>,
    /// The issuer that the server named the last time.
    issuer: Option<String>,
    loaded: bool,
    /// The tokens are new and no server has taken them yet.
    unproven: bool,
    nonce: Option<String>,
    /// How many flows have ended, and how the last one failed: those who waited for it fail likewise.
    ended: u64,
    failure: Option<Error>,
}

/// What a server named the last time.
#[derive(Serialize, Deserialize)]
struct Binding {
    issuer: String,
    resource: String,
}

/// How far a flow came without the user.
enum Progress {
    Done,
    NeedsUser(Box<(Flow, Command)>),
}

impl Authorizer {
    /// A request to be made. It must go to the server that the tokens are for.
    pub fn attempt(&self, method: Method, url: &str) -> Result<Attempt, Error> {
        let url = Url::parse(url).map_err(|_| Error::ForeignRequest)?;
        if url.origin() != self.0.server.origin() {
            return Err(Error::ForeignRequest);
        }
        Ok(Attempt::new(self.clone(), method, url))
    }

    /// Forgets the tokens of this server, here and in the store. What the client is called stays.
    pub async fn sign_out(&self) -> Result<(), Error> {
        let _turn = self.0.turn.lock().await;
        self.load().await?;
        let tokens = {
            let mut held = self.held();
            held.unproven = false;
            held.tokens.take()
        };
        if let Some(tokens) = tokens {
            self.0.store.remove(&key(&tokens)).await?;
        }
        Ok(())
    }

    pub(super) fn randomness(&self) -> &dyn Randomness {
        &*self.0.random
    }

    pub(super) fn nonce(&self) -> Option<String> {
        self.held().nonce.clone()
    }

    pub(super) fn remember_nonce(&self, nonce: Option<String>) {
        self.held().nonce = nonce;
    }

    /// A server has taken these tokens.
    pub(super) fn accepted(&self, used: &Arc<Tokens>) {
        let mut held = self.held();
        if held.tokens.as_ref().is_some_and(|tokens| Arc::ptr_eq(tokens, used)) {
            held.unproven = false;
        }
    }

    /// Tokens that can be sent now, refreshed if they have to be and can be.
    pub(super) async fn usable(&self) -> Result<Option<Arc<Tokens>>, Error> {
        if let Some(tokens) = self.fresh() {
            return Ok(Some(tokens));
        }
        let before = self.held().ended;
        let turn = Arc::clone(&self.0.turn).lock_owned().await;
        self.load().await?;
        if let Some(tokens) = self.fresh() {
            return Ok(Some(tokens));
        }
        self.failed_since(before)?;
        let old = self.held().tokens.clone().filter(|tokens| tokens.is_refreshable());
        let Some(old) = old else { return Ok(None) };
        // On a task of its own: a refresh token that was sent is used up, even if nobody waits for the answer any more.
        let this = self.clone();
        let refreshed = tokio::spawn(async move {
            let result = this.refresh(&old).await;
            this.ended(result.as_ref().err(), turn);
            result
        });
        refreshed.await.unwrap_or(Err(Error::Misuse("the runtime is shutting down")))
    }

    /// Other tokens than these, which the server did not take.
    pub(super) async fn renew(
        &self,
        used: Option<&Arc<Tokens>>,
        challenge: Option<Challenge>,
        may_refresh: bool,
    ) -> Result<(), Error> {
        let before = self.held().ended;
        let turn = Arc::clone(&self.0.turn).lock_owned().await;
        self.load().await?;
        self.failed_since(before)?;
        {
            let held = self.held();
            let others = held.ended != before;
            let same = match (held.tokens.as_ref(), used) {
                (Some(tokens), Some(used)) => tokens.access_token == used.access_token,
                (None, _) => true,
                (Some(tokens), None) => tokens.is_over(SystemTime::now()) && !tokens.is_refreshable(),
            };
            let wanted = challenge.as_ref().and_then(|challenge| challenge.scope.as_ref());
            let requested = held.tokens.as_ref().and_then(|tokens| tokens.requested.as_ref());
            if (others || !same) && !is_step_up(wanted, requested) {
                // Somebody else was faster.
                return Ok(());
            }
            if same && held.unproven && used.is_some() {
                return Err(Error::Rejected);
            }
        }
        let this = self.clone();
        let quiet = tokio::spawn(async move {
            let progress = this.without_user(challenge, may_refresh).await;
            (turn, progress)
        });
        let Ok((turn, progress)) = quiet.await else { return Err(Error::Misuse("the runtime is shutting down")) };
        // With the user it is the caller's own time: dropping the caller closes the listener.
        let result = match progress {
            Ok(Progress::NeedsUser(paused)) => {
                let (flow, command) = *paused;
                self.drive(flow, command, true).await.map(|_| ())
            }
            Ok(Progress::Done) => Ok(()),
            Err(error) => Err(error),
        };
        self.ended(result.as_ref().err(), turn);
        result
    }

    /// Tells those who wait for this turn what came of it.
    fn ended(&self, failure: Option<&Error>, turn: OwnedMutexGuard<()>) {
        if let Some(error) = failure {
            tracing::debug!(%error, "there is no token");
        }
        let mut held = self.held();
        held.ended = held.ended.wrapping_add(1);
        held.failure = failure.cloned();
        drop(held);
        drop(turn);
    }

    /// Whether somebody tried in vain while this caller waited for its turn.
    fn failed_since(&self, before: u64) -> Result<(), Error> {
        let held = self.held();
        held.failure.clone().filter(|_| held.ended != before).map_or(Ok(()), Err)
    }

    /// All of a flow that needs no user, with refreshing kept from others.
    async fn without_user(&self, challenge: Option<Challenge>, may_refresh: bool) -> Result<Progress, Error> {
        let mut old = self.held().tokens.clone();
        let mut lock: Option<Lock> = None;
        if may_refresh {
            if let Some(old) = old.as_ref().filter(|tokens| tokens.is_refreshable()) {
                lock = Some(self.0.store.lock(&key(old)).await?);
            }
            // Another process may have been faster.
            let (stored, _) = self.stored().await?;
            let is_other = |stored: &Tokens| old.as_ref().is_none_or(|old| stored.access_token != old.access_token);
            if let Some(stored) = stored {
                let stored = Arc::new(stored);
                if is_other(&stored) && !stored.is_over(SystemTime::now()) {
                    self.adopt(stored, false);
                    return Ok(Progress::Done);
                }
                old = Some(stored);
            }
        }
        let issuer = self.held().issuer.clone();
        let tokens = old.map(|tokens| (*tokens).clone());
        let mut flow = self.flow(Situation { challenge, tokens, may_refresh, issuer })?;
        let first = flow.begin();
        let progress = self.drive(flow, first, false).await;
        drop(lock);
        progress
    }

    /// New tokens for these, which are over, or those that somebody else got meanwhile.
    async fn refresh(&self, old: &Arc<Tokens>) -> Result<Option<Arc<Tokens>>, Error> {
        let key = key(old);
        let _lock = self.0.store.lock(&key).await?;
        let Some(stored) = self.load_value::<Tokens>(&key).await? else {
            // Somebody signed out.
            self.held().tokens = None;
            return Ok(None);
        };
        if stored.access_token != old.access_token && !stored.is_over(SystemTime::now()) {
            return Ok(Some(self.adopt(Arc::new(stored), false)));
        }
        let registration = self.load_value(&Key::Client { issuer: stored.issuer.clone() }).await?;
        let mut flow = self.flow(Situation { tokens: Some(stored.clone()), ..Situation::default() })?;
        let first = flow.begin_refresh(registration.as_ref(), SystemTime::now());
        match self.drive(flow, first, false).await {
            Ok(_) => Ok(self.held().tokens.clone()),
            Err(Error::TokenRefused(_) | Error::NoClient { .. }) => {
                // What was asked for is worth remembering: the user is asked for the same again.
                let spent = Tokens { refresh_token: None, ..stored };
                self.save_value(&key, &spent).await?;
                self.adopt(Arc::new(spent), false);
                Ok(None)
            }
            // It is over soon, not yet.
            Err(_) if stored.expires_at.is_some_and(|end| crate::client::dpop::seconds(SystemTime::now()) < end) => {
                Ok(Some(self.adopt(Arc::new(stored), false)))
            }
            Err(error) => Err(error),
        }
    }

    fn flow(&self, situation: Situation) -> Result<Flow, Error> {
        let (profile, random) = (Arc::clone(&self.0.profile), Arc::clone(&self.0.random));
        Flow::new(profile, &self.0.server_text, situation, random)
    }

    /// Does what a flow says, up to its end or to the user.
    async fn drive(&self, mut flow: Flow, mut command: Command, with_user: bool) -> Result<Progress, Error> {
        let mut visit: Option<Box<dyn Visit>> = None;
        let mut issuer_asked = None;
        loop {
            // Its debug form has nothing secret.
            tracing::debug!(?command, "authorization");
            let event = match command {
                Command::Send(request) => {
                    match tokio::time::timeout(PATIENCE, self.0.http.send(request, LONGEST)).await {
                        Ok(Ok(response)) => Event::Response(response),
                        Ok(Err(error)) => Event::Unreachable(error),
                        Err(_) => Event::Unreachable(HttpError::new("no answer in time")),
                    }
                }
                Command::Recall { issuer } => {
                    let key = Key::Client { issuer };
                    let registration = self.load_value(&key).await?;
                    issuer_asked = Some(key);
                    Event::Recalled(registration)
                }
                Command::PrepareRedirect { .. } if !with_user => {
                    return Ok(Progress::NeedsUser(Box::new((flow, command))));
                }
                Command::PrepareRedirect { preferred } => {
                    let nobody = || Error::NoUser(String::from("there is nobody to ask"));
                    let user = self.0.user.as_ref().ok_or_else(nobody)?;
                    let ready = visit.insert(user.prepare(preferred.as_deref()).await?);
                    Event::RedirectReady(ready.redirect_uri().to_owned())
                }
                Command::Visit(url) => {
                    let visit = visit.take().ok_or(Error::Misuse("nobody is ready for the answer"))?;
                    Event::Redirected(visit.visit(url).await?)
                }
                Command::Assert { issuer, resource } => {
                    let nobody = || Error::NoAssertion(String::from("nothing gives any"));
                    let source = self.0.assertions.as_ref().ok_or_else(nobody)?;
                    Event::Assertion(source.assertion(&issuer, &resource).await?)
                }
                Command::Authorized(outcome) => {
                    self.remember(*outcome).await?;
                    return Ok(Progress::Done);
                }
                Command::Failed(error) => {
                    let forgotten = matches!(&error, Error::TokenRefused(refusal) if refusal.code == "invalid_client");
                    if let Some(key) = issuer_asked.filter(|_| forgotten) {
                        self.0.store.remove(&key).await?;
                    }
                    return Err(error);
                }
            };
            command = flow.handle(event, SystemTime::now());
        }
    }

    /// Keeps what a flow brought.
    async fn remember(&self, outcome: Outcome) -> Result<(), Error> {
        let tokens = Arc::new(outcome.tokens);
        let before = self.held().tokens.clone();
        self.save_value(&key(&tokens), &*tokens).await?;
        if let Some(registration) = &outcome.registration {
            self.save_value(&Key::Client { issuer: tokens.issuer.clone() }, registration).await?;
        }
        let binding = Binding { issuer: tokens.issuer.clone(), resource: tokens.resource.clone() };
        self.save_value(&self.server_key(), &binding).await?;
        let moved = before.as_ref().filter(|before| key(before) != key(&tokens));
        if let Some(before) = moved {
            // The server takes no more of these.
            self.0.store.remove(&key(before)).await?;
        }
        self.adopt(tokens, !outcome.refreshed);
        Ok(())
    }

    fn adopt(&self, tokens: Arc<Tokens>, unproven: bool) -> Arc<Tokens> {
        let mut held = self.held();
        held.issuer = Some(tokens.issuer.clone());
        held.unproven = unproven;
        held.tokens = Some(Arc::clone(&tokens));
        tokens
    }

    fn fresh(&self) -> Option<Arc<Tokens>> {
        let tokens = self.held().tokens.clone();
        tokens.filter(|tokens| !tokens.is_over(SystemTime::now()))
    }

    /// Reads the store, once.
    async fn load(&self) -> Result<(), Error> {
        if self.held().loaded {
            return Ok(());
        }
        let (tokens, issuer) = self.stored().await?;
        let mut held = self.held();
        held.loaded = true;
        held.tokens = tokens.map(Arc::new);
        held.issuer = issuer;
        Ok(())
    }

    /// The tokens of this server in the store, and the issuer that it named the last time.
    async fn stored(&self) -> Result<(Option<Tokens>, Option<String>), Error> {
        let Some(Binding { issuer, resource }) = self.load_value(&self.server_key()).await? else {
            return Ok((None, None));
        };
        let tokens = self.load_value(&Key::Tokens { issuer: issuer.clone(), resource }).await?;
        Ok((tokens, Some(issuer)))
    }

    async fn load_value<T: DeserializeOwned>(&self, key: &Key) -> Result<Option<T>, Error> {
        let text = self.0.store.load(key).await?;
        // What cannot be read, from another version perhaps, is as good as nothing.
        Ok(text.and_then(|text| serde_json::from_str(text.expose()).ok()))
    }

    async fn save_value<T: Serialize>(&self, key: &Key, value: &T) -> Result<(), Error> {
        let text = serde_json::to_string(value).map_err(|_| Error::Misuse("a value cannot be written"))?;
        Ok(self.0.store.save(key, &Secret::new(text)).await?)
    }

    fn server_key(&self) -> Key {
        Key::Server { url: self.0.server_text.clone() }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(tokens: &Tokens) -> Key {
    Key::Tokens { issuer: tokens.issuer.clone(), resource: tokens.resource.clone() }
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Authorizer({})", shown(&self.0.server_text))
    }
}
