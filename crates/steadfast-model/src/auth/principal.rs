//! The authenticated sender of a request.
//!
//! A principal is never sent to a peer. The type of principals is in this crate because two crates share it: the crate that
//! checks tokens, and the crate whose handlers read the principal.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Map, Value};

use crate::Scopes;

/// The authenticated sender of a request: what the authorization server says about the holder of the token. A principal does
/// not contain the token itself.
///
/// A layer that checks tokens, such as `BearerLayer` of `steadfast-auth`, puts the principal into the extensions of an HTTP
/// request. The HTTP service reads the principal from the extensions of the HTTP request, and handlers get it from
/// `Context::principal`. Clones of a `Principal` share their contents.
///
/// ```
/// use steadfast_model::Principal;
/// let alice = Principal::new("alice").with_scopes("files:read".parse()?);
/// assert_eq!(alice.name(), "alice");
/// assert!(alice.scopes().contains("files:read"));
/// # Ok::<(), steadfast_model::InvalidScope>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Principal(Arc<PrincipalFields>);

#[derive(Clone, PartialEq, Eq, Default)]
struct PrincipalFields {
    subject: Option<String>,
    client: Option<String>,
    issuer: Option<String>,
    scopes: Scopes,
    expires: Option<SystemTime>,
    claims: Map<String, Value>,
}

impl Principal {
    /// A principal that is a user, or a service, of this name.
    pub fn new(subject: impl Into<String>) -> Self {
        Self::of(Some(subject.into()), None)
    }

    /// A principal for an OAuth client that acts on its own behalf, without a user.
    pub fn client_only(client: impl Into<String>) -> Self {
        Self::of(None, Some(client.into()))
    }

    fn of(subject: Option<String>, client: Option<String>) -> Self {
        Self(Arc::new(PrincipalFields { subject, client, ..PrincipalFields::default() }))
    }

    /// The subject of the token (`sub`): the user or service that the token stands for. Two issuers may use the same subject
    /// for different users.
    pub fn subject(&self) -> Option<&str> {
        self.0.subject.as_deref()
    }

    /// The OAuth client that the token was issued to (`client_id`, or `azp`).
    pub fn client(&self) -> Option<&str> {
        self.0.client.as_deref()
    }

    /// A name for people and logs: the subject, or else the client. The name of a principal is not unique: see
    /// [`Principal::identity`].
    pub fn name(&self) -> &str {
        self.subject().or_else(|| self.client()).unwrap_or_default()
    }

    /// The authorization server that issued the token (`iss`).
    pub fn issuer(&self) -> Option<&str> {
        self.0.issuer.as_deref()
    }

    /// The scopes that the token carries.
    pub fn scopes(&self) -> &Scopes {
        &self.0.scopes
    }

    /// When the principal's access token expires.
    pub fn expires(&self) -> Option<SystemTime> {
        self.0.expires
    }

    /// The claim `name` of the principal's access token.
    pub fn claim(&self, name: &str) -> Option<&Value> {
        self.0.claims.get(name)
    }

    /// All claims of the principal's access token.
    pub fn claims(&self) -> &Map<String, Value> {
        &self.0.claims
    }

    /// A string that is unique to this principal and stays the same when its token is renewed: issuer, subject and client. The
    /// identity is used in cache keys, and to check that a request state or an MCP session is used only by the principal that
    /// it was given to.
    pub fn identity(&self) -> String {
        Value::from(vec![Value::from(self.issuer()), Value::from(self.subject()), Value::from(self.client())])
            .to_string()
    }

    /// Sets the OAuth client that the token was issued to.
    pub fn with_client(self, client: impl Into<String>) -> Self {
        self.change(|contents| contents.client = Some(client.into()))
    }

    /// Sets the authorization server that issued the token.
    pub fn with_issuer(self, issuer: impl Into<String>) -> Self {
        self.change(|contents| contents.issuer = Some(issuer.into()))
    }

    /// Sets the OAuth scopes of this principal.
    pub fn with_scopes(self, scopes: Scopes) -> Self {
        self.change(|contents| contents.scopes = scopes)
    }

    /// Sets the time at which the token expires.
    pub fn with_expiry(self, expires: SystemTime) -> Self {
        self.change(|contents| contents.expires = Some(expires))
    }

    /// Sets the claims of this principal's access token.
    pub fn with_claims(self, claims: Map<String, Value>) -> Self {
        self.change(|contents| contents.claims = claims)
    }

    fn change(mut self, change: impl FnOnce(&mut PrincipalFields)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }
}

/// Creates the principal of a user with this name, as [`Principal::new`] does.
impl From<String> for Principal {
    fn from(subject: String) -> Self {
        Self::new(subject)
    }
}

/// Creates the principal of a user with this name, as [`Principal::new`] does.
impl From<&str> for Principal {
    fn from(subject: &str) -> Self {
        Self::new(subject)
    }
}

/// The `Debug` output leaves out the values of the token's claims: they may be personal data.
impl fmt::Debug for Principal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Principal")
            .field("subject", &self.0.subject)
            .field("client", &self.0.client)
            .field("issuer", &self.0.issuer)
            .field("scopes", &self.0.scopes)
            .field("expires", &self.0.expires)
            .field("claims", &self.0.claims.keys().collect::<Vec<_>>())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_and_a_user_of_the_same_name_have_different_identities() {
        assert_ne!(Principal::new("alice").identity(), Principal::client_only("alice").identity());
    }

    #[test]
    fn a_name_with_quotes_cannot_pass_for_another_identity() {
        let plain = Principal::new("alice").with_client("app");
        let sly = Principal::new("alice\",\"app");
        assert_ne!(plain.identity(), sly.identity());
    }

    #[test]
    fn a_renewed_token_has_the_same_identity() {
        let first = Principal::new("alice").with_issuer("https://auth.example").with_expiry(SystemTime::UNIX_EPOCH);
        let second = Principal::new("alice").with_issuer("https://auth.example").with_scopes("more".parse().unwrap());
        assert_eq!(first.identity(), second.identity());
    }

    #[test]
    fn the_values_of_claims_are_not_in_its_debug_form() {
        let claims = Map::from_iter([("email".to_owned(), Value::from("alice@example.com"))]);
        let shown = format!("{:?}", Principal::new("alice").with_claims(claims));
        assert!(shown.contains("email") && !shown.contains("alice@example.com"), "{shown}");
    }
}
