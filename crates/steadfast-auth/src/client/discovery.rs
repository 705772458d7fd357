//! Discovery: the metadata of the protected resource (RFC 9728) and of its authorization server (RFC 8414, OpenID Connect
//! Discovery), the URLs to try and their order, and the validation of the documents.

use std::collections::VecDeque;

use serde::{Deserialize, Deserializer};
use url::Url;

use super::Error;
use super::scope::OFFLINE_ACCESS;
use super::url_policy::{UrlPolicy, redact_url};
use crate::Scopes;

const RESOURCE: &str = "protected resource metadata";
const SERVER: &str = "authorization server metadata";

/// The URLs to request the protected resource metadata of an MCP server from, in order. If the server's challenge names a URL,
/// it is the only one; otherwise these are the well-known URLs, the one with the server's path first.
pub(super) fn resource_metadata_urls(
    server: &Url,
    named: Option<&str>,
    url_policy: UrlPolicy,
) -> Result<VecDeque<Url>, Error> {
    if let Some(named) = named {
        return Ok(VecDeque::from([url_policy.check(named)?]));
    }
    let root = well_known(server, "oauth-protected-resource", "");
    let path = server.path().trim_end_matches('/');
    let mut urls = VecDeque::new();
    if !path.is_empty() {
        let mut url = well_known(server, "oauth-protected-resource", path);
        url.set_query(server.query());
        urls.push_back(url);
    }
    urls.push_back(root);
    Ok(urls)
}

/// The URLs to request the metadata of an authorization server from, in the order in which they are tried.
pub(super) fn server_metadata_urls(issuer: &str, url_policy: UrlPolicy) -> Result<VecDeque<Url>, Error> {
    let url = url_policy.check(issuer)?;
    if url.query().is_some() {
        return Err(Error::Invalid { what: RESOURCE, problem: "lists an authorization server whose URL has a query" });
    }
    let path = url.path().trim_end_matches('/');
    let mut urls = VecDeque::from([
        well_known(&url, "oauth-authorization-server", path),
        well_known(&url, "openid-configuration", path),
    ]);
    if !path.is_empty() {
        let mut appended = url.clone();
        appended.set_path(&format!("{path}/.well-known/openid-configuration"));
        urls.push_back(appended);
    }
    Ok(urls)
}

/// For an MCP server of revision 2025-03-26, which is its own authorization server: returns the server's origin as the issuer,
/// and the URLs of its authorization server metadata.
pub(super) fn own_authorization_server(server: &Url) -> (String, VecDeque<Url>) {
    let url = well_known(server, "oauth-authorization-server", "");
    (server.origin().ascii_serialization(), VecDeque::from([url]))
}

fn well_known(base: &Url, suffix: &str, path: &str) -> Url {
    let mut url = base.clone();
    url.set_query(None);
    url.set_path(&format!("/.well-known/{suffix}{path}"));
    url
}

/// The protected resource metadata of an MCP server, as the client received it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProtectedResourceMetadata {
    /// The resource identifier exactly as in the metadata document, sent as the `resource` parameter of every token request.
    pub(super) resource: String,
    pub(super) authorization_servers: Vec<String>,
    pub(super) scopes: Option<Scopes>,
    pub(super) dpop_required: bool,
}

#[derive(Deserialize)]
struct ProtectedResourceMetadataJson {
    resource: String,
    #[serde(default, deserialize_with = "or_default")]
    authorization_servers: Vec<String>,
    scopes_supported: Option<Vec<String>>,
    #[serde(default, deserialize_with = "or_default")]
    dpop_bound_access_tokens_required: bool,
}

impl ProtectedResourceMetadata {
    /// Parses the protected resource metadata of an MCP server. Returns `None` if the document is not protected
    /// resource metadata at all.
    pub(super) fn read(document: &[u8], server: &Url) -> Result<Option<Self>, Error> {
        let Ok(document) = serde_json::from_slice::<ProtectedResourceMetadataJson>(document) else { return Ok(None) };
        if !covers(&document.resource, server) {
            return Err(Error::ResourceMismatch { found: redact_url(&document.resource) });
        }
        if document.authorization_servers.is_empty() {
            return Err(Error::Invalid { what: RESOURCE, problem: "lists no `authorization_servers`" });
        }
        let scopes = document.scopes_supported.map(|scopes| Scopes::lenient(scopes.iter().map(String::as_str)));
        Ok(Some(Self {
            resource: document.resource,
            authorization_servers: document.authorization_servers,
            scopes,
            dpop_required: document.dpop_bound_access_tokens_required,
        }))
    }

    /// For an MCP server without protected resource metadata: the URL of the server becomes its resource identifier.
    pub(super) fn without_metadata(server: &Url, text: &str, issuer: String) -> Self {
        // The URL parser adds a slash to an empty path.
        let resource = if server.path() == "/" { text.trim_end_matches('/') } else { text };
        Self { resource: resource.to_owned(), authorization_servers: vec![issuer], scopes: None, dpop_required: false }
    }

    /// Chooses an authorization server of the resource: one that the client already knows, or else the first that the metadata
    /// lists.
    pub(super) fn choose<'a>(&'a self, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
        let is_listed = |issuer: &&str| self.authorization_servers.iter().any(|listed| listed == issuer);
        known.into_iter().find(is_listed).or_else(|| self.authorization_servers.first().map(String::as_str))
    }
}

/// Whether the resource identifier is the URL of the MCP server or a prefix of that URL.
fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let path = resource.path().trim_end_matches('/');
    let inside = server.path().strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let same_query = resource.query().is_none() || resource.query() == server.query();
    resource.fragment().is_none() && resource.origin() == server.origin() && inside && same_query
}

/// The metadata of an authorization server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AuthorizationServerMetadata {
    /// The issuer identifier of the authorization server, compared as text and never as a URL.
    pub(super) issuer: String,
    pub(super) authorization_endpoint: Option<Url>,
    pub(super) token_endpoint: Url,
    pub(super) registration_endpoint: Option<Url>,
    pub(super) revocation_endpoint: Option<Url>,
    pub(super) token_auth_methods: Option<Vec<String>>,
    pub(super) has_pkce: bool,
    pub(super) sends_issuer: bool,
    pub(super) reads_client_documents: bool,
    pub(super) has_offline_access: bool,
    pub(super) has_dpop: bool,
}

#[derive(Deserialize)]
struct AuthorizationServerMetadataJson {
    issuer: String,
    authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
    registration_endpoint: Option<String>,
    revocation_endpoint: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    scopes_supported: Vec<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default, deserialize_with = "or_default")]
    code_challenge_methods_supported: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    authorization_response_iss_parameter_supported: bool,
    #[serde(default, deserialize_with = "or_default")]
    client_id_metadata_document_supported: bool,
    #[serde(default, deserialize_with = "or_default")]
    dpop_signing_alg_values_supported: Vec<String>,
}

/// Deserializes null as the default value, because some servers send null for an absent member of their metadata.
pub(super) fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl AuthorizationServerMetadata {
    /// Parses the metadata document of this issuer. Returns `None` if the document is not authorization server metadata at all.
    pub(super) fn read(document: &[u8], issuer: &str, url_policy: UrlPolicy) -> Result<Option<Self>, Error> {
        let Ok(document) = serde_json::from_slice::<AuthorizationServerMetadataJson>(document) else { return Ok(None) };
        if document.issuer != issuer {
            return Err(Error::IssuerMismatch { expected: redact_url(issuer), found: redact_url(&document.issuer) });
        }
        let has = |list: &[String], value: &str| list.iter().any(|item| item == value);
        let endpoint = |text: &Option<String>| text.as_deref().map(|text| url_policy.check(text)).transpose();
        let Some(token_endpoint) = endpoint(&document.token_endpoint)? else {
            return Err(Error::Invalid { what: SERVER, problem: "has no `token_endpoint`" });
        };
        Ok(Some(Self {
            authorization_endpoint: endpoint(&document.authorization_endpoint)?,
            token_endpoint,
            registration_endpoint: endpoint(&document.registration_endpoint)?,
            // An unsafe revocation endpoint is ignored, since it must not prevent a login.
            revocation_endpoint: endpoint(&document.revocation_endpoint).ok().flatten(),
            has_pkce: has(&document.code_challenge_methods_supported, "S256"),
            sends_issuer: document.authorization_response_iss_parameter_supported,
            reads_client_documents: document.client_id_metadata_document_supported,
            has_offline_access: has(&document.scopes_supported, OFFLINE_ACCESS),
            has_dpop: has(&document.dpop_signing_alg_values_supported, "ES256"),
            token_auth_methods: document.token_endpoint_auth_methods_supported,
            issuer: document.issuer,
        }))
    }

    /// For an MCP server of revision 2025-03-26 without authorization server metadata: the default endpoints of that revision,
    /// which requires PKCE.
    pub(super) fn with_default_endpoints(server: &Url, issuer: String) -> Self {
        let endpoint = |path: &str| {
            let mut url = server.clone();
            url.set_query(None);
            url.set_path(path);
            url
        };
        Self {
            issuer,
            authorization_endpoint: Some(endpoint("/authorize")),
            token_endpoint: endpoint("/token"),
            registration_endpoint: Some(endpoint("/register")),
            revocation_endpoint: None,
            token_auth_methods: None,
            has_pkce: true,
            sends_issuer: false,
            reads_client_documents: false,
            has_offline_access: false,
            has_dpop: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn outside() -> UrlPolicy {
        UrlPolicy::for_server(&url("https://mcp.example.com/mcp")).unwrap()
    }

    fn texts(urls: VecDeque<Url>) -> Vec<String> {
        urls.into_iter().map(String::from).collect()
    }

    #[test]
    fn a_named_document_is_the_only_one_asked_for() {
        let urls = resource_metadata_urls(&url("https://mcp.example.com/mcp"), Some("https://a.example/m"), outside());
        assert_eq!(texts(urls.unwrap()), ["https://a.example/m"]);
    }

    #[test]
    fn the_well_known_place_of_the_path_comes_before_the_root() {
        let urls = resource_metadata_urls(&url("https://mcp.example.com/public/mcp/"), None, outside());
        assert_eq!(
            texts(urls.unwrap()),
            [
                "https://mcp.example.com/.well-known/oauth-protected-resource/public/mcp",
                "https://mcp.example.com/.well-known/oauth-protected-resource"
            ]
        );
        let urls = resource_metadata_urls(&url("https://mcp.example.com"), None, outside());
        assert_eq!(texts(urls.unwrap()), ["https://mcp.example.com/.well-known/oauth-protected-resource"]);
    }

    #[test]
    fn server_metadata_is_looked_for_in_the_order_of_the_specification() {
        assert_eq!(
            texts(server_metadata_urls("https://auth.example.com/tenant1", outside()).unwrap()),
            [
                "https://auth.example.com/.well-known/oauth-authorization-server/tenant1",
                "https://auth.example.com/.well-known/openid-configuration/tenant1",
                "https://auth.example.com/tenant1/.well-known/openid-configuration"
            ]
        );
        assert_eq!(
            texts(server_metadata_urls("https://auth.example.com", outside()).unwrap()),
            [
                "https://auth.example.com/.well-known/oauth-authorization-server",
                "https://auth.example.com/.well-known/openid-configuration"
            ]
        );
    }

    #[test]
    fn the_resource_is_the_server_or_around_it() {
        let server = url("https://mcp.example.com/public/mcp");
        for good in [
            "https://mcp.example.com/public/mcp",
            "https://mcp.example.com",
            "https://mcp.example.com/public/",
            "HTTPS://MCP.example.com:443/public",
        ] {
            assert!(covers(good, &server), "{good}");
        }
        for bad in [
            "https://evil.example.com/public/mcp",
            "http://mcp.example.com/public/mcp",
            "https://mcp.example.com:8443/public/mcp",
            "https://mcp.example.com/pub",
            "https://mcp.example.com/public/mcp/more",
            "https://mcp.example.com/public/mcp#x",
            "https://mcp.example.com/public/mcp?x",
            "mcp.example.com",
        ] {
            assert!(!covers(bad, &server), "{bad}");
        }
    }

    #[test]
    fn the_name_of_the_resource_is_kept_as_it_is_written() {
        let document =
            br#"{"resource":"https://mcp.example.com","authorization_servers":["https://auth.example.com"]}"#;
        let found = ProtectedResourceMetadata::read(document, &url("https://mcp.example.com/mcp")).unwrap().unwrap();
        assert_eq!(found.resource, "https://mcp.example.com");
    }

    #[test]
    fn metadata_of_another_resource_is_refused() {
        let document = br#"{"resource":"https://evil.example.com/mcp","authorization_servers":["https://a.example"]}"#;
        let found = ProtectedResourceMetadata::read(document, &url("https://mcp.example.com/mcp"));
        assert_eq!(found, Err(Error::ResourceMismatch { found: String::from("https://evil.example.com/mcp") }));
    }

    #[test]
    fn metadata_of_another_issuer_is_refused_even_if_only_a_slash_differs() {
        for found in ["https://attacker.example", "https://auth.example.com/", "https://AUTH.example.com"] {
            let document = format!(r#"{{"issuer":"{found}","token_endpoint":"https://auth.example.com/token"}}"#);
            let read = AuthorizationServerMetadata::read(document.as_bytes(), "https://auth.example.com", outside());
            assert!(matches!(read, Err(Error::IssuerMismatch { .. })), "{found}");
        }
    }

    #[test]
    fn an_endpoint_in_the_clear_is_refused() {
        let document = br#"{"issuer":"https://a.example","token_endpoint":"http://a.example/token"}"#;
        let read = AuthorizationServerMetadata::read(document, "https://a.example", outside());
        assert!(matches!(read, Err(Error::UnsafeUrl(_))));
    }

    #[test]
    fn null_is_as_good_as_nothing() {
        let document =
            br#"{"issuer":"https://a.example","token_endpoint":"https://a.example/token","scopes_supported":null,
            "code_challenge_methods_supported":null,"authorization_response_iss_parameter_supported":null,
            "client_id_metadata_document_supported":null,"dpop_signing_alg_values_supported":null}"#;
        let read = AuthorizationServerMetadata::read(document, "https://a.example", outside()).unwrap().unwrap();
        assert!(!read.has_pkce && !read.sends_issuer && !read.reads_client_documents && !read.has_dpop);
        let document = br#"{"resource":"https://a.example","authorization_servers":["https://b.example"],
            "scopes_supported":null,"dpop_bound_access_tokens_required":null}"#;
        assert!(ProtectedResourceMetadata::read(document, &url("https://a.example")).unwrap().is_some());
    }

    #[test]
    fn a_page_that_is_no_metadata_is_not_there() {
        assert_eq!(AuthorizationServerMetadata::read(b"<html>", "https://a.example", outside()), Ok(None));
        assert_eq!(ProtectedResourceMetadata::read(b"{}", &url("https://a.example")), Ok(None));
    }

    #[test]
    fn an_authorization_server_that_knows_the_client_is_preferred() {
        let resource = ProtectedResourceMetadata {
            resource: String::new(),
            authorization_servers: vec!["https://a".into(), "https://b".into()],
            scopes: None,
            dpop_required: false,
        };
        assert_eq!(resource.choose(["https://c", "https://b"]), Some("https://b"));
        assert_eq!(resource.choose(["https://c"]), Some("https://a"));
    }
}
