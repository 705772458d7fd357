//! The settings of an OAuth client, for all authorization servers.

use std::fmt;

use url::Url;

use super::credentials::ClientCredential;
use super::dpop::ClientDpopPolicy;
use super::url_policy::{is_loopback, redact_url};
use super::{Error, Secret};
use crate::Scopes;

/// Describes an OAuth client and how it obtains access tokens.
///
/// ```
/// use steadfast_auth::client::OAuthClientSettings;
///
/// # fn main() -> Result<(), steadfast_auth::client::Error> {
/// let profile = OAuthClientSettings::new("Example editor").document("https://editor.example.com/oauth/client.json")?;
/// # let _ = profile;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct OAuthClientSettings {
    pub(super) name: String,
    pub(super) uri: Option<String>,
    pub(super) document: Option<(String, ClientCredential)>,
    pub(super) registered: Option<PreRegisteredClient>,
    pub(super) grant: Grant,
    pub(super) scopes: Option<Scopes>,
    pub(super) dpop: ClientDpopPolicy,
    pub(super) offline_access: bool,
    pub(super) legacy_discovery: bool,
}

/// A client that is registered at an authorization server already.
#[derive(Clone, Debug)]
pub struct PreRegisteredClient {
    pub(super) issuer: Option<String>,
    pub(super) id: String,
    pub(super) credential: ClientCredential,
}

impl PreRegisteredClient {
    /// A pre-registered OAuth client with this client id and credential.
    pub fn new(id: impl Into<String>, credential: ClientCredential) -> Self {
        Self { issuer: None, id: id.into(), credential }
    }

    /// Sets the issuer identifier of the authorization server, exactly as in its metadata. If the issuer is not set, the client
    /// uses an authorization server that the MCP server's metadata lists: an untrusted MCP server could then have the client
    /// secret, or the assertion of a workload, sent to itself.
    pub fn with_issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }
}

/// The OAuth grant with which the client obtains tokens.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Grant {
    /// The user logs in with a browser.
    #[default]
    AuthorizationCode,
    /// The client acts for itself, with its own credentials.
    ClientCredentials,
    /// The organisation's identity provider exchanges the user's identity for an assertion to the authorization server.
    EnterpriseManaged(IdentityProvider),
    /// The platform that the client program runs on identifies the program with a JWT.
    WorkloadIdentity,
}

/// An organisation's identity provider, for enterprise-managed authorization.
#[derive(Clone)]
pub struct IdentityProvider {
    pub(super) issuer: String,
    pub(super) token_endpoint: Url,
    pub(super) client_id: String,
    pub(super) credential: ClientCredential,
    pub(super) subject_token_type: String,
}

/// The debug output omits the query of the identity provider's endpoint, which may contain API keys.
impl fmt::Debug for IdentityProvider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("IdentityProvider")
            .field("issuer", &redact_url(&self.issuer))
            .field("token_endpoint", &redact_url(self.token_endpoint.as_str()))
            .field("client_id", &self.client_id)
            .field("credential", &self.credential)
            .field("subject_token_type", &self.subject_token_type)
            .finish()
    }
}

impl IdentityProvider {
    /// Describes an identity provider by its issuer identifier, its token endpoint, and the client id of the client
    /// there. The client sends ID tokens as subject tokens to the identity provider, unless [`saml`](Self::saml) is
    /// called.
    pub fn new(issuer: impl Into<String>, token_endpoint: &str, client_id: impl Into<String>) -> Result<Self, Error> {
        Ok(Self {
            issuer: issuer.into(),
            token_endpoint: encrypted(token_endpoint)?,
            client_id: client_id.into(),
            credential: ClientCredential::None,
            subject_token_type: String::from("urn:ietf:params:oauth:token-type:id_token"),
        })
    }

    /// Sets the credential of the client at the identity provider.
    pub fn credential(mut self, credential: ClientCredential) -> Self {
        self.credential = credential;
        self
    }

    /// Makes the client send SAML assertions instead of ID tokens as subject tokens to the identity provider.
    pub fn saml(mut self) -> Self {
        self.subject_token_type = String::from("urn:ietf:params:oauth:token-type:saml2");
        self
    }
}

impl OAuthClientSettings {
    /// Creates the settings of a client with this display name, which asks its user, registers itself where necessary, and uses
    /// DPoP where required.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            uri: None,
            document: None,
            registered: None,
            grant: Grant::AuthorizationCode,
            scopes: None,
            dpop: ClientDpopPolicy::default(),
            offline_access: true,
            legacy_discovery: true,
        }
    }

    /// Whether the application itself configured this host, as opposed to a host from a server's metadata.
    pub(super) fn configures_host(&self, host: &str) -> bool {
        let issuer = self.registered.as_ref().and_then(|registered| registered.issuer.as_deref());
        let issuer = issuer.and_then(|issuer| Url::parse(issuer).ok());
        let provider = match &self.grant {
            Grant::EnterpriseManaged(provider) => Some(&provider.token_endpoint),
            _ => None,
        };
        issuer.as_ref().into_iter().chain(provider).any(|url| url.host_str() == Some(host))
    }

    /// Sets the URL of the client's home page, which the client registers with.
    pub fn uri(mut self, uri: impl Into<String>) -> Self {
        self.uri = Some(uri.into());
        self
    }

    /// Sets the URL of the client ID metadata document. The URL is the client id at authorization servers that support such
    /// documents.
    pub fn document(self, url: &str) -> Result<Self, Error> {
        self.document_with(url, ClientCredential::None)
    }

    /// Like [`document`](Self::document), for a client whose metadata document has a public key.
    pub fn document_with(mut self, url: &str, credential: ClientCredential) -> Result<Self, Error> {
        let parsed = Url::parse(url).map_err(|_| Error::UnsafeUrl(redact_url(url)))?;
        let plain = parsed.username().is_empty() && parsed.password().is_none() && parsed.fragment().is_none();
        if parsed.scheme() != "https" || parsed.path() == "/" || !plain {
            return Err(Error::UnsafeUrl(redact_url(url)));
        }
        self.document = Some((url.to_owned(), credential));
        Ok(self)
    }

    /// Sets the pre-registered client.
    pub fn registered(mut self, registered: PreRegisteredClient) -> Self {
        self.registered = Some(registered);
        self
    }

    /// Sets the OAuth grant with which the client obtains tokens.
    pub fn grant(mut self, grant: Grant) -> Self {
        self.grant = grant;
        self
    }

    /// Sets scopes to request in addition to those that the MCP server requires.
    pub fn scopes(mut self, scopes: Scopes) -> Self {
        self.scopes = Some(scopes);
        self
    }

    /// Sets when the client requests tokens that are bound to a key (DPoP).
    pub fn dpop(mut self, dpop: ClientDpopPolicy) -> Self {
        self.dpop = dpop;
        self
    }

    /// Sets whether the scope `offline_access` is requested where it is supported, to get a refresh token. On by default.
    pub fn offline_access(mut self, requested: bool) -> Self {
        self.offline_access = requested;
        self
    }

    /// Sets whether MCP servers of revision 2025-03-26 are supported, which are their own authorization servers and may have no
    /// metadata. On by default.
    pub fn legacy_discovery(mut self, supported: bool) -> Self {
        self.legacy_discovery = supported;
        self
    }
}

/// Parses a URL that the application configured, which must be encrypted or on this machine.
fn encrypted(text: &str) -> Result<Url, Error> {
    let url = Url::parse(text).map_err(|_| Error::UnsafeUrl(redact_url(text)))?;
    let encrypted = url.scheme() == "https" || (url.scheme() == "http" && is_loopback(&url));
    if encrypted { Ok(url) } else { Err(Error::UnsafeUrl(redact_url(text))) }
}

/// Shorthand for a pre-registered client with a client id and a client secret.
impl From<(&str, &str)> for PreRegisteredClient {
    fn from((id, secret): (&str, &str)) -> Self {
        Self::new(id, ClientCredential::Secret(Secret::new(secret)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_document_has_an_encrypted_url_with_a_path() {
        assert!(OAuthClientSettings::new("x").document("https://example.com/client.json").is_ok());
        for bad in
            ["http://example.com/c", "https://example.com", "https://example.com/", "https://u:p@example.com/c", "c"]
        {
            assert!(OAuthClientSettings::new("x").document(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn no_secret_is_in_the_debug_form() {
        let profile = OAuthClientSettings::new("x").registered(("me", "s3cr3t").into());
        assert!(!format!("{profile:?}").contains("s3cr3t"));
    }
}
