//! The trait of the HTTP client that this crate sends its OAuth requests with: one request, one response of bounded size.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use http::{Request, Response, Uri};

/// The future of a response, returned by [`HttpClient::send`].
pub type HttpClientFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Response<HttpClientBody>, HttpClientError>> + Send + 'a>>;

/// An HTTP client that sends a request and returns the whole response.
///
/// An implementation must verify certificates, follow no redirect (a redirected introspection would send a token to another
/// host), stop reading when the body exceeds `limit` bytes, have a timeout, and log neither headers nor bodies. An
/// implementation that resolves host names itself must not connect to a more private network than that of the
/// [`MetadataSourceHost`] in the request's extensions.
pub trait HttpClient: Send + Sync + 'static {
    /// Sends the request.
    fn send(&self, request: Request<HttpClientBody>, limit: usize) -> HttpClientFuture<'_>;
}

impl<C: HttpClient + ?Sized> HttpClient for std::sync::Arc<C> {
    fn send(&self, request: Request<HttpClientBody>, limit: usize) -> HttpClientFuture<'_> {
        (**self).send(request, limit)
    }
}

/// An extension of an HTTP request: the host of the MCP server whose metadata the request's URL comes from. The metadata of a
/// server on the internet must not make the client connect to a private network, and a URL does not tell what its host name
/// resolves to.
///
/// The extension is absent if the application itself chose the URL of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataSourceHost(String);

impl MetadataSourceHost {
    /// Creates the extension for the MCP server with this host name or address.
    pub fn new(host: impl Into<String>) -> Self {
        Self(host.into())
    }

    /// The host name or address of the MCP server.
    pub fn host(&self) -> &str {
        &self.0
    }
}

/// The body of an HTTP request or response. A body may contain a token, so the debug output shows only the length of the body.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct HttpClientBody(Bytes);

impl HttpClientBody {
    /// The bytes.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    /// The bytes, borrowed.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl<T: Into<Bytes>> From<T> for HttpClientBody {
    fn from(bytes: T) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Debug for HttpClientBody {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "HttpClientBody({} bytes)", self.0.len())
    }
}

/// Why a request of an [`HttpClient`] failed. The error text is logged, so it must contain nothing of the request
/// except its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpClientError(String);

impl HttpClientError {
    /// Creates an HTTP client error with this message.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for HttpClientError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for HttpClientError {}

/// Parses the URL of an endpoint of an authorization server: `https`, or `http` on this machine.
pub(crate) fn endpoint(url: &str) -> Result<Uri, InsecureEndpoint> {
    let uri: Uri = url.parse().map_err(|_| InsecureEndpoint)?;
    let is_local = matches!(uri.host(), Some("localhost" | "127.0.0.1" | "[::1]"));
    match uri.scheme_str() {
        Some("https") => Ok(uri),
        Some("http") if is_local => Ok(uri),
        _ => Err(InsecureEndpoint),
    }
}

/// The URL of an endpoint is not encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InsecureEndpoint;

impl fmt::Display for InsecureEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the URL of an authorization server endpoint must begin with https://")
    }
}

impl std::error::Error for InsecureEndpoint {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_encrypted_or_on_this_machine() {
        for good in
            ["https://auth.example.com/jwks", "http://127.0.0.1:9000/jwks", "http://localhost/", "http://[::1]:1/"]
        {
            assert!(endpoint(good).is_ok(), "{good}");
        }
        for bad in [
            "http://auth.example.com/jwks",
            "http://127.0.0.1.example.com/",
            "ftp://x/",
            "/jwks",
            "auth.example.com",
            "",
        ] {
            assert!(endpoint(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_payload_is_not_in_its_debug_form() {
        let request = Request::new(HttpClientBody::from("token=s3cr3t"));
        let shown = format!("{request:?}");
        assert!(!shown.contains("s3cr3t") && shown.contains("12 bytes"), "{shown}");
    }
}
