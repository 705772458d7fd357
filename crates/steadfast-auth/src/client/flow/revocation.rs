//! Token revocation (RFC 7009).

use std::time::SystemTime;

use http::Request;
use url::Url;

use super::OAuthFlow;
use crate::HttpClientBody;
use crate::client::Error;
use crate::client::Secret;
use crate::client::credentials::{ClientAuthMethod, ClientCredential, OAuthClientIdentity};
use crate::client::registration::ClientRegistration;
use crate::client::token::{TokenRequest, Tokens};

impl OAuthFlow {
    /// The HTTP requests that revoke the tokens of the OAuth flow, to be sent in order. The list of requests is empty if the
    /// authorization server does not support revocation, or if the client cannot authenticate.
    ///
    /// `registration` is the stored client registration at the issuer of the tokens. The responses to the revocation requests
    /// do not matter: the client deletes the tokens in any case.
    pub fn revocation(
        &self,
        registration: Option<&ClientRegistration>,
        now: SystemTime,
    ) -> Vec<Request<HttpClientBody>> {
        let Some(tokens) = &self.input.tokens else { return Vec::new() };
        let endpoint = tokens.revocation_endpoint.as_deref().and_then(|text| self.url_policy.check(text).ok());
        let client = self.client_of(tokens, registration).or_else(|| public(tokens));
        let (Some(endpoint), Some(client)) = (endpoint, client) else { return Vec::new() };
        // The refresh token first: it lives longest, and some servers revoke its access tokens with it.
        let refresh = tokens.refresh_token.as_ref().map(|token| (token, "refresh_token"));
        let each = refresh.into_iter().chain([(&tokens.access_token, "access_token")]);
        each.filter_map(|(token, kind)| self.revoke(token, kind, tokens, &client, &endpoint, now).ok()).collect()
    }

    fn revoke(
        &self,
        token: &Secret,
        kind: &'static str,
        tokens: &Tokens,
        client: &OAuthClientIdentity,
        endpoint: &Url,
        now: SystemTime,
    ) -> Result<Request<HttpClientBody>, Error> {
        let mut call = TokenRequest {
            endpoint: endpoint.clone(),
            issuer: tokens.issuer.clone(),
            client: client.clone(),
            parameters: vec![("token", token.clone()), ("token_type_hint", Secret::new(kind))],
            key: None,
            nonce: None,
            sent: Vec::new(),
        };
        call.request(now, &*self.random)
    }
}

/// The client that the tokens were issued to, if it is a public client, which needs only its client id.
fn public(tokens: &Tokens) -> Option<OAuthClientIdentity> {
    let client = || OAuthClientIdentity {
        id: tokens.client_id.clone(),
        credential: ClientCredential::None,
        method: ClientAuthMethod::None,
    };
    (tokens.method == ClientAuthMethod::None).then(client)
}
