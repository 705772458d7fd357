//! The steps to a token, as a machine without sockets, clock or browser.
//!
//! [`Flow::begin`] and each [`Flow::handle`] give back the one thing to do next, a [`Command`]; when it is done, what came of it
//! goes back in as an [`Event`]. The last command is [`Command::Authorized`] or [`Command::Failed`].
//!
//! ```text
//!  begin
//!    |
//!  resource metadata ---- none: the server is its own authorization server (2025-03-26)
//!    |
//!  server metadata ------ none there either: default endpoints
//!    |
//!  recall the client
//!    |--- tokens that can be refreshed ---> token request --- refused --+
//!    |<-----------------------------------------------------------------+
//!    |--- the client for itself -----------------------------------> token request
//!    |--- an assertion --- (exchange at the identity provider) ----> token request
//!    |
//!  where answers go ---> register if need be ---> visit ---> redirect ---> token request
//! ```
//!
//! Nothing here follows a redirect to another origin, and nothing is asked twice, but for a nonce.

mod command;
mod exchange;
mod revocation;
mod search;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use http::Response;
use url::Url;

use super::Error;
use super::authorize::{Pending, Question};
use super::challenge::Scheme;
use super::credentials::Client;
use super::discovery::{
    AuthorizationServer, ProtectedResource, own_authorization_server, resource_metadata_urls, server_metadata_urls,
};
use super::dpop::{Dpop, ProofKey};
use super::profile::{Grant, Profile};
use super::random::Randomness;
use super::reach::{Reach, shown};
use super::registration::{self, Registration, Wanted, known_client};
use super::scope::Known;
use crate::{Payload, Scopes};
pub use command::{Command, Event, Forgotten, Outcome, Situation};
use exchange::Exchange;
use search::{Search, document};

/// One way to a token.
pub struct Flow {
    profile: Arc<Profile>,
    random: Arc<dyn Randomness>,
    server: Url,
    server_text: String,
    reach: Reach,
    situation: Situation,
    state: State,
    forgotten: Forgotten,
}

/// What discovery brought.
struct Found {
    resource: ProtectedResource,
    server: AuthorizationServer,
    scopes: Option<Scopes>,
    key: Option<ProofKey>,
    must_be_bound: bool,
}

enum State {
    New,
    Resource { search: Search, named: bool },
    Server { search: Search, resource: ProtectedResource, issuer: String, own: bool },
    Recalling(Box<Found>),
    Redirecting { found: Box<Found>, registration: Option<Registration> },
    Registering { found: Box<Found>, redirect_uri: String },
    Visiting(Box<Visit>),
    Asserting { found: Box<Found>, client: Client },
    Exchanging(Box<Exchange>),
    Done,
}

struct Visit {
    found: Box<Found>,
    pending: Pending,
    client: Client,
    redirect_uri: String,
    registration: Option<Registration>,
}

type Step = Result<Command, Error>;

impl Flow {
    /// The way to a token for the server at this URL.
    pub fn new(
        profile: Arc<Profile>,
        server: &str,
        situation: Situation,
        random: Arc<dyn Randomness>,
    ) -> Result<Self, Error> {
        let url = Url::parse(server).map_err(|_| Error::UnsafeUrl(shown(server)))?;
        let reach = Reach::of(&url)?;
        let server_text = server.to_owned();
        let forgotten = Forgotten::default();
        Ok(Self { profile, random, server: url, server_text, reach, situation, state: State::New, forgotten })
    }

    /// The first thing to do.
    pub fn begin(&mut self) -> Command {
        let step = match std::mem::replace(&mut self.state, State::Done) {
            State::New => self.find_resource(),
            _ => Err(Error::Misuse("a flow begins once")),
        };
        step.unwrap_or_else(Command::Failed)
    }

    /// The first thing to do when tokens are over and only refreshing them is wanted: no discovery, no user.
    ///
    /// `registration` is what the store has for the issuer of the tokens.
    pub fn begin_refresh(&mut self, registration: Option<&Registration>, now: SystemTime) -> Command {
        let step = match std::mem::replace(&mut self.state, State::Done) {
            State::New => self.refresh_only(registration, now),
            _ => Err(Error::Misuse("a flow begins once")),
        };
        step.unwrap_or_else(Command::Failed)
    }

    /// Takes what came of the last command, and gives the next.
    pub fn handle(&mut self, event: Event, now: SystemTime) -> Command {
        let state = std::mem::replace(&mut self.state, State::Done);
        self.advance(state, event, now).unwrap_or_else(Command::Failed)
    }

    /// What the last event showed to be worth nothing any more. It must not be tried again, whatever becomes of the flow.
    pub fn forgotten(&mut self) -> Forgotten {
        std::mem::take(&mut self.forgotten)
    }

    /// The user did not come back. An authorization server that does not know a client sends nobody back, so a registration
    /// that was used once more and brought nothing is not used again.
    pub fn unanswered(&mut self) {
        if let State::Visiting(visit) = &self.state
            && visit.registration.is_some()
        {
            self.forgotten.client = Some((visit.found.server.issuer.clone(), visit.client.id.clone()));
        }
    }

    fn advance(&mut self, state: State, event: Event, now: SystemTime) -> Step {
        match (state, event) {
            (State::Resource { search, named }, Event::Response(response)) => {
                self.resource_answered(search, named, &response)
            }
            (State::Server { search, resource, issuer, own }, Event::Response(response)) => {
                self.server_answered(search, resource, issuer, own, &response)
            }
            (State::Recalling(found), Event::Recalled(registration)) => self.recalled(found, registration, now),
            (State::Redirecting { found, registration }, Event::RedirectReady(uri)) => {
                self.redirect_ready(found, registration, uri, now)
            }
            (State::Registering { found, redirect_uri }, Event::Response(response)) => {
                let wanted = Wanted { redirect_uri: &redirect_uri, scopes: found.scopes.as_ref() };
                let registration = registration::read(&response, &found.server, &wanted)?;
                let client = registration.client();
                self.visit(found, client, redirect_uri, Some(registration))
            }
            (State::Visiting(visit), Event::Redirected(query)) => self.redirected(*visit, &query, now),
            (State::Asserting { found, client }, Event::Assertion(assertion)) => {
                self.asserted(found, client, &assertion, now)
            }
            (State::Exchanging(exchange), Event::Response(response)) => self.exchanged(*exchange, &response, now),
            (state, Event::Unreachable(cause)) => Err(Error::Unreachable { what: state.what(), cause }),
            _ => Err(Error::Misuse("the flow was told something that it did not wait for")),
        }
    }

    fn find_resource(&mut self) -> Step {
        let named = self.situation.challenge.as_ref().and_then(|challenge| challenge.resource_metadata.as_deref());
        let urls = resource_metadata_urls(&self.server, named, self.reach)?;
        let named = named.is_some();
        let (search, command) =
            Search::begin("protected resource metadata", urls).ok_or(Error::NoResourceMetadata)??;
        self.state = State::Resource { search, named };
        Ok(command)
    }

    fn resource_answered(&mut self, mut search: Search, named: bool, response: &Response<Payload>) -> Step {
        if let Some(document) = document(response)
            && let Some(resource) = ProtectedResource::read(document, &self.server)?
        {
            let registered = self.profile.registered.as_ref().and_then(|registered| registered.issuer.as_deref());
            let known = [registered, self.situation.issuer.as_deref()].into_iter().flatten();
            let issuer = resource.choose(known).ok_or(Error::NoResourceMetadata)?.to_owned();
            let urls = server_metadata_urls(&issuer, self.reach)?;
            return self.find_server(resource, issuer, urls, false);
        }
        if let Some(command) = search.go_on(response)? {
            self.state = State::Resource { search, named };
            return Ok(command);
        }
        if named || !self.profile.before_metadata {
            return Err(Error::NoResourceMetadata);
        }
        let (issuer, urls) = own_authorization_server(&self.server);
        let resource = ProtectedResource::unnamed(&self.server, &self.server_text, issuer.clone());
        self.find_server(resource, issuer, urls, true)
    }

    fn find_server(&mut self, resource: ProtectedResource, issuer: String, urls: VecDeque<Url>, own: bool) -> Step {
        let begun = Search::begin("authorization server metadata", urls);
        let (search, command) = begun.ok_or_else(|| Error::NoServerMetadata { issuer: shown(&issuer) })??;
        self.state = State::Server { search, resource, issuer, own };
        Ok(command)
    }

    fn server_answered(
        &mut self,
        mut search: Search,
        resource: ProtectedResource,
        issuer: String,
        own: bool,
        response: &Response<Payload>,
    ) -> Step {
        if let Some(document) = document(response)
            && let Some(server) = AuthorizationServer::read(document, &issuer, self.reach)?
        {
            return self.found(resource, server);
        }
        if let Some(command) = search.go_on(response)? {
            self.state = State::Server { search, resource, issuer, own };
            return Ok(command);
        }
        if own {
            let server = AuthorizationServer::unpublished(&self.server, issuer);
            return self.found(resource, server);
        }
        Err(Error::NoServerMetadata { issuer: shown(&issuer) })
    }

    fn found(&mut self, resource: ProtectedResource, server: AuthorizationServer) -> Step {
        let before = self.situation.tokens.as_ref().filter(|tokens| tokens.issuer == server.issuer);
        let challenge = self.situation.challenge.as_ref();
        let by_user = matches!(self.profile.grant, Grant::AuthorizationCode);
        let known = Known {
            challenged: challenge.and_then(|challenge| challenge.scope.as_ref()),
            resource: resource.scopes.as_ref(),
            before: before.and_then(|tokens| tokens.requested.as_ref()),
            wanted: self.profile.scopes.as_ref(),
            offline: by_user && self.profile.offline_access && server.has_offline_access,
        };
        let required = resource.dpop_required || challenge.is_some_and(|challenge| challenge.scheme == Scheme::Dpop);
        let bound = match self.profile.dpop {
            Dpop::Never => false,
            Dpop::WhenRequired => required,
            Dpop::WhenOffered => required || server.has_dpop,
            Dpop::Always => true,
        };
        let must_be_bound = bound && (required || self.profile.dpop == Dpop::Always);
        let key = match before.and_then(|tokens| tokens.key.as_ref()) {
            _ if !bound => None,
            Some(key) => Some(ProofKey::import(key)?),
            None => Some(ProofKey::draw(&*self.random)?),
        };
        let issuer = server.issuer.clone();
        let scopes = known.choose();
        self.state = State::Recalling(Box::new(Found { resource, server, scopes, key, must_be_bound }));
        Ok(Command::Recall { issuer })
    }

    fn recalled(&mut self, found: Box<Found>, registration: Option<Registration>, now: SystemTime) -> Step {
        let tokens = self.situation.tokens.clone().filter(|tokens| {
            let same = tokens.issuer == found.server.issuer && tokens.resource == found.resource.resource;
            same && self.situation.may_refresh && tokens.is_refreshable()
        });
        if let Some(tokens) = tokens
            && let Some(client) = self.client_of(&tokens, registration.as_ref())
        {
            let exchange = Exchange::refresh(&tokens, client, found.server.token_endpoint.clone())?;
            return self.exchange(exchange.instead_of(found, registration), now);
        }
        self.ask(found, registration, now)
    }

    /// What comes when there is nothing to refresh.
    fn ask(&mut self, found: Box<Found>, registration: Option<Registration>, now: SystemTime) -> Step {
        let known = known_client(&self.profile, &found.server, self.situation.issuer.as_deref())?;
        if matches!(self.profile.grant, Grant::AuthorizationCode) {
            // Before anybody is bothered.
            if !found.server.has_pkce {
                return Err(Error::NoPkce);
            }
            let preferred = registration.as_ref().filter(|_| known.is_none()).map(|known| known.redirect_uri.clone());
            self.state = State::Redirecting { found, registration };
            return Ok(Command::PrepareRedirect { preferred });
        }
        let client = known.ok_or_else(|| Error::NoClient { issuer: shown(&found.server.issuer) })?;
        if matches!(self.profile.grant, Grant::ClientCredentials) {
            return self.exchange(Exchange::client_credentials(&found, client), now);
        }
        let command =
            Command::Assert { issuer: found.server.issuer.clone(), resource: found.resource.resource.clone() };
        self.state = State::Asserting { found, client };
        Ok(command)
    }

    fn redirect_ready(
        &mut self,
        found: Box<Found>,
        registration: Option<Registration>,
        redirect_uri: String,
        now: SystemTime,
    ) -> Step {
        if let Some(client) = known_client(&self.profile, &found.server, self.situation.issuer.as_deref())? {
            return self.visit(found, client, redirect_uri, None);
        }
        let wanted = Wanted { redirect_uri: &redirect_uri, scopes: found.scopes.as_ref() };
        if let Some(registration) = registration.filter(|known| known.is_usable(&wanted, now)) {
            let client = registration.client();
            return self.visit(found, client, redirect_uri, Some(registration));
        }
        let request = registration::request(&self.profile, &found.server, &wanted, found.must_be_bound)?;
        self.state = State::Registering { found, redirect_uri };
        Ok(Command::Send(request))
    }

    fn visit(
        &mut self,
        found: Box<Found>,
        client: Client,
        redirect_uri: String,
        registration: Option<Registration>,
    ) -> Step {
        let question = Question {
            client_id: &client.id,
            redirect_uri: &redirect_uri,
            resource: &found.resource.resource,
            scopes: found.scopes.as_ref(),
            key: found.key.as_ref().map(ProofKey::thumbprint),
        };
        let (url, pending) = Pending::ask(&question, &found.server, &*self.random)?;
        self.state = State::Visiting(Box::new(Visit { found, pending, client, redirect_uri, registration }));
        Ok(Command::Visit(url))
    }

    fn redirected(&mut self, visit: Visit, query: &str, now: SystemTime) -> Step {
        let is_unknown = |code: &str| matches!(code, "invalid_client" | "unauthorized_client");
        let code = visit.pending.answer(query).inspect_err(|error| {
            if matches!(error, Error::Denied(refusal) if is_unknown(&refusal.code)) {
                self.forgotten.client = Some((visit.found.server.issuer.clone(), visit.client.id.clone()));
            }
        })?;
        let exchange = Exchange::code(&visit.found, visit.client, code, &visit.redirect_uri);
        self.exchange(exchange.registered(visit.registration), now)
    }
}

impl State {
    /// What is being asked for, for an error.
    fn what(&self) -> &'static str {
        match self {
            Self::Resource { search, .. } | Self::Server { search, .. } => search.what,
            Self::Registering { .. } => registration::WHAT,
            _ => super::token::WHAT,
        }
    }
}

impl fmt::Debug for Flow {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Flow({:?}, {})", shown(&self.server_text), self.state.what())
    }
}
