//! The protected resource metadata of a server (RFC 9728), which refers clients to its authorization servers.

mod serve;

use std::fmt;

use bytes::Bytes;
use http::Uri;
use serde::Serialize;
use serde_json::Value;

use super::Scopes;
pub use serve::{MetadataLayer, MetadataService};

/// The well-known prefix of the path of the protected resource metadata, before the path of the resource.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The protected resource metadata of a server.
///
/// ```
/// use steadfast_auth::resource_server::ResourceMetadata;
///
/// let metadata = ResourceMetadata::new("https://mcp.example.com/mcp", ["https://auth.example.com"])?
///     .scopes("files:read files:write".parse()?)
///     .name("Files");
/// assert_eq!(metadata.url(), "https://mcp.example.com/.well-known/oauth-protected-resource/mcp");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResourceMetadata {
    resource: String,
    authorization_servers: Vec<String>,
    #[serde(skip_serializing_if = "Scopes::is_empty")]
    scopes_supported: Scopes,
    bearer_methods_supported: [&'static str; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_documentation: Option<String>,
    #[serde(flatten)]
    more: serde_json::Map<String, Value>,
    #[serde(skip)]
    location: ResourceUrlParts,
}

/// The parts of the resource's URL that make up the URL of its metadata.
#[derive(Clone, Debug, PartialEq)]
struct ResourceUrlParts {
    origin: String,
    path: String,
    query: Option<String>,
}

impl ResourceMetadata {
    /// Creates the metadata of the protected resource at this URL, whose access tokens are issued by these issuers.
    ///
    /// The resource is the URL of the MCP endpoint as clients see it: absolute, without a fragment. The URL of the resource is
    /// not normalized, since clients compare it as a string, and it is the audience of tokens.
    pub fn new<I>(resource: impl Into<String>, issuers: I) -> Result<Self, InvalidResourceMetadata>
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        let resource = resource.into();
        let location = ResourceUrlParts::of(&resource)?;
        let authorization_servers: Vec<String> = issuers.into_iter().map(Into::into).collect();
        if authorization_servers.is_empty() {
            return Err(InvalidResourceMetadata("at least one authorization server is required"));
        }
        for issuer in &authorization_servers {
            ResourceUrlParts::of(issuer)?;
        }
        Ok(Self {
            resource,
            authorization_servers,
            scopes_supported: Scopes::none(),
            bearer_methods_supported: ["header"],
            resource_name: None,
            resource_documentation: None,
            more: serde_json::Map::new(),
            location,
        })
    }

    /// Sets the scopes that clients should request at first: few, since clients can request more when they need them.
    pub fn scopes(mut self, scopes: Scopes) -> Self {
        self.scopes_supported = crate::scope::requestable(scopes);
        self
    }

    /// Sets the display name of the resource (`resource_name`).
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.resource_name = Some(name.into());
        self
    }

    /// Sets the URL of the resource's documentation for developers.
    pub fn documentation(mut self, url: impl Into<String>) -> Self {
        self.resource_documentation = Some(url.into());
        self
    }

    /// Adds a member to the metadata document. Members that [`ResourceMetadata`] writes itself are not replaced.
    pub fn member(mut self, name: &str, value: impl Into<Value>) -> Self {
        const OWN: [&str; 6] = [
            "resource",
            "authorization_servers",
            "scopes_supported",
            "bearer_methods_supported",
            "resource_name",
            "resource_documentation",
        ];
        if !OWN.contains(&name) {
            self.more.insert(name.to_owned(), value.into());
        }
        self
    }

    /// The URL of the resource, as it was given.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// The path of the metadata document: the well-known prefix, followed by the path of the resource.
    pub fn well_known_path(&self) -> String {
        format!("{WELL_KNOWN}{}", self.location.path)
    }

    /// The URL of the protected resource metadata document.
    pub fn url(&self) -> String {
        let url = format!("{}{}", self.location.origin, self.well_known_path());
        match &self.location.query {
            Some(query) => format!("{url}?{query}"),
            None => url,
        }
    }

    /// The document.
    pub fn json(&self) -> Bytes {
        // A map with string keys can always be serialized.
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    /// A tower layer that serves the metadata document, and passes all other requests on.
    pub fn layer(&self) -> MetadataLayer {
        MetadataLayer::new(self)
    }
}

impl ResourceUrlParts {
    fn of(url: &str) -> Result<Self, InvalidResourceMetadata> {
        if url.contains('#') {
            return Err(InvalidResourceMetadata("the URL of a resource or an issuer must not have a fragment"));
        }
        // The URL is quoted in a header.
        if url.contains(['"', '\\']) || !url.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(InvalidResourceMetadata(
                "the URL of a resource or an issuer must be printable ASCII without quotes",
            ));
        }
        let uri: Uri = url.parse().map_err(|_| InvalidResourceMetadata("not a URL"))?;
        let is_web = uri.scheme_str().is_some_and(|scheme| scheme == "https" || scheme == "http");
        let (true, Some(scheme), Some(authority)) = (is_web, uri.scheme_str(), uri.authority()) else {
            return Err(InvalidResourceMetadata("the URL of a resource or an issuer must begin with https://"));
        };
        if authority.as_str().contains('@') {
            return Err(InvalidResourceMetadata("the URL of a resource or an issuer must not have a user name"));
        }
        let path = if uri.path() == "/" { "" } else { uri.path() };
        Ok(Self {
            origin: format!("{scheme}://{authority}"),
            path: path.to_owned(),
            query: uri.query().map(ToOwned::to_owned),
        })
    }
}

/// Why protected resource metadata is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidResourceMetadata(&'static str);

impl fmt::Display for InvalidResourceMetadata {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}

impl std::error::Error for InvalidResourceMetadata {}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(resource: &str) -> ResourceMetadata {
        ResourceMetadata::new(resource, ["https://auth.example.com"]).unwrap()
    }

    #[test]
    fn the_path_of_the_resource_comes_behind_the_well_known_one() {
        for (resource, url) in [
            ("https://a.example", "https://a.example/.well-known/oauth-protected-resource"),
            ("https://a.example/", "https://a.example/.well-known/oauth-protected-resource"),
            ("https://a.example:8443/mcp", "https://a.example:8443/.well-known/oauth-protected-resource/mcp"),
            ("https://a.example/public/mcp/", "https://a.example/.well-known/oauth-protected-resource/public/mcp/"),
            ("https://a.example/mcp?tenant=1", "https://a.example/.well-known/oauth-protected-resource/mcp?tenant=1"),
            ("http://127.0.0.1:3210/mcp", "http://127.0.0.1:3210/.well-known/oauth-protected-resource/mcp"),
        ] {
            assert_eq!(metadata(resource).url(), url);
        }
    }

    #[test]
    fn the_resource_is_written_as_it_was_given() {
        for resource in
            ["https://A.example/MCP", "https://a.example/", "https://a.example", "https://a.example:443/x%2fy"]
        {
            let document: Value = serde_json::from_slice(&metadata(resource).json()).unwrap();
            assert_eq!(document["resource"], resource);
        }
    }

    #[test]
    fn the_document_has_what_was_said_and_nothing_else() {
        let document = metadata("https://a.example/mcp")
            .scopes("write read offline_access".parse().unwrap())
            .name("Files")
            .documentation("https://docs.example")
            .member("resource_policy_uri", "https://policy.example")
            .member("resource", "https://evil.example");
        let document: Value = serde_json::from_slice(&document.json()).unwrap();
        assert_eq!(
            document,
            serde_json::json!({
                "resource": "https://a.example/mcp",
                "authorization_servers": ["https://auth.example.com"],
                "scopes_supported": ["read", "write"],
                "bearer_methods_supported": ["header"],
                "resource_name": "Files",
                "resource_documentation": "https://docs.example",
                "resource_policy_uri": "https://policy.example",
            })
        );
    }

    #[test]
    fn what_is_no_canonical_resource_is_refused() {
        for wrong in [
            "mcp.example.com",
            "/mcp",
            "https://a.example#x",
            "ftp://a.example",
            "https://u:p@a.example",
            "https://a.example/\"x",
            "",
        ] {
            assert!(ResourceMetadata::new(wrong, ["https://auth.example.com"]).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn there_is_an_authorization_server() {
        assert!(ResourceMetadata::new("https://a.example", Vec::<String>::new()).is_err());
    }
}
