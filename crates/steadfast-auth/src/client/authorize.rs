//! The OAuth authorization request, which the user's browser opens, and the validation of its response.

use url::Url;

use super::discovery::AuthorizationServerMetadata;
use super::error::OAuthErrorResponse;
use super::pkce::CodeVerifier;
use super::random::{RandomSource, random_secret};
use super::{Error, Secret};
use crate::Scopes;

/// The parameters of an authorization request.
pub(super) struct AuthorizationRequest<'a> {
    pub(super) client_id: &'a str,
    pub(super) redirect_uri: &'a str,
    pub(super) resource: &'a str,
    pub(super) scopes: Option<&'a Scopes>,
    /// The thumbprint of the DPoP key that the authorization code is bound to.
    pub(super) key: Option<String>,
}

/// The state of an authorization request that has no response yet. The response is validated against this state.
pub(super) struct PendingAuthorization {
    state: Secret,
    verifier: CodeVerifier,
    issuer: String,
    issuer_is_sent: bool,
}

/// The authorization code and the PKCE verifier for the token request.
pub(super) struct AuthorizationCode {
    pub(super) code: Secret,
    pub(super) verifier: Secret,
}

impl PendingAuthorization {
    /// Creates an authorization request: returns the URL for the browser, and the state that the response is validated against.
    pub(super) fn new(
        request: &AuthorizationRequest<'_>,
        server: &AuthorizationServerMetadata,
        random: &dyn RandomSource,
    ) -> Result<(Url, Self), Error> {
        let endpoint = server.authorization_endpoint.as_ref();
        let endpoint = endpoint.ok_or(Error::Invalid {
            what: "authorization server metadata",
            problem: "has no `authorization_endpoint`",
        })?;
        if !server.has_pkce {
            return Err(Error::NoPkce);
        }
        let pending = Self {
            state: random_secret(random)?,
            verifier: CodeVerifier::draw(random)?,
            issuer: server.issuer.clone(),
            issuer_is_sent: server.sends_issuer,
        };
        let mut url = endpoint.clone();
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", request.client_id)
            .append_pair("redirect_uri", request.redirect_uri)
            .append_pair("state", pending.state.expose())
            .append_pair("code_challenge", &pending.verifier.challenge())
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", request.resource);
        if let Some(scopes) = request.scopes {
            query.append_pair("scope", &scopes.to_string());
            // OpenID Connect requires consent for a refresh token (Core, section 11).
            if scopes.contains(super::scope::OFFLINE_ACCESS) {
                query.append_pair("prompt", "consent");
            }
        }
        if let Some(key) = &request.key {
            query.append_pair("dpop_jkt", key);
        }
        drop(query);
        Ok((url, pending))
    }

    /// Validates the query of the OAuth redirect, and returns the authorization code. The `state` and the issuer are checked
    /// first: an error contains nothing of the query before they match.
    pub(super) fn validate(self, query: &str) -> Result<AuthorizationCode, Error> {
        let query = query.trim_start_matches('?');
        let answer = AuthorizationResponse::read(query)?;
        if answer.state.as_deref() != Some(self.state.expose()) {
            return Err(Error::InvalidRedirect("the `state` is not that of the authorization request"));
        }
        match answer.iss {
            Some(iss) if iss != self.issuer => {
                return Err(Error::InvalidRedirect("the issuer is not that of the authorization server"));
            }
            None if self.issuer_is_sent => return Err(Error::InvalidRedirect("the issuer (`iss`) is missing")),
            _ => {}
        }
        if let Some(error) = answer.error {
            let sent = [self.state.expose()];
            return Err(Error::Denied(OAuthErrorResponse::new(&error, answer.error_description.as_deref(), &sent)));
        }
        let code = answer
            .code
            .filter(|code| !code.is_empty())
            .ok_or(Error::InvalidRedirect("the authorization code is missing"))?;
        Ok(AuthorizationCode { code: Secret::new(code), verifier: self.verifier.into_secret() })
    }
}

#[derive(Default)]
struct AuthorizationResponse {
    state: Option<String>,
    iss: Option<String>,
    code: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
}

impl AuthorizationResponse {
    fn read(query: &str) -> Result<Self, Error> {
        let mut answer = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let field = match &*name {
                "state" => &mut answer.state,
                "iss" => &mut answer.iss,
                "code" => &mut answer.code,
                "error" => &mut answer.error,
                "error_description" => &mut answer.error_description,
                _ => continue,
            };
            // With two values, the check could see one and the rest of the code the other.
            if field.replace(value.into_owned()).is_some() {
                return Err(Error::InvalidRedirect("a query parameter is repeated"));
            }
        }
        Ok(answer)
    }
}

/// The `state` parameter of a query. The loopback listener recognizes the expected OAuth redirect by this parameter.
pub(super) fn state_of(query: &str) -> Option<String> {
    form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "state").map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::pkce::digest;
    use crate::client::random::CountingRandomness;

    const ISSUER: &str = "https://auth.example.com";

    fn server(sends_issuer: bool, has_pkce: bool) -> AuthorizationServerMetadata {
        let base = Url::parse("https://auth.example.com/").unwrap();
        let mut server = AuthorizationServerMetadata::with_default_endpoints(&base, ISSUER.to_owned());
        server.sends_issuer = sends_issuer;
        server.has_pkce = has_pkce;
        server
    }

    fn asked(sends_issuer: bool) -> (String, PendingAuthorization) {
        let scopes: Scopes = "b a".parse().unwrap();
        let request = AuthorizationRequest {
            client_id: "me",
            redirect_uri: "http://127.0.0.1:1/callback",
            resource: "https://mcp.example.com",
            scopes: Some(&scopes),
            key: None,
        };
        let (url, pending) =
            PendingAuthorization::new(&request, &server(sends_issuer, true), &CountingRandomness::default()).unwrap();
        (url.query().unwrap().to_owned(), pending)
    }

    fn refused(sends_issuer: bool, answer: &str) -> Error {
        let (query, pending) = asked(sends_issuer);
        let answer = answer.replace("STATE", &state_of(&query).unwrap());
        pending.validate(&answer).err().unwrap()
    }

    #[test]
    fn the_request_has_what_the_specification_wants() {
        let (query, pending) = asked(true);
        let value = |wanted: &str| {
            let mut pairs = form_urlencoded::parse(query.as_bytes()).into_owned();
            pairs.find(|(name, _)| name == wanted).map(|(_, value)| value).unwrap()
        };
        assert_eq!(value("response_type"), "code");
        assert_eq!(value("resource"), "https://mcp.example.com", "without an added slash");
        assert_eq!(value("scope"), "a b");
        assert_eq!(value("code_challenge_method"), "S256");
        let answer = format!("code=c&state={}&iss=https%3A%2F%2Fauth.example.com", value("state"));
        let code = pending.validate(&answer).unwrap();
        assert_eq!((code.code.expose(), digest(code.verifier.expose())), ("c", value("code_challenge")));
    }

    #[test]
    fn a_server_without_pkce_is_not_asked() {
        let request =
            AuthorizationRequest { client_id: "me", redirect_uri: "x", resource: "y", scopes: None, key: None };
        assert_eq!(
            PendingAuthorization::new(&request, &server(true, false), &CountingRandomness::default()).err(),
            Some(Error::NoPkce)
        );
    }

    #[test]
    fn the_issuer_of_the_answer_is_compared_as_text() {
        for wrong in
            ["https%3A%2F%2Fevil.example.com", "https%3A%2F%2Fauth.example.com%2F", "https%3A%2F%2FAUTH.example.com"]
        {
            for advertised in [true, false] {
                let error = refused(advertised, &format!("code=c&state=STATE&iss={wrong}"));
                assert_eq!(
                    error,
                    Error::InvalidRedirect("the issuer is not that of the authorization server"),
                    "{wrong}"
                );
            }
        }
        assert_eq!(refused(true, "code=c&state=STATE"), Error::InvalidRedirect("the issuer (`iss`) is missing"));
        let (query, pending) = asked(false);
        assert!(pending.validate(&format!("code=c&state={}", state_of(&query).unwrap())).is_ok());
    }

    #[test]
    fn an_error_from_somebody_else_is_not_repeated() {
        let error =
            refused(true, "error=access_denied&error_description=call+us&state=STATE&iss=https%3A%2F%2Fevil.example");
        assert_eq!(error, Error::InvalidRedirect("the issuer is not that of the authorization server"));
        let error = refused(false, "error=access_denied&error_description=no&state=STATE");
        assert_eq!(error.to_string(), "the authorization was denied: access_denied (no)");
    }

    #[test]
    fn an_answer_to_another_question_is_refused() {
        assert_eq!(
            refused(false, "code=c&state=x"),
            Error::InvalidRedirect("the `state` is not that of the authorization request")
        );
        assert_eq!(
            refused(false, "code=c"),
            Error::InvalidRedirect("the `state` is not that of the authorization request")
        );
        assert_eq!(
            refused(false, "code=c&code=d&state=STATE"),
            Error::InvalidRedirect("a query parameter is repeated")
        );
        assert_eq!(refused(false, "state=STATE"), Error::InvalidRedirect("the authorization code is missing"));
    }
}
