//! Hands out tokens for one server: gets them, refreshes them, and lets nobody do either twice.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use http::{Method, Request};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;
use url::Url;

use super::refusals::Refusals;
use super::{AssertionSource, Attempt, UserAgent, Visit};
use crate::client::challenge::Challenge;
use crate::client::flow::{Command, Event, Flow, Forgotten, Outcome, Situation};
use crate::client::profile::Profile;
use crate::client::random::Randomness;
use crate::client::reach::shown;
use crate::client::registration::Registration;
use crate::client::scope::is_step_up;
use crate::client::store::{Key, Lock, TokenStore};
use crate::client::token::Tokens;
use crate::client::{Error, Secret};
use crate::{HttpClient, HttpError, NamedBy, Payload, Scopes};

/// No document or token is longer.
const LONGEST: usize = 256 * 1024;
/// How long one request may take, whatever the HTTP client thinks, and all the looking for metadata: others wait for it.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long it may take to tell an authorization server that tokens are not used any more. They are gone here already.
const REVOCATION: Duration = Duration::from_secs(5);

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
    /// What the store did not take.
    unsaved: Option<Box<Unsaved>>,
    nonce: Option<String>,
    /// How many flows have ended, and how the last one failed: those who waited for it fail likewise.
    ended: u64,
    failure: Option<Error>,
    refusals: Refusals,
}

/// What a server named the last time.
#[derive(Serialize, Deserialize)]
struct Binding {
    issuer: String,
    resource: String,
}

/// What a flow brought and no store has yet.
#[derive(Clone)]
struct Unsaved {
    outcome: Outcome,
    /// The tokens that these are in place of, if they are kept elsewhere.
    instead_of: Option<Key>,
}

/// The lock of tokens in the store. One at a time is held: who waits for one while having another may wait for ever.
struct Locked {
    key: Key,
    _lock: Lock,
}

/// Why other tokens are needed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// The server does not take the token. Refreshing it may help, unless that was tried.
    Another { may_refresh: bool },
    /// The server wants more scopes, which refreshing would not bring.
    MoreScopes,
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

    /// Forgets the tokens of this server, here and in the store, and then tells the authorization server that they are not used
    /// any more, if it wants to know: for a few seconds at most, and whatever comes of it. What the client is called there stays
    /// for the next login, and for other servers that have the same one.
    pub async fn sign_out(&self) -> Result<(), Error> {
        let turn = self.0.turn.lock().await;
        let revocations = self.forget_tokens().await?;
        drop(turn);
        self.revoke(revocations).await;
        Ok(())
    }

    /// Signs out, and forgets also who issues tokens for this server, and what the client is called there. True if it had
    /// registered. The next login registers it anew.
    ///
    /// Other servers with the same authorization server share that name: their tokens serve until they are over, and then the
    /// user is asked again. The authorization server is not told, since it lets few clients take themselves away.
    pub async fn forget(&self) -> Result<bool, Error> {
        let turn = self.0.turn.lock().await;
        let revocations = self.forget_tokens().await?;
        let (_, stored) = self.stored().await?;
        let held = self.held().issuer.take();
        let mut was_registered = false;
        for issuer in [stored.filter(|stored| held.as_ref() != Some(stored)), held].into_iter().flatten() {
            let key = Key::Client { issuer };
            was_registered |= self.0.store.load(&key).await?.is_some();
            self.0.store.remove(&key).await?;
        }
        self.0.store.remove(&self.server_key()).await?;
        drop(turn);
        self.revoke(revocations).await;
        Ok(was_registered)
    }

    /// What is left to do is to tell the authorization server.
    async fn forget_tokens(&self) -> Result<Vec<Request<Payload>>, Error> {
        self.load().await?;
        let tokens = {
            let mut held = self.held();
            held.unproven = false;
            held.unsaved = None;
            held.refusals.clear();
            held.tokens.take()
        };
        // Another process may have got some since.
        let (stored, _) = self.stored().await?;
        let (held, stored) = (tokens.as_deref().map(key), stored.as_ref().map(key));
        let mut revocations = Vec::new();
        for key in [stored.filter(|stored| held.as_ref() != Some(stored)), held].into_iter().flatten() {
            // Who is about to refresh them would bring them back.
            let locked = self.lock(key).await?;
            let last: Option<Tokens> = self.load_value(&locked.key).await?;
            self.0.store.remove(&locked.key).await?;
            let ours = tokens.as_deref().filter(|tokens| self::key(tokens) == locked.key);
            if let Some(last) = last.or_else(|| ours.cloned()) {
                // That nobody can be told is no reason to stay.
                revocations.extend(self.revocation(last).await.unwrap_or_default());
            }
        }
        Ok(revocations)
    }

    async fn revocation(&self, tokens: Tokens) -> Result<Vec<Request<Payload>>, Error> {
        let registration = self.load_value(&Key::Client { issuer: tokens.issuer.clone() }).await?;
        let flow = self.flow(Situation { tokens: Some(tokens), ..Situation::default() })?;
        Ok(flow.revocation(registration.as_ref(), SystemTime::now()))
    }

    /// Takes tokens back that nobody has any more.
    async fn revoke(&self, revocations: Vec<Request<Payload>>) {
        let each = async {
            for mut request in revocations {
                self.say_who_named(&mut request);
                match self.0.http.send(request, LONGEST).await {
                    Ok(answer) => tracing::debug!(status = answer.status().as_u16(), "asked to take a token back"),
                    Err(error) => tracing::debug!(%error, "nobody was there to take a token back"),
                }
            }
        };
        if tokio::time::timeout(REVOCATION, each).await.is_err() {
            tracing::debug!("nobody took the tokens back in time");
        }
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
        need: Need,
    ) -> Result<(), Error> {
        let before = self.held().ended;
        let turn = Arc::clone(&self.0.turn).lock_owned().await;
        self.load().await?;
        self.failed_since(before)?;
        if need == Need::MoreScopes {
            // The user may have granted them elsewhere, and what they granted there is not to be lost.
            self.catch_up().await?;
        }
        let question = {
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
            let question = wanted.filter(|_| need == Need::MoreScopes).cloned();
            question.map(|wanted| wanted.union(requested.cloned().unwrap_or_default()))
        };
        if let Some(answer) = question.as_ref().and_then(|question| self.answer_before(question)) {
            return Err(answer);
        }
        let may_refresh = need == Need::Another { may_refresh: true };
        let this = self.clone();
        let begun = async move { this.without_user(challenge, may_refresh).await };
        let (mut turn, mut progress) = apart(turn, begun).await?;
        let (mut visit, mut was_asked) = (None, false);
        let result = loop {
            let (mut flow, command) = match progress {
                Ok(Progress::NeedsUser(paused)) => *paused,
                Ok(Progress::Done) => break Ok(()),
                Err(error) => break Err(error),
            };
            was_asked |= matches!(command, Command::Visit(_));
            // With the user it is the caller's own time: dropping the caller closes the listener.
            let event = match self.ask(command, &mut visit).await {
                Ok(event) => event,
                Err(error) => {
                    flow.unanswered();
                    break self.discard(flow.forgotten()).await.and(Err(error));
                }
            };
            let command = flow.handle(event, SystemTime::now());
            let this = self.clone();
            (turn, progress) = apart(turn, async move { this.drive(flow, command, &mut None).await }).await?;
        };
        if let (Some(question), Err(error)) = (question, &result)
            && (was_asked || is_refusal(error))
        {
            self.held().refusals.note(question, error.clone(), Instant::now());
        }
        self.ended(result.as_ref().err(), turn);
        result
    }

    /// What came of asking for these scopes, if that was a short while ago and nobody has logged in since.
    fn answer_before(&self, question: &Scopes) -> Option<Error> {
        self.held().refusals.answer(question, Instant::now())
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
        let mut lock = None;
        if may_refresh {
            self.save(&mut None).await?;
            let (mut stored, _) = self.stored().await?;
            // Those in the store count: another process may have got or refreshed them since.
            let newest = stored.as_ref().or(old.as_deref());
            if let Some(newest) = newest.filter(|tokens| tokens.is_refreshable()) {
                lock = Some(self.lock(key(newest)).await?);
                (stored, _) = self.stored().await?;
            }
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
        self.drive(flow, first, &mut lock).await
    }

    /// New tokens for these, which are over, or those that somebody else got meanwhile.
    async fn refresh(&self, old: &Arc<Tokens>) -> Result<Option<Arc<Tokens>>, Error> {
        let key = key(old);
        self.save(&mut None).await?;
        let mut lock = Some(self.lock(key.clone()).await?);
        let Some(stored) = self.load_value::<Tokens>(&key).await? else {
            // Somebody signed out.
            self.held().tokens = None;
            return Ok(None);
        };
        if stored.access_token != old.access_token && !stored.is_over(SystemTime::now()) {
            return Ok(Some(self.adopt(Arc::new(stored), false)));
        }
        if !stored.is_refreshable() {
            // It was refused to somebody else.
            self.adopt(Arc::new(stored), false);
            return Ok(None);
        }
        let registration = self.load_value(&Key::Client { issuer: stored.issuer.clone() }).await?;
        let mut flow = self.flow(Situation { tokens: Some(stored.clone()), ..Situation::default() })?;
        let first = flow.begin_refresh(registration.as_ref(), SystemTime::now());
        match self.drive(flow, first, &mut lock).await {
            Ok(_) => Ok(self.held().tokens.clone()),
            Err(Error::TokenRefused(_)) => Ok(None),
            Err(Error::Store(error)) => Err(Error::Store(error)),
            // It is over soon, not yet.
            Err(_) if stored.expires_at.is_some_and(|end| crate::client::dpop::seconds(SystemTime::now()) < end) => {
                Ok(Some(self.adopt(Arc::new(stored), false)))
            }
            // They are another client's, or the endpoint is not there any more. They stay where they are, and the refusal of
            // the server will lead to others, or to where it is.
            Err(Error::NoClient { .. } | Error::Unavailable { status: 300..=399 | 404 | 405 | 410, .. }) => {
                self.held().tokens = None;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn flow(&self, situation: Situation) -> Result<Flow, Error> {
        let (profile, random) = (Arc::clone(&self.0.profile), Arc::clone(&self.0.random));
        Flow::new(profile, &self.0.server_text, situation, random)
    }

    /// Does what a flow says, up to its end or to the user.
    async fn drive(&self, mut flow: Flow, mut command: Command, lock: &mut Option<Locked>) -> Result<Progress, Error> {
        let begun = Instant::now();
        loop {
            // Its debug form has nothing secret.
            tracing::debug!(?command, "authorization");
            self.discard(flow.forgotten()).await?;
            let event = match command {
                Command::Send(mut request) => {
                    self.say_who_named(&mut request);
                    // Metadata may be in several places; all of them together get no more time than one would.
                    let is_search = request.method() == Method::GET;
                    let end = if is_search { begun } else { Instant::now() } + PATIENCE;
                    match tokio::time::timeout_at(end, self.0.http.send(request, LONGEST)).await {
                        Ok(Ok(response)) => Event::Response(response),
                        Ok(Err(error)) => Event::Unreachable(error),
                        Err(_) => Event::Unreachable(HttpError::new("no answer in time")),
                    }
                }
                Command::Recall { issuer } => Event::Recalled(self.load_value(&Key::Client { issuer }).await?),
                Command::PrepareRedirect { .. } | Command::Visit(_) => {
                    return Ok(Progress::NeedsUser(Box::new((flow, command))));
                }
                Command::Assert { issuer, resource } => {
                    let nobody = || Error::NoAssertion(String::from("nothing gives any"));
                    let source = self.0.assertions.as_ref().ok_or_else(nobody)?;
                    let assertion = tokio::time::timeout(PATIENCE, source.assertion(&issuer, &resource)).await;
                    let late = |_| Error::NoAssertion(String::from("none came in time"));
                    Event::Assertion(assertion.map_err(late)??)
                }
                Command::Authorized(outcome) => {
                    self.remember(*outcome, lock).await?;
                    return Ok(Progress::Done);
                }
                Command::Failed(error) => return Err(error),
            };
            command = flow.handle(event, SystemTime::now());
        }
    }

    /// Lets the HTTP client know that it is the server who sends us there, unless the program does.
    fn say_who_named(&self, request: &mut Request<Payload>) {
        let host = request.uri().host().unwrap_or_default();
        if let Some(server) = self.0.server.host_str().filter(|_| !self.0.profile.names(host)) {
            request.extensions_mut().insert(NamedBy::new(server));
        }
    }

    /// Does what needs the user.
    async fn ask(&self, command: Command, visit: &mut Option<Box<dyn Visit>>) -> Result<Event, Error> {
        match command {
            Command::PrepareRedirect { preferred } => {
                let nobody = || Error::NoUser(String::from("there is nobody to ask"));
                let user = self.0.user.as_ref().ok_or_else(nobody)?;
                let ready = visit.insert(user.prepare(preferred.as_deref()).await?);
                Ok(Event::RedirectReady(ready.redirect_uri().to_owned()))
            }
            Command::Visit(url) => {
                let visit = visit.take().ok_or(Error::Misuse("nobody is ready for the answer"))?;
                Ok(Event::Redirected(visit.visit(url).await?))
            }
            _ => Err(Error::Misuse("this needs no user")),
        }
    }

    /// Forgets what an authorization server does not know any more.
    async fn discard(&self, forgotten: Forgotten) -> Result<(), Error> {
        if let Some(tokens) = forgotten.refresh_token_of {
            self.spend(*tokens).await?;
        }
        if let Some((issuer, client)) = forgotten.client {
            let key = Key::Client { issuer };
            let known: Option<Registration> = self.load_value(&key).await?;
            if known.is_some_and(|known| known.client_id == client) {
                self.0.store.remove(&key).await?;
            }
        }
        Ok(())
    }

    /// The refresh token of these is worth nothing. What was asked for is: the user is asked for the same again.
    async fn spend(&self, tokens: Tokens) -> Result<(), Error> {
        let spent = Tokens { refresh_token: None, ..tokens };
        self.save_value(&key(&spent), &spent).await?;
        self.adopt(Arc::new(spent), false);
        Ok(())
    }

    /// Keeps what a flow brought. Here first, since a refresh token that was used up is worth nothing if its successor is lost.
    async fn remember(&self, outcome: Outcome, lock: &mut Option<Locked>) -> Result<(), Error> {
        let tokens = Arc::new(outcome.tokens.clone());
        let before = self.held().tokens.as_deref().map(key);
        let instead_of = before.filter(|before| *before != key(&tokens));
        self.adopt(tokens, !outcome.refreshed);
        if !outcome.refreshed {
            self.held().refusals.clear();
        }
        self.held().unsaved = Some(Box::new(Unsaved { outcome, instead_of }));
        self.save(lock).await
    }

    /// Puts into the store what it does not have yet, under the lock of the tokens: who refreshes them elsewhere would write over
    /// these, not knowing them.
    async fn save(&self, lock: &mut Option<Locked>) -> Result<(), Error> {
        let Some(unsaved) = self.held().unsaved.clone() else { return Ok(()) };
        let tokens = &unsaved.outcome.tokens;
        let key = key(tokens);
        if lock.as_ref().is_none_or(|locked| locked.key != key) {
            *lock = None;
            *lock = Some(self.lock(key.clone()).await?);
        }
        if let Some(better) = self.better_than(tokens, &key).await? {
            self.adopt(Arc::new(better), false);
            self.held().unsaved = None;
            return Ok(());
        }
        self.save_value(&key, tokens).await?;
        if let Some(registration) = &unsaved.outcome.registration {
            self.save_value(&Key::Client { issuer: tokens.issuer.clone() }, registration).await?;
        }
        let binding = Binding { issuer: tokens.issuer.clone(), resource: tokens.resource.clone() };
        self.save_value(&self.server_key(), &binding).await?;
        if let Some(before) = &unsaved.instead_of {
            // The server takes no more of these.
            self.0.store.remove(before).await?;
        }
        self.held().unsaved = None;
        Ok(())
    }

    /// The tokens in the store, if somebody else asked for all the scopes of these and for more, and we can refresh them too.
    async fn better_than(&self, tokens: &Tokens, key: &Key) -> Result<Option<Tokens>, Error> {
        let stored: Option<Tokens> = self.load_value(key).await?;
        let is_better = |stored: &Tokens| stored.asks_more_than(tokens) && !stored.is_over(SystemTime::now());
        let Some(stored) = stored.filter(is_better) else { return Ok(None) };
        let known: Option<Registration> = self.load_value(&Key::Client { issuer: stored.issuer.clone() }).await?;
        let is_known = known.is_some_and(|known| known.client_id == stored.client_id);
        Ok(Some(stored).filter(|stored| is_known || stored.client_id == tokens.client_id))
    }

    async fn lock(&self, key: Key) -> Result<Locked, Error> {
        let lock = self.0.store.lock(&key).await?;
        Ok(Locked { key, _lock: lock })
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

    /// Takes up the tokens in the store, if somebody else has put others there.
    async fn catch_up(&self) -> Result<(), Error> {
        self.save(&mut None).await?;
        let (Some(stored), _) = self.stored().await? else { return Ok(()) };
        let is_same = self.held().tokens.as_ref().is_some_and(|held| held.access_token == stored.access_token);
        if !is_same {
            self.adopt(Arc::new(stored), false);
        }
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

/// A part of a flow on a task of its own, for the same reason that a refresh is: a code too is used up when it was sent.
async fn apart<T: Send + 'static>(
    turn: OwnedMutexGuard<()>,
    part: impl Future<Output = T> + Send + 'static,
) -> Result<(OwnedMutexGuard<()>, T), Error> {
    let done = tokio::spawn(async move {
        let done = part.await;
        (turn, done)
    });
    done.await.map_err(|_| Error::Misuse("the runtime is shutting down"))
}

/// Whether an authorization server said no, and not only nothing.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Denied(_) | Error::TokenRefused(_) | Error::RegistrationRefused(_))
}

fn key(tokens: &Tokens) -> Key {
    Key::Tokens { issuer: tokens.issuer.clone(), resource: tokens.resource.clone() }
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Authorizer({})", shown(&self.0.server_text))
    }
}
