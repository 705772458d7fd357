//! The last step of a flow: what goes to a token endpoint, for each grant, and what is made of the answer.

use std::time::SystemTime;

use http::Response;
use url::Url;

use super::super::authorize::Code;
use super::super::credentials::{Client, Credential, Method};
use super::super::dpop::{ProofKey, seconds};
use super::super::profile::{Grant, IdentityProvider};
use super::super::reach::shown;
use super::super::registration::Registration;
use super::super::token::{Answer, Granted, TokenCall, Tokens};
use super::super::{Error, Secret};
use super::{Command, Flow, Found, Outcome, State, Step};
use crate::{Payload, Scopes};

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// A token request under way, and what the tokens will be.
pub(super) struct Exchange {
    call: TokenCall,
    revocation_endpoint: Option<String>,
    resource: String,
    requested: Option<Scopes>,
    must_be_bound: bool,
    registration: Option<Registration>,
    purpose: Purpose,
}

enum Purpose {
    /// The tokens that were asked for.
    Tokens,
    /// New ones in place of these.
    Refresh { old: Box<Tokens>, otherwise: Option<(Box<Found>, Option<Registration>)> },
    /// An assertion for the authorization server, from the identity provider.
    Assertion { found: Box<Found>, client: Client },
}

impl Exchange {
    fn new(found: &Found, client: Client, parameters: Vec<(&'static str, Secret)>) -> Self {
        Self {
            call: TokenCall {
                endpoint: found.server.token_endpoint.clone(),
                issuer: found.server.issuer.clone(),
                client,
                parameters,
                key: found.key.clone(),
                nonce: None,
                sent: Vec::new(),
            },
            revocation_endpoint: found.server.revocation_endpoint.clone().map(String::from),
            resource: found.resource.resource.clone(),
            requested: found.scopes.clone(),
            must_be_bound: found.must_be_bound,
            registration: None,
            purpose: Purpose::Tokens,
        }
    }

    /// A code for tokens.
    pub(super) fn code(found: &Found, client: Client, code: Code, redirect_uri: &str) -> Self {
        let parameters = vec![
            ("grant_type", Secret::new("authorization_code")),
            ("code", code.code),
            ("redirect_uri", Secret::new(redirect_uri)),
            ("code_verifier", code.verifier),
            ("resource", Secret::new(found.resource.resource.as_str())),
        ];
        Self::new(found, client, parameters)
    }

    /// The client for itself.
    pub(super) fn client_credentials(found: &Found, client: Client) -> Self {
        Self::new(found, client, with_scope(found, vec![("grant_type", Secret::new("client_credentials"))]))
    }

    /// An assertion for tokens.
    fn jwt_bearer(found: &Found, client: Client, assertion: Secret) -> Self {
        let parameters = vec![("grant_type", Secret::new(JWT_BEARER)), ("assertion", assertion)];
        Self::new(found, client, with_scope(found, parameters))
    }

    /// A user's identity for an assertion.
    fn identity(found: Box<Found>, client: Client, provider: &IdentityProvider, subject: &Secret) -> Self {
        let parameters = vec![
            ("grant_type", Secret::new(TOKEN_EXCHANGE)),
            ("requested_token_type", Secret::new(ID_JAG)),
            ("audience", Secret::new(found.server.issuer.as_str())),
            ("subject_token", subject.clone()),
            ("subject_token_type", Secret::new(provider.subject_token_type.as_str())),
        ];
        let method = match provider.credential {
            Credential::Secret(_) => Method::ClientSecretPost,
            _ => Method::choose(&provider.credential, None),
        };
        let at_provider = Client { id: provider.client_id.clone(), credential: provider.credential.clone(), method };
        let mut exchange = Self::new(&found, at_provider, with_scope(&found, parameters));
        exchange.call.endpoint = provider.token_endpoint.clone();
        exchange.call.issuer.clone_from(&provider.issuer);
        exchange.call.key = None;
        exchange.purpose = Purpose::Assertion { found, client };
        exchange
    }

    /// Old tokens for new ones.
    pub(super) fn refresh(tokens: &Tokens, client: Client, endpoint: Url) -> Result<Self, Error> {
        let token = tokens.refresh_token.clone().ok_or(Error::Misuse("there is nothing to refresh"))?;
        let parameters = vec![
            ("grant_type", Secret::new("refresh_token")),
            ("refresh_token", token),
            ("resource", Secret::new(tokens.resource.as_str())),
        ];
        let key = tokens.key.as_ref().map(ProofKey::import).transpose()?;
        let must_be_bound = key.is_some();
        Ok(Self {
            call: TokenCall {
                endpoint,
                issuer: tokens.issuer.clone(),
                client,
                parameters,
                key,
                nonce: None,
                sent: Vec::new(),
            },
            revocation_endpoint: tokens.revocation_endpoint.clone(),
            resource: tokens.resource.clone(),
            requested: tokens.requested.clone(),
            must_be_bound,
            registration: None,
            purpose: Purpose::Refresh { old: Box::new(tokens.clone()), otherwise: None },
        })
    }

    /// What to do when the tokens cannot be refreshed any more.
    pub(super) fn instead_of(mut self, found: Box<Found>, registration: Option<Registration>) -> Self {
        if let Purpose::Refresh { otherwise, .. } = &mut self.purpose {
            *otherwise = Some((found, registration));
        }
        self
    }

    /// What the client is called, if that has to be remembered.
    pub(super) fn registered(mut self, registration: Option<Registration>) -> Self {
        self.registration = registration;
        self
    }

    /// The tokens, from the answer.
    fn finish(self, granted: Granted, now: SystemTime) -> Result<Outcome, Error> {
        let scheme = granted.scheme(self.call.key.as_ref(), self.must_be_bound)?;
        let old = match self.purpose {
            Purpose::Refresh { old, .. } => Some(old),
            _ => None,
        };
        let refreshed = old.is_some();
        let issued_at = seconds(now);
        let bound = self.call.key.filter(|_| scheme == super::Scheme::Dpop);
        let written = granted.scope.map(|text| Scopes::lenient(text.split(' ')));
        // A server that does not rotate leaves the old one in force.
        let refresh_token = granted.refresh_token.or_else(|| old.as_ref().and_then(|old| old.refresh_token.clone()));
        // Tokens that are over when they come, and stay so, would never be sent: then the server is left to judge.
        let lifetime = granted.expires_in.filter(|lifetime| *lifetime > 0 || refresh_token.is_some());
        let tokens = Tokens {
            issuer: self.call.issuer,
            resource: self.resource,
            token_endpoint: self.call.endpoint.into(),
            revocation_endpoint: self.revocation_endpoint,
            client_id: self.call.client.id,
            method: self.call.client.method,
            access_token: granted.access_token,
            scheme,
            refresh_token,
            issued_at,
            expires_at: lifetime.map(|lifetime| issued_at.saturating_add(lifetime)),
            granted: written.or_else(|| old.and_then(|old| old.granted)),
            requested: self.requested,
            key: bound.map(|key| key.export()),
        };
        Ok(Outcome { tokens, registration: self.registration, refreshed })
    }
}

/// What every request for a token says: what it is for and how much.
fn with_scope(found: &Found, mut parameters: Vec<(&'static str, Secret)>) -> Vec<(&'static str, Secret)> {
    parameters.push(("resource", Secret::new(found.resource.resource.as_str())));
    if let Some(scopes) = &found.scopes {
        parameters.push(("scope", Secret::new(scopes.to_string())));
    }
    parameters
}

impl Flow {
    pub(super) fn refresh_only(&mut self, registration: Option<&Registration>, now: SystemTime) -> Step {
        let tokens = self.situation.tokens.clone().ok_or(Error::Misuse("there is nothing to refresh"))?;
        let client = self.client_of(&tokens, registration);
        let client = client.ok_or_else(|| Error::NoClient { issuer: shown(&tokens.issuer) })?;
        let endpoint = self.reach.check(&tokens.token_endpoint)?;
        self.exchange(Exchange::refresh(&tokens, client, endpoint)?, now)
    }

    /// The client that tokens were issued to, if it is still the same.
    pub(super) fn client_of(&self, tokens: &Tokens, registration: Option<&Registration>) -> Option<Client> {
        let given = self.profile.registered.as_ref();
        let given = given.filter(|given| given.issuer.as_ref().is_none_or(|issuer| *issuer == tokens.issuer));
        let given = given.map(|given| (&given.id, &given.credential));
        let document = self.profile.document.as_ref().map(|(url, credential)| (url, credential));
        let known = [given, document].into_iter().flatten().find(|(id, _)| **id == tokens.client_id);
        if let Some((id, credential)) = known {
            return Some(Client { id: id.clone(), credential: credential.clone(), method: tokens.method });
        }
        registration.filter(|known| known.client_id == tokens.client_id).map(Registration::client)
    }

    /// Sends a token request.
    pub(super) fn exchange(&mut self, mut exchange: Exchange, now: SystemTime) -> Step {
        let request = exchange.call.request(now, &*self.random)?;
        self.state = State::Exchanging(Box::new(exchange));
        Ok(Command::Send(request))
    }

    pub(super) fn exchanged(&mut self, mut exchange: Exchange, response: &Response<Payload>, now: SystemTime) -> Step {
        match exchange.call.read(response)? {
            Answer::Again => self.exchange(exchange, now),
            Answer::Granted(granted) => match exchange.purpose {
                Purpose::Assertion { found, client } => {
                    if granted.issued_token_type.as_deref() != Some(ID_JAG) {
                        let problem = "is not about the assertion that was asked for";
                        return Err(Error::Invalid { what: "token response", problem });
                    }
                    self.exchange(Exchange::jwt_bearer(&found, client, granted.access_token), now)
                }
                _ => exchange.finish(granted, now).map(|outcome| Command::Authorized(Box::new(outcome))),
            },
            Answer::Refused(refusal) => {
                let is_unknown = refusal.code == "invalid_client";
                if is_unknown && !matches!(exchange.purpose, Purpose::Assertion { .. }) {
                    self.forgotten.client = Some((exchange.call.issuer, exchange.call.client.id));
                }
                let Purpose::Refresh { old, otherwise } = exchange.purpose else {
                    return Err(Error::TokenRefused(refusal));
                };
                self.forgotten.refresh_token_of = Some(old);
                // A refresh token ends some day; then the user is asked again.
                let (found, registration) = otherwise.ok_or(Error::TokenRefused(refusal))?;
                self.ask(found, registration.filter(|_| !is_unknown), now)
            }
        }
    }

    pub(super) fn asserted(&mut self, found: Box<Found>, client: Client, assertion: &Secret, now: SystemTime) -> Step {
        let exchange = match &self.profile.grant {
            Grant::EnterpriseManaged(provider) => Exchange::identity(found, client, provider, assertion),
            _ => Exchange::jwt_bearer(&found, client, assertion.clone()),
        };
        self.exchange(exchange, now)
    }
}
