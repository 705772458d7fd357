//! How this crate asks an authorization server something: one request, one answer of bounded size.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use http::{Request, Response, Uri};

/// What an [`HttpClient`] brings back, later.
pub type Reply<'a> = Pin<Box<dyn Future<Output = Result<Response<Payload>, HttpError>> + Send + 'a>>;

/// Sends one request and brings back the whole answer.
///
/// An implementation checks certificates, follows no redirect (a redirected introspection would hand a token to somebody
/// else), stops reading when the body has more than `limit` bytes, gives up after a while, and logs neither headers nor
/// bodies. If it looks names up itself, it goes no further inside than the server in the request's extensions is ([`NamedBy`]).
pub trait HttpClient: Send + Sync + 'static {
    /// Sends the request.
    fn send(&self, request: Request<Payload>, limit: usize) -> Reply<'_>;
}

impl<C: HttpClient + ?Sized> HttpClient for std::sync::Arc<C> {
    fn send(&self, request: Request<Payload>, limit: usize) -> Reply<'_> {
        (**self).send(request, limit)
    }
}

/// In the extensions of a request: the host of the server that sent us there. What a server out on the internet writes into its
/// metadata must not lead into a private network, and a URL does not say where its name leads.
///
/// It is not there if the program itself chose the URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedBy(String);

impl NamedBy {
    /// That server, by its name or its address.
    pub fn new(host: impl Into<String>) -> Self {
        Self(host.into())
    }

    /// The server.
    pub fn host(&self) -> &str {
        &self.0
    }
}

/// The body of a request or an answer. It may hold a token, so its `Debug` shows only how long it is.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Payload(Bytes);

impl Payload {
    /// The bytes.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    /// The bytes, to look at.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl<T: Into<Bytes>> From<T> for Payload {
    fn from(bytes: T) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Payload({} bytes)", self.0.len())
    }
}

/// Why there is no answer. The text is logged, so it must hold nothing of the request but where it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpError(String);

impl HttpError {
    /// An error that says this.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for HttpError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for HttpError {}

/// The URL of an authorization server's endpoint: `https`, or `http` to this machine itself.
pub(crate) fn endpoint(url: &str) -> Result<Uri, InsecureEndpoint> {
    let uri: Uri = url.parse().map_err(|_| InsecureEndpoint)?;
    let is_local = matches!(uri.host(), Some("localhost" | "127.0.0.1" | "[::1]"));
    match uri.scheme_str() {
        Some("https") => Ok(uri),
        Some("http") if is_local => Ok(uri),
        _ => Err(InsecureEndpoint),
    }
}

/// The URL of an endpoint is not one of an encrypted connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InsecureEndpoint;

impl fmt::Display for InsecureEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an endpoint of an authorization server begins with https://")
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
        let request = Request::new(Payload::from("token=s3cr3t"));
        let shown = format!("{request:?}");
        assert!(!shown.contains("s3cr3t") && shown.contains("12 bytes"), "{shown}");
    }
}
