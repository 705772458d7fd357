//! What the application says about itself once, for every authorization server that it meets.

use std::fmt;

use url::Url;

use super::credentials::Credential;
use super::dpop::Dpop;
use super::reach::{is_loopback, shown};
use super::{Error, Secret};
use crate::Scopes;

/// What a client is and how it gets tokens.
///
/// ```
/// use steadfast_auth::client::Profile;
///
/// # fn main() -> Result<(), steadfast_auth::client::Error> {
/// let profile = Profile::new("Example editor").document("https://editor.example.com/oauth/client.json")?;
/// # let _ = profile;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Profile {
    pub(super) name: String,
    pub(super) uri: Option<String>,
    pub(super) document: Option<(String, Credential)>,
    pub(super) registered: Option<PreRegistered>,
    pub(super) grant: Grant,
    pub(super) scopes: Option<Scopes>,
    pub(super) dpop: Dpop,
    pub(super) offline_access: bool,
    pub(super) before_metadata: bool,
}

/// A client that an authorization server already knows.
#[derive(Clone, Debug)]
pub struct PreRegistered {
    pub(super) issuer: Option<String>,
    pub(super) id: String,
    pub(super) credential: Credential,
}

impl PreRegistered {
    /// The client of this name, with what it shows to prove it.
    pub fn new(id: impl Into<String>, credential: Credential) -> Self {
        Self { issuer: None, id: id.into(), credential }
    }

    /// Says which authorization server knows it, exactly as that writes its name. Without this it is the first one that each
    /// server names: a server that is not to be trusted could have a secret, or the assertion of a workload, sent to itself.
    pub fn with_issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }
}

/// How tokens are got.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Grant {
    /// A user is asked, in a browser.
    #[default]
    AuthorizationCode,
    /// The client acts for itself, with credentials that were given to it beforehand.
    ClientCredentials,
    /// The organisation decides: an assertion of its identity provider is exchanged for one to the authorization server.
    EnterpriseManaged(IdentityProvider),
    /// The platform that a program runs on vouches for it with a JWT.
    WorkloadIdentity,
}

/// An organisation's identity provider, as enterprise-managed authorization needs it.
#[derive(Clone)]
pub struct IdentityProvider {
    pub(super) issuer: String,
    pub(super) token_endpoint: Url,
    pub(super) client_id: String,
    pub(super) credential: Credential,
    pub(super) subject_token_type: String,
}

/// Without the query of the endpoint: some put keys there.
impl fmt::Debug for IdentityProvider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("IdentityProvider")
            .field("issuer", &shown(&self.issuer))
            .field("token_endpoint", &shown(self.token_endpoint.as_str()))
            .field("client_id", &self.client_id)
            .field("credential", &self.credential)
            .field("subject_token_type", &self.subject_token_type)
            .finish()
    }
}

impl IdentityProvider {
    /// The provider of this name, its token endpoint, and the client's name there. Subjects are shown by ID tokens.
    pub fn new(issuer: impl Into<String>, token_endpoint: &str, client_id: impl Into<String>) -> Result<Self, Error> {
        Ok(Self {
            issuer: issuer.into(),
            token_endpoint: encrypted(token_endpoint)?,
            client_id: client_id.into(),
            credential: Credential::None,
            subject_token_type: String::from("urn:ietf:params:oauth:token-type:id_token"),
        })
    }

    /// What the client shows to the provider.
    pub fn credential(mut self, credential: Credential) -> Self {
        self.credential = credential;
        self
    }

    /// Subjects are shown by SAML assertions.
    pub fn saml(mut self) -> Self {
        self.subject_token_type = String::from("urn:ietf:params:oauth:token-type:saml2");
        self
    }
}

impl Profile {
    /// A client of this name that asks its user, registers itself where it has to, and is bound to keys where it must be.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            uri: None,
            document: None,
            registered: None,
            grant: Grant::AuthorizationCode,
            scopes: None,
            dpop: Dpop::default(),
            offline_access: true,
            before_metadata: true,
        }
    }

    /// Whether the program itself says that this host is to be asked.
    pub(super) fn names(&self, host: &str) -> bool {
        let issuer = self.registered.as_ref().and_then(|registered| registered.issuer.as_deref());
        let issuer = issuer.and_then(|issuer| Url::parse(issuer).ok());
        let provider = match &self.grant {
            Grant::EnterpriseManaged(provider) => Some(&provider.token_endpoint),
            _ => None,
        };
        issuer.as_ref().into_iter().chain(provider).any(|url| url.host_str() == Some(host))
    }

    /// The home page of the client.
    pub fn uri(mut self, uri: impl Into<String>) -> Self {
        self.uri = Some(uri.into());
        self
    }

    /// The client publishes a document about itself, and its URL is its name wherever that is understood.
    pub fn document(self, url: &str) -> Result<Self, Error> {
        self.document_with(url, Credential::None)
    }

    /// The same for a client whose document names a key.
    pub fn document_with(mut self, url: &str, credential: Credential) -> Result<Self, Error> {
        let parsed = Url::parse(url).map_err(|_| Error::UnsafeUrl(shown(url)))?;
        let plain = parsed.username().is_empty() && parsed.password().is_none() && parsed.fragment().is_none();
        if parsed.scheme() != "https" || parsed.path() == "/" || !plain {
            return Err(Error::UnsafeUrl(shown(url)));
        }
        self.document = Some((url.to_owned(), credential));
        Ok(self)
    }

    /// The client is known already.
    pub fn registered(mut self, registered: PreRegistered) -> Self {
        self.registered = Some(registered);
        self
    }

    /// How tokens are got.
    pub fn grant(mut self, grant: Grant) -> Self {
        self.grant = grant;
        self
    }

    /// Scopes to ask for besides those that the server wants.
    pub fn scopes(mut self, scopes: Scopes) -> Self {
        self.scopes = Some(scopes);
        self
    }

    /// Whether tokens are bound to a key.
    pub fn dpop(mut self, dpop: Dpop) -> Self {
        self.dpop = dpop;
        self
    }

    /// Whether `offline_access` is asked for where it is offered, so that a refresh token is issued. On by default.
    pub fn offline_access(mut self, wanted: bool) -> Self {
        self.offline_access = wanted;
        self
    }

    /// Whether servers of revision 2025-03-26 are understood, which are their own authorization servers and may publish
    /// nothing about it. On by default.
    pub fn before_metadata(mut self, understood: bool) -> Self {
        self.before_metadata = understood;
        self
    }
}

/// A URL that the application chose itself: encrypted or on this machine.
fn encrypted(text: &str) -> Result<Url, Error> {
    let url = Url::parse(text).map_err(|_| Error::UnsafeUrl(shown(text)))?;
    let encrypted = url.scheme() == "https" || (url.scheme() == "http" && is_loopback(&url));
    if encrypted { Ok(url) } else { Err(Error::UnsafeUrl(shown(text))) }
}

/// Shorthand for a client with a secret.
impl From<(&str, &str)> for PreRegistered {
    fn from((id, secret): (&str, &str)) -> Self {
        Self::new(id, Credential::Secret(Secret::new(secret)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_document_has_an_encrypted_url_with_a_path() {
        assert!(Profile::new("x").document("https://example.com/client.json").is_ok());
        for bad in
            ["http://example.com/c", "https://example.com", "https://example.com/", "https://u:p@example.com/c", "c"]
        {
            assert!(Profile::new("x").document(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn no_secret_is_in_the_debug_form() {
        let profile = Profile::new("x").registered(("me", "s3cr3t").into());
        assert!(!format!("{profile:?}").contains("s3cr3t"));
    }
}
