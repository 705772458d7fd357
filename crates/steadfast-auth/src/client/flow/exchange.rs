//! The last step of an OAuth flow: the token request of each grant, and the tokens from its response.

use std::time::SystemTime;

use http::Response;
use url::Url;

use super::{OAuthDiscovery, OAuthFlow, OAuthFlowCommand, OAuthFlowState, OAuthFlowStep, OAuthGrant};
use crate::client::authorize::AuthorizationCode;
use crate::client::credentials::{ClientAuthMethod, ClientCredential, OAuthClientIdentity};
use crate::client::dpop::{DpopProofKey, seconds};
use crate::client::profile::{Grant, IdentityProvider};
use crate::client::registration::ClientRegistration;
use crate::client::token::{GrantedTokens, TokenRequest, TokenResponse, Tokens};
use crate::client::url_policy::redact_url;
use crate::client::{Error, Secret};
use crate::{HttpClientBody, Scopes};

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// A token request in flight, and what the client already knows about the requested tokens.
pub(super) struct PendingTokenRequest {
    call: TokenRequest,
    revocation_endpoint: Option<String>,
    resource: String,
    requested: Option<Scopes>,
    must_be_bound: bool,
    registration: Option<ClientRegistration>,
    purpose: TokenRequestPurpose,
}

enum TokenRequestPurpose {
    /// A token request that gets new tokens.
    Tokens,
    /// A token request that refreshes the tokens in `old`. `otherwise` is what the flow needs to request new tokens
    /// if the authorization server refuses the refresh.
    Refresh { old: Box<Tokens>, otherwise: Option<(Box<OAuthDiscovery>, Option<ClientRegistration>)> },
    /// A token request that gets an assertion for the authorization server from the identity provider.
    Assertion { discovery: Box<OAuthDiscovery>, client: OAuthClientIdentity },
}

impl PendingTokenRequest {
    fn new(discovery: &OAuthDiscovery, client: OAuthClientIdentity, parameters: Vec<(&'static str, Secret)>) -> Self {
        Self {
            call: TokenRequest {
                endpoint: discovery.server.token_endpoint.clone(),
                issuer: discovery.server.issuer.clone(),
                client,
                parameters,
                key: discovery.key.clone(),
                nonce: None,
                sent: Vec::new(),
            },
            revocation_endpoint: discovery.server.revocation_endpoint.clone().map(String::from),
            resource: discovery.resource.resource.clone(),
            requested: discovery.scopes.clone(),
            must_be_bound: discovery.must_be_bound,
            registration: None,
            purpose: TokenRequestPurpose::Tokens,
        }
    }

    /// Creates a token request with the authorization code grant.
    pub(super) fn code(
        discovery: &OAuthDiscovery,
        client: OAuthClientIdentity,
        code: AuthorizationCode,
        redirect_uri: &str,
    ) -> Self {
        let parameters = vec![
            ("grant_type", Secret::new("authorization_code")),
            ("code", code.code),
            ("redirect_uri", Secret::new(redirect_uri)),
            ("code_verifier", code.verifier),
            ("resource", Secret::new(discovery.resource.resource.as_str())),
        ];
        Self::new(discovery, client, parameters)
    }

    /// Creates a token request with the client credentials grant.
    pub(super) fn client_credentials(discovery: &OAuthDiscovery, client: OAuthClientIdentity) -> Self {
        Self::new(discovery, client, with_scope(discovery, vec![("grant_type", Secret::new("client_credentials"))]))
    }

    /// Creates a token request with the JWT bearer grant.
    fn jwt_bearer(discovery: &OAuthDiscovery, client: OAuthClientIdentity, assertion: Secret) -> Self {
        let parameters = vec![("grant_type", Secret::new(JWT_BEARER)), ("assertion", assertion)];
        Self::new(discovery, client, with_scope(discovery, parameters))
    }

    /// The token request that exchanges the user's identity for an assertion, sent to the identity provider.
    fn identity(
        discovery: Box<OAuthDiscovery>,
        client: OAuthClientIdentity,
        provider: &IdentityProvider,
        subject: &Secret,
    ) -> Self {
        let parameters = vec![
            ("grant_type", Secret::new(TOKEN_EXCHANGE)),
            ("requested_token_type", Secret::new(ID_JAG)),
            ("audience", Secret::new(discovery.server.issuer.as_str())),
            ("subject_token", subject.clone()),
            ("subject_token_type", Secret::new(provider.subject_token_type.as_str())),
        ];
        let method = match provider.credential {
            ClientCredential::Secret(_) => ClientAuthMethod::ClientSecretPost,
            _ => ClientAuthMethod::choose(&provider.credential, None),
        };
        let at_provider =
            OAuthClientIdentity { id: provider.client_id.clone(), credential: provider.credential.clone(), method };
        let mut exchange = Self::new(&discovery, at_provider, with_scope(&discovery, parameters));
        exchange.call.endpoint = provider.token_endpoint.clone();
        exchange.call.issuer.clone_from(&provider.issuer);
        exchange.call.key = None;
        exchange.purpose = TokenRequestPurpose::Assertion { discovery, client };
        exchange
    }

    /// Creates a token request with the refresh token grant.
    pub(super) fn refresh(tokens: &Tokens, client: OAuthClientIdentity, endpoint: Url) -> Result<Self, Error> {
        let token = tokens.refresh_token.clone().ok_or(Error::Misuse("the OAuth flow has no tokens to refresh"))?;
        let parameters = vec![
            ("grant_type", Secret::new("refresh_token")),
            ("refresh_token", token),
            ("resource", Secret::new(tokens.resource.as_str())),
        ];
        let key = tokens.key.as_ref().map(DpopProofKey::import).transpose()?;
        let must_be_bound = key.is_some();
        Ok(Self {
            call: TokenRequest {
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
            purpose: TokenRequestPurpose::Refresh { old: Box::new(tokens.clone()), otherwise: None },
        })
    }

    /// Sets how the flow continues if the authorization server refuses the refresh.
    pub(super) fn or_else_request(
        mut self,
        discovery: Box<OAuthDiscovery>,
        registration: Option<ClientRegistration>,
    ) -> Self {
        if let TokenRequestPurpose::Refresh { otherwise, .. } = &mut self.purpose {
            *otherwise = Some((discovery, registration));
        }
        self
    }

    /// Sets the client registration to store with the tokens.
    pub(super) fn with_registration(mut self, registration: Option<ClientRegistration>) -> Self {
        self.registration = registration;
        self
    }

    /// Converts a successful token response into the result of the OAuth flow.
    fn finish(self, granted: GrantedTokens, now: SystemTime) -> Result<OAuthGrant, Error> {
        let scheme = granted.scheme(self.call.key.as_ref(), self.must_be_bound)?;
        let old = match self.purpose {
            TokenRequestPurpose::Refresh { old, .. } => Some(old),
            _ => None,
        };
        let refreshed = old.is_some();
        let issued_at = seconds(now);
        let bound = self.call.key.filter(|_| scheme == super::AuthScheme::Dpop);
        let written = granted.scope.map(|text| Scopes::lenient(text.split(' ')));
        // A server that does not rotate refresh tokens leaves the old one valid.
        let refresh_token = granted.refresh_token.or_else(|| old.as_ref().and_then(|old| old.refresh_token.clone()));
        // A token that is expired when issued and cannot be refreshed would never be sent: ignore its lifetime then.
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
        Ok(OAuthGrant { tokens, registration: self.registration, refreshed })
    }
}

/// Adds the parameters `resource` and `scope` to a token request.
fn with_scope(discovery: &OAuthDiscovery, mut parameters: Vec<(&'static str, Secret)>) -> Vec<(&'static str, Secret)> {
    parameters.push(("resource", Secret::new(discovery.resource.resource.as_str())));
    if let Some(scopes) = &discovery.scopes {
        parameters.push(("scope", Secret::new(scopes.to_string())));
    }
    parameters
}

impl OAuthFlow {
    pub(super) fn refresh_only(&mut self, registration: Option<&ClientRegistration>, now: SystemTime) -> OAuthFlowStep {
        let tokens = self.input.tokens.clone().ok_or(Error::Misuse("the OAuth flow has no tokens to refresh"))?;
        let client = self.client_of(&tokens, registration);
        let client = client.ok_or_else(|| Error::NoClient { issuer: redact_url(&tokens.issuer) })?;
        let endpoint = self.url_policy.check(&tokens.token_endpoint)?;
        self.exchange(PendingTokenRequest::refresh(&tokens, client, endpoint)?, now)
    }

    /// The client that the tokens were issued to, if its credentials are still known.
    pub(super) fn client_of(
        &self,
        tokens: &Tokens,
        registration: Option<&ClientRegistration>,
    ) -> Option<OAuthClientIdentity> {
        let pre_registered = self.profile.registered.as_ref();
        let pre_registered = pre_registered
            .filter(|pre_registered| pre_registered.issuer.as_ref().is_none_or(|issuer| *issuer == tokens.issuer));
        let pre_registered = pre_registered.map(|pre_registered| (&pre_registered.id, &pre_registered.credential));
        let document = self.profile.document.as_ref().map(|(url, credential)| (url, credential));
        let known = [pre_registered, document].into_iter().flatten().find(|(id, _)| **id == tokens.client_id);
        if let Some((id, credential)) = known {
            return Some(OAuthClientIdentity { id: id.clone(), credential: credential.clone(), method: tokens.method });
        }
        registration.filter(|known| known.client_id == tokens.client_id).map(ClientRegistration::client)
    }

    /// Sends a token request.
    pub(super) fn exchange(&mut self, mut exchange: PendingTokenRequest, now: SystemTime) -> OAuthFlowStep {
        let request = exchange.call.request(now, &*self.random)?;
        self.state = OAuthFlowState::Exchanging(Box::new(exchange));
        Ok(OAuthFlowCommand::Send(request))
    }

    pub(super) fn handle_token_response(
        &mut self,
        mut exchange: PendingTokenRequest,
        response: &Response<HttpClientBody>,
        now: SystemTime,
    ) -> OAuthFlowStep {
        match exchange.call.read(response)? {
            TokenResponse::RetryWithNonce => self.exchange(exchange, now),
            TokenResponse::Granted(granted) => match exchange.purpose {
                TokenRequestPurpose::Assertion { discovery, client } => {
                    if granted.issued_token_type.as_deref() != Some(ID_JAG) {
                        let problem = "has another token type than the requested assertion";
                        return Err(Error::Invalid { what: "token response", problem });
                    }
                    self.exchange(PendingTokenRequest::jwt_bearer(&discovery, client, granted.access_token), now)
                }
                _ => exchange.finish(granted, now).map(|outcome| OAuthFlowCommand::Authorized(Box::new(outcome))),
            },
            TokenResponse::Refused(refusal) => {
                let is_unknown = refusal.code == "invalid_client";
                if is_unknown && !matches!(exchange.purpose, TokenRequestPurpose::Assertion { .. }) {
                    self.invalidation.client = Some((exchange.call.issuer, exchange.call.client.id));
                }
                let TokenRequestPurpose::Refresh { old, otherwise } = exchange.purpose else {
                    return Err(Error::TokenRefused(refusal));
                };
                self.invalidation.refresh_token_of = Some(old);
                // The refresh token has expired or was revoked: request new tokens.
                let (discovery, registration) = otherwise.ok_or(Error::TokenRefused(refusal))?;
                self.request_tokens(discovery, registration.filter(|_| !is_unknown), now)
            }
        }
    }

    pub(super) fn handle_assertion(
        &mut self,
        discovery: Box<OAuthDiscovery>,
        client: OAuthClientIdentity,
        assertion: &Secret,
        now: SystemTime,
    ) -> OAuthFlowStep {
        let exchange = match &self.profile.grant {
            Grant::EnterpriseManaged(provider) => PendingTokenRequest::identity(discovery, client, provider, assertion),
            _ => PendingTokenRequest::jwt_bearer(&discovery, client, assertion.clone()),
        };
        self.exchange(exchange, now)
    }
}
