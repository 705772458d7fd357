//! The server's response to an unauthorized HTTP request: the status and the `WWW-Authenticate` header.

use std::fmt::Write as _;

use http::header::{CACHE_CONTROL, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{Response, StatusCode};

use crate::resource_server::{Scopes, TokenRejection};

/// Why the resource server denies an HTTP request.
#[derive(Debug)]
pub(super) enum RequestDenial {
    /// The HTTP request has no access token.
    NoToken,
    /// The request has a token in its query, or more than one `Authorization` header.
    Misplaced(&'static str),
    /// The access token of the HTTP request was rejected.
    Rejected(TokenRejection),
}

/// The `Retry-After` header, in seconds, of the server's response when it cannot verify tokens at the moment.
const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("5");

impl RequestDenial {
    /// The whole response. `needed` has the scopes that the denied request requires.
    pub(super) fn response<R: Default>(&self, metadata_url: &str, needed: &Scopes) -> Response<R> {
        let mut response = Response::new(R::default());
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        match self.challenge(metadata_url, needed) {
            Some(challenge) => headers.insert(WWW_AUTHENTICATE, challenge),
            None => headers.insert(RETRY_AFTER, RETRY_SECONDS),
        };
        response
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Misplaced(_) => StatusCode::BAD_REQUEST,
            Self::Rejected(TokenRejection::InsufficientScope(_)) => StatusCode::FORBIDDEN,
            Self::Rejected(TokenRejection::Unavailable(_)) => StatusCode::SERVICE_UNAVAILABLE,
            Self::NoToken | Self::Rejected(_) => StatusCode::UNAUTHORIZED,
        }
    }

    /// The `WWW-Authenticate` header of the response, or `None` if another token would not help. For a request without a token
    /// the `WWW-Authenticate` header has no error code (RFC 6750, section 3.1).
    fn challenge(&self, metadata_url: &str, needed: &Scopes) -> Option<HeaderValue> {
        let (error, scopes) = match self {
            Self::NoToken => (None, needed),
            Self::Misplaced(reason) => (Some(("invalid_request", *reason)), needed),
            Self::Rejected(TokenRejection::Unavailable(_)) => return None,
            Self::Rejected(rejection @ TokenRejection::InsufficientScope(scopes)) => {
                (Some(("insufficient_scope", rejection.reason())), scopes)
            }
            Self::Rejected(rejection) => (Some(("invalid_token", rejection.reason())), needed),
        };
        let mut text = String::from("Bearer ");
        if let Some((error, reason)) = error {
            // An error code, and a reason without quotes.
            let _ = write!(text, "error=\"{error}\", error_description=\"{}\", ", plain(reason));
        }
        let scopes = crate::scope::requestable(scopes.clone());
        if !scopes.is_empty() {
            let _ = write!(text, "scope=\"{scopes}\", ");
        }
        let _ = write!(text, "resource_metadata=\"{metadata_url}\"");
        HeaderValue::from_str(&text).ok()
    }
}

/// Keeps only the characters that RFC 6750 (section 3) allows in an error description.
fn plain(reason: &str) -> String {
    reason.chars().filter(|c| matches!(c, ' '..='~') && !matches!(c, '"' | '\\')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp";

    fn refused(refusal: RequestDenial, needed: &str) -> (u16, String) {
        let response: Response<()> = refusal.response(URL, &needed.parse().unwrap());
        let challenge = response.headers().get(WWW_AUTHENTICATE).map(|value| value.to_str().unwrap().to_owned());
        (response.status().as_u16(), challenge.unwrap_or_default())
    }

    #[test]
    fn without_a_token_the_challenge_names_no_error() {
        let (status, challenge) = refused(RequestDenial::NoToken, "files:read");
        assert_eq!(status, 401);
        assert_eq!(challenge, format!("Bearer scope=\"files:read\", resource_metadata=\"{URL}\""));
    }

    #[test]
    fn without_scopes_the_challenge_has_no_scope() {
        assert_eq!(refused(RequestDenial::NoToken, "").1, format!("Bearer resource_metadata=\"{URL}\""));
    }

    #[test]
    fn a_bad_token_is_called_invalid() {
        for rejection in [TokenRejection::Invalid("no"), TokenRejection::Expired, TokenRejection::WrongAudience] {
            let reason = rejection.reason();
            let (status, challenge) = refused(RequestDenial::Rejected(rejection), "a");
            assert_eq!(status, 401);
            assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
            assert!(challenge.contains(&format!("error_description=\"{reason}\"")), "{challenge}");
            assert!(challenge.contains("scope=\"a\""), "{challenge}");
        }
    }

    #[test]
    fn too_little_scope_is_forbidden_and_names_all_that_is_needed() {
        let needed: Scopes = "b a".parse().unwrap();
        let (status, challenge) = refused(RequestDenial::Rejected(TokenRejection::InsufficientScope(needed)), "");
        assert_eq!(status, 403);
        assert!(challenge.contains("error=\"insufficient_scope\""), "{challenge}");
        assert!(challenge.contains("scope=\"a b\"") && challenge.contains(URL), "{challenge}");
    }

    #[test]
    fn if_the_verifier_is_unavailable_the_response_is_503_with_retry_after() {
        let response: Response<()> =
            RequestDenial::Rejected(TokenRejection::Unavailable("down")).response(URL, &Scopes::none());
        assert_eq!(response.status(), 503);
        assert!(!response.headers().contains_key(WWW_AUTHENTICATE));
        assert!(response.headers().contains_key(RETRY_AFTER));
    }

    #[test]
    fn a_reason_cannot_end_its_quotes() {
        let (_, challenge) = refused(RequestDenial::Rejected(TokenRejection::Invalid("a\", scope=\"all\\\n")), "");
        assert!(challenge.contains("error_description=\"a, scope=all\""), "{challenge}");
    }

    #[test]
    fn offline_access_is_not_asked_for() {
        assert!(refused(RequestDenial::NoToken, "a offline_access").1.contains("scope=\"a\""));
    }
}
