//! Checks the claims of an access token, whether they are in the token itself or come from introspection.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};

use super::{Principal, Scopes, TokenRejection, audience};

/// The clock that the expiry of access tokens is checked with.
#[derive(Clone)]
pub(super) struct TokenVerifierClock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl TokenVerifierClock {
    pub(super) fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub(super) fn now(&self) -> SystemTime {
        (self.0)()
    }
}

impl Default for TokenVerifierClock {
    fn default() -> Self {
        Self::new(SystemTime::now)
    }
}

impl fmt::Debug for TokenVerifierClock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TokenVerifierClock")
    }
}

/// What the claims of a token must contain.
#[derive(Clone, Debug)]
pub(super) struct ClaimRequirements {
    /// The identifiers of this resource server, one of which must be the audience of a token.
    pub(super) audiences: Vec<String>,
    /// Whether claims without an audience are accepted, since the authorization server checks the audience.
    pub(super) audience_may_be_absent: bool,
    /// The issuer that the claims must contain; `None` if any issuer is accepted.
    pub(super) issuer: Option<String>,
    /// Whether tokens without an expiry claim are accepted.
    pub(super) expiry_may_be_absent: bool,
    /// Allowed difference between the clocks of the authorization server and the resource server.
    pub(super) leeway: Duration,
    pub(super) clock: TokenVerifierClock,
}

impl ClaimRequirements {
    /// Checks the claims of a token, and returns the principal that they describe.
    pub(super) fn check(&self, claims: Map<String, Value>) -> Result<Principal, TokenRejection> {
        self.check_issuer(&claims)?;
        self.check_audience(&claims)?;
        let expires = self.check_times(&claims)?;
        let principal = principal(&claims)?.with_scopes(scopes(&claims));
        let principal = match text(&claims, "iss").or(self.issuer.as_deref()) {
            Some(issuer) => principal.with_issuer(issuer),
            None => principal,
        };
        let principal = match expires {
            Some(expires) => principal.with_expiry(expires),
            None => principal,
        };
        Ok(principal.with_claims(claims))
    }

    /// Checks the issuer of a token. Issuers are compared as text: two spellings of one URL are two issuers.
    fn check_issuer(&self, claims: &Map<String, Value>) -> Result<(), TokenRejection> {
        match &self.issuer {
            Some(issuer) if text(claims, "iss") != Some(issuer) => {
                Err(TokenRejection::Invalid("the token is from another issuer"))
            }
            _ => Ok(()),
        }
    }

    fn check_audience(&self, claims: &Map<String, Value>) -> Result<(), TokenRejection> {
        let is_ours = |value: &Value| {
            value.as_str().is_some_and(|name| self.audiences.iter().any(|ours| audience::is_same(ours, name)))
        };
        let accepted = match claims.get("aud") {
            None | Some(Value::Null) => self.audience_may_be_absent,
            Some(Value::Array(several)) => several.iter().any(is_ours),
            Some(one) => is_ours(one),
        };
        if accepted { Ok(()) } else { Err(TokenRejection::WrongAudience) }
    }

    fn check_times(&self, claims: &Map<String, Value>) -> Result<Option<SystemTime>, TokenRejection> {
        let now = self.clock.now();
        self.check_begun(claims, now)?;
        let expires = moment(claims, "exp")?;
        let Some(until) = expires else {
            return if self.expiry_may_be_absent {
                Ok(None)
            } else {
                Err(TokenRejection::Invalid("the token has no expiry"))
            };
        };
        if until.checked_add(self.leeway).is_some_and(|until| until <= now) {
            return Err(TokenRejection::Expired);
        }
        Ok(expires)
    }

    fn check_begun(&self, claims: &Map<String, Value>, now: SystemTime) -> Result<(), TokenRejection> {
        match moment(claims, "nbf")? {
            Some(from) if now.checked_add(self.leeway).is_none_or(|now| now < from) => {
                Err(TokenRejection::Invalid("the token is not valid yet"))
            }
            _ => Ok(()),
        }
    }
}

/// The principal. Claims with neither a subject nor a client are rejected, since all such tokens would have the same principal.
fn principal(claims: &Map<String, Value>) -> Result<Principal, TokenRejection> {
    let client = text(claims, "client_id").or_else(|| text(claims, "azp"));
    match (text(claims, "sub"), client) {
        (Some(subject), Some(client)) => Ok(Principal::new(subject).with_client(client)),
        (Some(subject), None) => Ok(Principal::new(subject)),
        (None, Some(client)) => Ok(Principal::client_only(client)),
        (None, None) => Err(TokenRejection::Invalid("the token has neither a subject nor a client")),
    }
}

/// Reads the scopes from the claims. The claim `scope` is a string with spaces in the standards; some authorization servers use
/// `scp`, or lists.
fn scopes(claims: &Map<String, Value>) -> Scopes {
    let words = |name| match claims.get(name) {
        Some(Value::String(text)) => text.split(' ').collect(),
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    Scopes::lenient(words("scope")).union(Scopes::lenient(words("scp")))
}

fn text<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    claims.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Reads a time claim in seconds since 1970, perhaps with a fraction. A malformed time claim is an error, and is not treated as
/// absent.
fn moment(claims: &Map<String, Value>, name: &str) -> Result<Option<SystemTime>, TokenRejection> {
    let unreadable = TokenRejection::Invalid("the token has a time claim that is not a valid number of seconds");
    let Some(value) = claims.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
    let since = value.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    since.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since)).ok_or(unreadable).map(Some)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn expectations() -> ClaimRequirements {
        ClaimRequirements {
            audiences: vec!["https://mcp.example.com/mcp".to_owned()],
            audience_may_be_absent: false,
            issuer: Some("https://auth.example.com".to_owned()),
            expiry_may_be_absent: false,
            leeway: Duration::from_secs(60),
            clock: TokenVerifierClock::new(|| SystemTime::UNIX_EPOCH + Duration::from_secs(NOW)),
        }
    }

    /// Good claims, with one changed. `null` takes it out.
    fn checked(name: &str, value: Value) -> Result<Principal, TokenRejection> {
        let mut claims = json!({
            "iss": "https://auth.example.com", "aud": "https://mcp.example.com/mcp", "sub": "alice",
            "exp": NOW + 600, "scope": "read write",
        });
        claims[name] = value;
        let Value::Object(mut claims) = claims else { unreachable!() };
        claims.retain(|_, value| !value.is_null());
        expectations().check(claims)
    }

    #[test]
    fn good_claims_make_a_principal() {
        let principal = checked("client_id", json!("app")).unwrap();
        assert_eq!(principal.subject(), Some("alice"));
        assert_eq!(principal.client(), Some("app"));
        assert_eq!(principal.issuer(), Some("https://auth.example.com"));
        assert_eq!(principal.scopes().to_string(), "read write");
        assert_eq!(principal.expires(), Some(SystemTime::UNIX_EPOCH + Duration::from_secs(NOW + 600)));
        assert_eq!(principal.claim("sub"), Some(&json!("alice")));
    }

    #[test]
    fn the_audience_is_exactly_this_resource() {
        let wrong = [
            json!(null),
            json!("https://mcp.example.com/mcp/"),
            json!("https://mcp.example.com"),
            json!("HTTPS://mcp.example.com/MCP"),
            json!([]),
            json!(["https://other.example"]),
            json!({"https://mcp.example.com/mcp": true}),
            json!(7),
        ];
        for audience in wrong {
            assert_eq!(checked("aud", audience.clone()), Err(TokenRejection::WrongAudience), "{audience}");
        }
        assert!(checked("aud", json!(["https://other.example", "https://mcp.example.com/mcp"])).is_ok());
    }

    #[test]
    fn the_audience_may_have_its_scheme_and_host_in_capitals() {
        for audience in [json!("HTTPS://mcp.example.com/mcp"), json!(["https://MCP.EXAMPLE.COM/mcp"])] {
            assert!(checked("aud", audience.clone()).is_ok(), "{audience}");
        }
    }

    #[test]
    fn the_issuer_is_exactly_the_one_that_is_trusted() {
        for issuer in [json!(null), json!("https://auth.example.com/"), json!(["https://auth.example.com"]), json!("x")]
        {
            assert!(matches!(checked("iss", issuer.clone()), Err(TokenRejection::Invalid(_))), "{issuer}");
        }
    }

    #[test]
    fn a_token_is_good_until_its_expiry_and_the_leeway() {
        assert!(checked("exp", json!(NOW - 59)).is_ok());
        assert_eq!(checked("exp", json!(NOW - 60)), Err(TokenRejection::Expired));
        assert_eq!(checked("exp", json!(0)), Err(TokenRejection::Expired));
    }

    #[test]
    fn a_token_is_good_from_its_beginning_less_the_leeway() {
        assert!(checked("nbf", json!(NOW + 60)).is_ok());
        assert!(checked("nbf", json!(NOW + 61)).is_err());
        assert!(checked("nbf", json!(NOW - 1)).is_ok());
    }

    #[test]
    fn times_that_cannot_be_read_are_refused() {
        for time in [json!("1900000000"), json!(-1), json!(1e300), json!([]), json!(true)] {
            assert!(matches!(checked("exp", time.clone()), Err(TokenRejection::Invalid(_))), "exp {time}");
            assert!(matches!(checked("nbf", time.clone()), Err(TokenRejection::Invalid(_))), "nbf {time}");
        }
        assert!(checked("exp", json!(null)).is_err());
    }

    #[test]
    fn a_time_may_have_a_fraction() {
        assert!(checked("exp", json!(1_800_000_000.5)).is_ok());
    }

    #[test]
    fn claims_without_a_subject_are_refused() {
        assert!(checked("sub", json!(null)).is_err());
        assert!(checked("sub", json!("")).is_err());
    }

    #[test]
    fn scopes_are_read_in_the_forms_that_servers_write() {
        assert_eq!(checked("scope", json!(["a", "b"])).unwrap().scopes().to_string(), "a b");
        assert_eq!(checked("scp", json!(["c"])).unwrap().scopes().to_string(), "c read write");
        assert_eq!(checked("scope", json!("a \"b\" c")).unwrap().scopes().to_string(), "a c");
        assert!(checked("scope", json!(null)).unwrap().scopes().is_empty());
    }
}
