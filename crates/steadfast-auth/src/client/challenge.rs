//! Parses the challenge of an MCP server that refuses a request: the `WWW-Authenticate` headers of its response.

use std::fmt;

use http::HeaderMap;
use http::header::WWW_AUTHENTICATE;
use serde::{Deserialize, Serialize};

use super::url_policy::redact_url;
use crate::Scopes;

/// The HTTP authorization scheme that an access token is sent with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AuthScheme {
    /// A bearer token: possession is enough to use it.
    #[default]
    Bearer,
    /// A token bound to a key, sent with a proof of possession (RFC 9449).
    #[serde(rename = "DPoP")]
    Dpop,
}

impl AuthScheme {
    /// The name of the authentication scheme as it is written in HTTP headers: `Bearer` or `DPoP`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bearer => "Bearer",
            Self::Dpop => "DPoP",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        [Self::Bearer, Self::Dpop].into_iter().find(|scheme| scheme.as_str().eq_ignore_ascii_case(text))
    }
}

/// What an MCP server requires of an access token, combined from all `Bearer` and `DPoP` challenges in one response.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct WwwAuthenticateChallenge {
    /// `DPoP` if the MCP server accepts only DPoP-bound access tokens, otherwise `Bearer`.
    pub scheme: AuthScheme,
    /// The URL of the protected resource metadata.
    pub resource_metadata: Option<String>,
    /// The scopes that the refused request needs.
    pub scope: Option<Scopes>,
    /// The error code for the access token, such as `invalid_token` or `insufficient_scope`.
    pub error: Option<String>,
}

/// The debug output omits the query of the metadata URL, which may contain API keys.
impl fmt::Debug for WwwAuthenticateChallenge {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("WwwAuthenticateChallenge")
            .field("scheme", &self.scheme)
            .field("resource_metadata", &self.resource_metadata.as_deref().map(redact_url))
            .field("scope", &self.scope)
            .field("error", &self.error)
            .finish()
    }
}

impl WwwAuthenticateChallenge {
    /// Reads all `WWW-Authenticate` challenges of a response. Returns `None` if no challenge asks for an access token.
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let mut found: Option<Self> = None;
        let mut bearer = false;
        for value in headers.get_all(WWW_AUTHENTICATE) {
            let text = String::from_utf8_lossy(value.as_bytes());
            for (scheme, parameters) in challenges(&text) {
                let Some(scheme) = AuthScheme::parse(scheme) else { continue };
                bearer |= scheme == AuthScheme::Bearer;
                found.get_or_insert_default().merge(parameters);
            }
        }
        if let Some(challenge) = &mut found {
            challenge.scheme = if bearer { AuthScheme::Bearer } else { AuthScheme::Dpop };
        }
        found
    }

    fn merge(&mut self, parameters: Vec<(&str, String)>) {
        for (name, value) in parameters {
            if value.is_empty() {
                continue;
            }
            match name.to_ascii_lowercase().as_str() {
                "resource_metadata" => _ = self.resource_metadata.get_or_insert(value),
                "error" => _ = self.error.get_or_insert(value),
                "scope" => _ = self.scope.get_or_insert_with(|| Scopes::lenient(value.split(' '))),
                _ => {}
            }
        }
    }
}

/// Parses the challenges of one `WWW-Authenticate` header: each has a scheme and parameters. Malformed text in the header is
/// skipped up to the next comma.
fn challenges(mut text: &str) -> Vec<(&str, Vec<(&str, String)>)> {
    let mut found: Vec<(&str, Vec<(&str, String)>)> = Vec::new();
    loop {
        text = text.trim_start_matches([' ', '\t', ',']);
        if text.is_empty() {
            return found;
        }
        let (name, rest) = split(text, |character| !is_token(character));
        if name.is_empty() {
            text = split(text, |character| character == ',').1;
            continue;
        }
        // A name before an equals sign is a parameter of the scheme before it; any other is a scheme.
        let Some(value) = rest.trim_start_matches([' ', '\t']).strip_prefix('=') else {
            found.push((name, Vec::new()));
            text = rest;
            continue;
        };
        let (value, rest) = value_of(value.trim_start_matches([' ', '\t']));
        if let Some((_, parameters)) = found.last_mut() {
            parameters.push((name, value));
        }
        text = rest;
    }
}

/// Splits a header into the parameter value at its start, quoted or not, and the text after that value.
fn value_of(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let (value, rest) = split(text, |character| matches!(character, ',' | ' ' | '\t'));
        return (value.to_owned(), rest);
    };
    let mut value = String::new();
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => break,
            '\\' => value.extend(characters.next()),
            _ => value.push(character),
        }
    }
    (value, characters.as_str())
}

fn split(text: &str, until: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(until).unwrap_or(text.len()))
}

/// Whether the character is allowed in a `token` of the HTTP header grammar (RFC 9110, section 5.6.2).
fn is_token(character: char) -> bool {
    character.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(headers: &[&str]) -> Option<WwwAuthenticateChallenge> {
        let mut map = HeaderMap::new();
        for header in headers {
            map.append(WWW_AUTHENTICATE, header.parse().unwrap());
        }
        WwwAuthenticateChallenge::from_headers(&map)
    }

    fn scopes(text: &str) -> Option<Scopes> {
        text.parse().ok()
    }

    #[test]
    fn a_challenge_is_read() {
        let challenge = read(&[
            "Bearer error=\"insufficient_scope\", scope=\"files:read files:write\", resource_metadata=\"https://a/m\"",
        ]);
        let challenge = challenge.unwrap();
        assert_eq!(challenge.error.as_deref(), Some("insufficient_scope"));
        assert_eq!(challenge.scope, scopes("files:read files:write"));
        assert_eq!(challenge.resource_metadata.as_deref(), Some("https://a/m"));
        assert_eq!(challenge.scheme, AuthScheme::Bearer);
    }

    #[test]
    fn quotes_commas_and_blanks_inside_values_are_kept() {
        let challenge = read(&[r#"bearer  realm="a, Basic \"b\"" , scope = x ,ERROR="a\\b""#]).unwrap();
        assert_eq!((challenge.scope, challenge.error.as_deref()), (scopes("x"), Some("a\\b")));
    }

    #[test]
    fn other_schemes_are_passed_over() {
        let challenge = read(&["Negotiate YII/a+b==, Basic realm=\"x\", scope=\"not:this\"", "Bearer scope=\"this\""]);
        assert_eq!(challenge.unwrap().scope, scopes("this"));
        assert_eq!(read(&["Basic realm=\"x\""]), None);
        assert_eq!(read(&[]), None);
    }

    #[test]
    fn a_server_that_takes_only_bound_tokens_is_known() {
        assert_eq!(read(&["DPoP algs=\"ES256\", error=\"use_dpop_nonce\""]).unwrap().scheme, AuthScheme::Dpop);
        assert_eq!(read(&["DPoP algs=\"ES256\"", "Bearer"]).unwrap().scheme, AuthScheme::Bearer);
    }

    #[test]
    fn nonsense_is_survived() {
        for nonsense in
            ["", ",,,", "=", "Bearer scope=", "Bearer \"", "Bearer scope=\"a\\", "\u{e9}", "Bearer =x", "@ Bearer"]
        {
            let _ = read(&[nonsense]);
        }
        assert_eq!(read(&["@@@, Bearer scope=\"a\""]).unwrap().scope, scopes("a"));
    }
}
