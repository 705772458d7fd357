//! Taking tokens back (RFC 7009): what tells an authorization server that they are not used any more.

use std::time::SystemTime;

use http::Request;
use url::Url;

use super::super::Error;
use super::super::Secret;
use super::super::credentials::{Client, Credential, Method};
use super::super::registration::Registration;
use super::super::token::{TokenCall, Tokens};
use super::Flow;
use crate::Payload;

impl Flow {
    /// The requests that take the tokens of the situation back, one after the other. None, if the authorization server takes
    /// none back, or if the client has no way to show who it is.
    ///
    /// `registration` is what the store has for the issuer of the tokens. What is answered changes nothing: nobody has the
    /// tokens any more.
    pub fn revocation(&self, registration: Option<&Registration>, now: SystemTime) -> Vec<Request<Payload>> {
        let Some(tokens) = &self.situation.tokens else { return Vec::new() };
        let endpoint = tokens.revocation_endpoint.as_deref().and_then(|text| self.reach.check(text).ok());
        let client = self.client_of(tokens, registration).or_else(|| public(tokens));
        let (Some(endpoint), Some(client)) = (endpoint, client) else { return Vec::new() };
        // The refresh token first: some take all that came of it back with it, and it lives longest.
        let refresh = tokens.refresh_token.as_ref().map(|token| (token, "refresh_token"));
        let each = refresh.into_iter().chain([(&tokens.access_token, "access_token")]);
        each.filter_map(|(token, kind)| self.revoke(token, kind, tokens, &client, &endpoint, now).ok()).collect()
    }

    fn revoke(
        &self,
        token: &Secret,
        kind: &'static str,
        tokens: &Tokens,
        client: &Client,
        endpoint: &Url,
        now: SystemTime,
    ) -> Result<Request<Payload>, Error> {
        let mut call = TokenCall {
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

/// A client that shows nothing but its name, so that the name is all that it takes.
fn public(tokens: &Tokens) -> Option<Client> {
    let client = || Client { id: tokens.client_id.clone(), credential: Credential::None, method: Method::None };
    (tokens.method == Method::None).then(client)
}
