//! The OAuth steps that obtain a token, as a state machine without sockets, clock or browser.
//!
//! [`OAuthFlow::begin`] and each [`OAuthFlow::handle`] return an [`OAuthFlowCommand`]: what the driver has to do next. The
//! driver passes the result of a command to [`OAuthFlow::handle`] as an [`OAuthFlowCommandResult`]. The last command of an
//! OAuth flow is [`OAuthFlowCommand::Authorized`] or [`OAuthFlowCommand::Failed`].
//!
//! ```text
//!  begin
//!    |
//!  resource metadata ---- none: the server is its own authorization server (2025-03-26)
//!    |
//!  server metadata ------ none there either: default endpoints
//!    |
//!  load the registration
//!    |--- tokens that can be refreshed ---> token request --- refused --+
//!    |<-----------------------------------------------------------------+
//!    |--- client credentials --------------------------------------> token request
//!    |--- an assertion --- (exchange at the identity provider) ----> token request
//!    |
//!  redirect URI ---> register if necessary ---> visit ---> redirect ---> token request
//! ```
//!
//! An OAuth flow follows no redirect to another origin, and repeats no request, except with a DPoP nonce.

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
use super::authorize::{AuthorizationRequest, PendingAuthorization};
use super::challenge::AuthScheme;
use super::credentials::OAuthClientIdentity;
use super::discovery::{
    AuthorizationServerMetadata, ProtectedResourceMetadata, own_authorization_server, resource_metadata_urls,
    server_metadata_urls,
};
use super::dpop::{ClientDpopPolicy, DpopProofKey};
use super::profile::{Grant, OAuthClientSettings};
use super::random::RandomSource;
use super::registration::{self, ClientRegistration, RegistrationRequirements, known_client};
use super::scope::ScopeSources;
use super::url_policy::{UrlPolicy, redact_url};
use crate::{HttpClientBody, Scopes};
pub use command::{CredentialInvalidation, OAuthFlowCommand, OAuthFlowCommandResult, OAuthFlowStart, OAuthGrant};
use exchange::PendingTokenRequest;
use search::{MetadataSearch, document};

/// The state machine of the OAuth steps that obtain a token. See the [module docs](super) of the client for the driver that
/// executes the commands of an OAuth flow.
pub struct OAuthFlow {
    profile: Arc<OAuthClientSettings>,
    random: Arc<dyn RandomSource>,
    server: Url,
    server_text: String,
    url_policy: UrlPolicy,
    input: OAuthFlowStart,
    state: OAuthFlowState,
    invalidation: CredentialInvalidation,
}

/// The result of metadata discovery, and what follows from the metadata for the token request.
struct OAuthDiscovery {
    resource: ProtectedResourceMetadata,
    server: AuthorizationServerMetadata,
    scopes: Option<Scopes>,
    key: Option<DpopProofKey>,
    must_be_bound: bool,
}

enum OAuthFlowState {
    New,
    Resource { search: MetadataSearch, named: bool },
    Server { search: MetadataSearch, resource: ProtectedResourceMetadata, issuer: String, own: bool },
    LoadingRegistration(Box<OAuthDiscovery>),
    Redirecting { discovery: Box<OAuthDiscovery>, registration: Option<ClientRegistration> },
    Registering { discovery: Box<OAuthDiscovery>, redirect_uri: String },
    Visiting(Box<UserLoginVisit>),
    FetchingAssertion { discovery: Box<OAuthDiscovery>, client: OAuthClientIdentity },
    Exchanging(Box<PendingTokenRequest>),
    Done,
}

struct UserLoginVisit {
    discovery: Box<OAuthDiscovery>,
    pending: PendingAuthorization,
    client: OAuthClientIdentity,
    redirect_uri: String,
    registration: Option<ClientRegistration>,
}

type OAuthFlowStep = Result<OAuthFlowCommand, Error>;

impl OAuthFlow {
    /// Creates an OAuth flow for the MCP server at this URL.
    pub fn new(
        profile: Arc<OAuthClientSettings>,
        server: &str,
        input: OAuthFlowStart,
        random: Arc<dyn RandomSource>,
    ) -> Result<Self, Error> {
        let url = Url::parse(server).map_err(|_| Error::UnsafeUrl(redact_url(server)))?;
        let url_policy = UrlPolicy::for_server(&url)?;
        let server_text = server.to_owned();
        let invalidation = CredentialInvalidation::default();
        Ok(Self {
            profile,
            random,
            server: url,
            server_text,
            url_policy,
            input,
            state: OAuthFlowState::New,
            invalidation,
        })
    }

    /// Starts the flow.
    pub fn begin(&mut self) -> OAuthFlowCommand {
        let step = match std::mem::replace(&mut self.state, OAuthFlowState::Done) {
            OAuthFlowState::New => self.find_resource(),
            _ => Err(Error::Misuse("an OAuth flow can be started only once")),
        };
        step.unwrap_or_else(OAuthFlowCommand::Failed)
    }

    /// Starts an OAuth flow that only refreshes the tokens it was created with: no metadata discovery, no user.
    ///
    /// `registration` is the stored client registration at the issuer of the tokens.
    pub fn begin_refresh(&mut self, registration: Option<&ClientRegistration>, now: SystemTime) -> OAuthFlowCommand {
        let step = match std::mem::replace(&mut self.state, OAuthFlowState::Done) {
            OAuthFlowState::New => self.refresh_only(registration, now),
            _ => Err(Error::Misuse("an OAuth flow can be started only once")),
        };
        step.unwrap_or_else(OAuthFlowCommand::Failed)
    }

    /// Takes the result of the last command and returns the next command of the OAuth flow.
    pub fn handle(&mut self, event: OAuthFlowCommandResult, now: SystemTime) -> OAuthFlowCommand {
        let state = std::mem::replace(&mut self.state, OAuthFlowState::Done);
        self.advance(state, event, now).unwrap_or_else(OAuthFlowCommand::Failed)
    }

    /// Takes the stored credentials that the last command result showed to be invalid. The caller must remove invalid
    /// credentials from the token store, however the OAuth flow ends.
    pub fn take_invalidation(&mut self) -> CredentialInvalidation {
        std::mem::take(&mut self.invalidation)
    }

    /// Tells the OAuth flow that the redirect of the user did not arrive. An authorization server that does not know a client
    /// does not redirect the user, so the stored client registration is treated as invalid.
    pub fn visit_failed(&mut self) {
        if let OAuthFlowState::Visiting(visit) = &self.state
            && visit.registration.is_some()
        {
            self.invalidation.client = Some((visit.discovery.server.issuer.clone(), visit.client.id.clone()));
        }
    }

    fn advance(&mut self, state: OAuthFlowState, event: OAuthFlowCommandResult, now: SystemTime) -> OAuthFlowStep {
        match (state, event) {
            (OAuthFlowState::Resource { search, named }, OAuthFlowCommandResult::Response(response)) => {
                self.handle_resource_metadata(search, named, &response)
            }
            (OAuthFlowState::Server { search, resource, issuer, own }, OAuthFlowCommandResult::Response(response)) => {
                self.handle_server_metadata(search, resource, issuer, own, &response)
            }
            (
                OAuthFlowState::LoadingRegistration(discovery),
                OAuthFlowCommandResult::RegistrationLoaded(registration),
            ) => self.registration_loaded(discovery, registration, now),
            (OAuthFlowState::Redirecting { discovery, registration }, OAuthFlowCommandResult::RedirectReady(uri)) => {
                self.redirect_ready(discovery, registration, uri, now)
            }
            (OAuthFlowState::Registering { discovery, redirect_uri }, OAuthFlowCommandResult::Response(response)) => {
                let parameters =
                    RegistrationRequirements { redirect_uri: &redirect_uri, scopes: discovery.scopes.as_ref() };
                let registration = registration::read(&response, &discovery.server, &parameters)?;
                let client = registration.client();
                self.visit(discovery, client, redirect_uri, Some(registration))
            }
            (OAuthFlowState::Visiting(visit), OAuthFlowCommandResult::Redirected(query)) => {
                self.redirected(*visit, &query, now)
            }
            (OAuthFlowState::FetchingAssertion { discovery, client }, OAuthFlowCommandResult::Assertion(assertion)) => {
                self.handle_assertion(discovery, client, &assertion, now)
            }
            (OAuthFlowState::Exchanging(exchange), OAuthFlowCommandResult::Response(response)) => {
                self.handle_token_response(*exchange, &response, now)
            }
            (state, OAuthFlowCommandResult::Unreachable(cause)) => {
                Err(Error::Unreachable { what: state.what(), cause })
            }
            _ => Err(Error::Misuse("the OAuth flow got the result of a command that it did not issue")),
        }
    }

    fn find_resource(&mut self) -> OAuthFlowStep {
        let named = self.input.challenge.as_ref().and_then(|challenge| challenge.resource_metadata.as_deref());
        let urls = resource_metadata_urls(&self.server, named, self.url_policy)?;
        let named = named.is_some();
        let (search, command) =
            MetadataSearch::begin("protected resource metadata", urls).ok_or(Error::NoResourceMetadata)??;
        self.state = OAuthFlowState::Resource { search, named };
        Ok(command)
    }

    fn handle_resource_metadata(
        &mut self,
        mut search: MetadataSearch,
        named: bool,
        response: &Response<HttpClientBody>,
    ) -> OAuthFlowStep {
        if let Some(document) = document(response)
            && let Some(resource) = ProtectedResourceMetadata::read(document, &self.server)?
        {
            let registered = self.profile.registered.as_ref().and_then(|registered| registered.issuer.as_deref());
            let known = [registered, self.input.issuer.as_deref()].into_iter().flatten();
            let issuer = resource.choose(known).ok_or(Error::NoResourceMetadata)?.to_owned();
            let urls = server_metadata_urls(&issuer, self.url_policy)?;
            return self.find_server(resource, issuer, urls, false);
        }
        if let Some(command) = search.next_request(response)? {
            self.state = OAuthFlowState::Resource { search, named };
            return Ok(command);
        }
        if named || !self.profile.legacy_discovery {
            return Err(Error::NoResourceMetadata);
        }
        let (issuer, urls) = own_authorization_server(&self.server);
        let resource = ProtectedResourceMetadata::without_metadata(&self.server, &self.server_text, issuer.clone());
        self.find_server(resource, issuer, urls, true)
    }

    fn find_server(
        &mut self,
        resource: ProtectedResourceMetadata,
        issuer: String,
        urls: VecDeque<Url>,
        own: bool,
    ) -> OAuthFlowStep {
        let begun = MetadataSearch::begin("authorization server metadata", urls);
        let (search, command) = begun.ok_or_else(|| Error::NoServerMetadata { issuer: redact_url(&issuer) })??;
        self.state = OAuthFlowState::Server { search, resource, issuer, own };
        Ok(command)
    }

    fn handle_server_metadata(
        &mut self,
        mut search: MetadataSearch,
        resource: ProtectedResourceMetadata,
        issuer: String,
        own: bool,
        response: &Response<HttpClientBody>,
    ) -> OAuthFlowStep {
        if let Some(document) = document(response)
            && let Some(server) = AuthorizationServerMetadata::read(document, &issuer, self.url_policy)?
        {
            return self.finish_discovery(resource, server);
        }
        if let Some(command) = search.next_request(response)? {
            self.state = OAuthFlowState::Server { search, resource, issuer, own };
            return Ok(command);
        }
        if own {
            let server = AuthorizationServerMetadata::with_default_endpoints(&self.server, issuer);
            return self.finish_discovery(resource, server);
        }
        Err(Error::NoServerMetadata { issuer: redact_url(&issuer) })
    }

    fn finish_discovery(
        &mut self,
        resource: ProtectedResourceMetadata,
        server: AuthorizationServerMetadata,
    ) -> OAuthFlowStep {
        let before = self.input.tokens.as_ref().filter(|tokens| tokens.issuer == server.issuer);
        let challenge = self.input.challenge.as_ref();
        let by_user = matches!(self.profile.grant, Grant::AuthorizationCode);
        let known = ScopeSources {
            challenged: challenge.and_then(|challenge| challenge.scope.as_ref()),
            resource: resource.scopes.as_ref(),
            before: before.and_then(|tokens| tokens.requested.as_ref()),
            wanted: self.profile.scopes.as_ref(),
            offline: by_user && self.profile.offline_access && server.has_offline_access,
        };
        let required =
            resource.dpop_required || challenge.is_some_and(|challenge| challenge.scheme == AuthScheme::Dpop);
        let bound = match self.profile.dpop {
            ClientDpopPolicy::Never => false,
            ClientDpopPolicy::WhenRequired => required,
            ClientDpopPolicy::WhenOffered => required || server.has_dpop,
            ClientDpopPolicy::Always => true,
        };
        let must_be_bound = bound && (required || self.profile.dpop == ClientDpopPolicy::Always);
        let key = match before.and_then(|tokens| tokens.key.as_ref()) {
            _ if !bound => None,
            Some(key) => Some(DpopProofKey::import(key)?),
            None => Some(DpopProofKey::draw(&*self.random)?),
        };
        let issuer = server.issuer.clone();
        let scopes = known.choose();
        self.state = OAuthFlowState::LoadingRegistration(Box::new(OAuthDiscovery {
            resource,
            server,
            scopes,
            key,
            must_be_bound,
        }));
        Ok(OAuthFlowCommand::LoadRegistration { issuer })
    }

    fn registration_loaded(
        &mut self,
        discovery: Box<OAuthDiscovery>,
        registration: Option<ClientRegistration>,
        now: SystemTime,
    ) -> OAuthFlowStep {
        let tokens = self.input.tokens.clone().filter(|tokens| {
            let same = tokens.issuer == discovery.server.issuer && tokens.resource == discovery.resource.resource;
            same && self.input.may_refresh && tokens.is_refreshable()
        });
        if let Some(tokens) = tokens
            && let Some(client) = self.client_of(&tokens, registration.as_ref())
        {
            let exchange = PendingTokenRequest::refresh(&tokens, client, discovery.server.token_endpoint.clone())?;
            return self.exchange(exchange.or_else_request(discovery, registration), now);
        }
        self.request_tokens(discovery, registration, now)
    }

    /// Requests new tokens, since the client has no tokens that can be refreshed.
    fn request_tokens(
        &mut self,
        discovery: Box<OAuthDiscovery>,
        registration: Option<ClientRegistration>,
        now: SystemTime,
    ) -> OAuthFlowStep {
        let known = known_client(&self.profile, &discovery.server, self.input.issuer.as_deref())?;
        if matches!(self.profile.grant, Grant::AuthorizationCode) {
            // Before the user is asked.
            if !discovery.server.has_pkce {
                return Err(Error::NoPkce);
            }
            let preferred = registration.as_ref().filter(|_| known.is_none()).map(|known| known.redirect_uri.clone());
            self.state = OAuthFlowState::Redirecting { discovery, registration };
            return Ok(OAuthFlowCommand::PrepareRedirect { preferred });
        }
        let client = known.ok_or_else(|| Error::NoClient { issuer: redact_url(&discovery.server.issuer) })?;
        if matches!(self.profile.grant, Grant::ClientCredentials) {
            return self.exchange(PendingTokenRequest::client_credentials(&discovery, client), now);
        }
        let command = OAuthFlowCommand::FetchAssertion {
            issuer: discovery.server.issuer.clone(),
            resource: discovery.resource.resource.clone(),
        };
        self.state = OAuthFlowState::FetchingAssertion { discovery, client };
        Ok(command)
    }

    fn redirect_ready(
        &mut self,
        discovery: Box<OAuthDiscovery>,
        registration: Option<ClientRegistration>,
        redirect_uri: String,
        now: SystemTime,
    ) -> OAuthFlowStep {
        if let Some(client) = known_client(&self.profile, &discovery.server, self.input.issuer.as_deref())? {
            return self.visit(discovery, client, redirect_uri, None);
        }
        let parameters = RegistrationRequirements { redirect_uri: &redirect_uri, scopes: discovery.scopes.as_ref() };
        if let Some(registration) = registration.filter(|known| known.is_usable(&parameters, now)) {
            let client = registration.client();
            return self.visit(discovery, client, redirect_uri, Some(registration));
        }
        let request = registration::request(&self.profile, &discovery.server, &parameters, discovery.must_be_bound)?;
        self.state = OAuthFlowState::Registering { discovery, redirect_uri };
        Ok(OAuthFlowCommand::Send(request))
    }

    fn visit(
        &mut self,
        discovery: Box<OAuthDiscovery>,
        client: OAuthClientIdentity,
        redirect_uri: String,
        registration: Option<ClientRegistration>,
    ) -> OAuthFlowStep {
        let request = AuthorizationRequest {
            client_id: &client.id,
            redirect_uri: &redirect_uri,
            resource: &discovery.resource.resource,
            scopes: discovery.scopes.as_ref(),
            key: discovery.key.as_ref().map(DpopProofKey::thumbprint),
        };
        let (url, pending) = PendingAuthorization::new(&request, &discovery.server, &*self.random)?;
        self.state = OAuthFlowState::Visiting(Box::new(UserLoginVisit {
            discovery,
            pending,
            client,
            redirect_uri,
            registration,
        }));
        Ok(OAuthFlowCommand::Visit(url))
    }

    fn redirected(&mut self, visit: UserLoginVisit, query: &str, now: SystemTime) -> OAuthFlowStep {
        let is_unknown = |code: &str| matches!(code, "invalid_client" | "unauthorized_client");
        let code = visit.pending.validate(query).inspect_err(|error| {
            if matches!(error, Error::Denied(refusal) if is_unknown(&refusal.code)) {
                self.invalidation.client = Some((visit.discovery.server.issuer.clone(), visit.client.id.clone()));
            }
        })?;
        let exchange = PendingTokenRequest::code(&visit.discovery, visit.client, code, &visit.redirect_uri);
        self.exchange(exchange.with_registration(visit.registration), now)
    }
}

impl OAuthFlowState {
    /// What the OAuth flow requests in this state, for error messages.
    fn what(&self) -> &'static str {
        match self {
            Self::Resource { search, .. } | Self::Server { search, .. } => search.what,
            Self::Registering { .. } => registration::WHAT,
            _ => super::token::WHAT,
        }
    }
}

impl fmt::Debug for OAuthFlow {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "OAuthFlow({:?}, {})", redact_url(&self.server_text), self.state.what())
    }
}
