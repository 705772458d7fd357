//! Where to connect, and how.

use std::io;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};

use super::authorize::Authorize;
use super::fetch::{Fetch, ReqwestFetch};
use super::shared::Shared;
use crate::runtime::Runtime;

/// A server at a URL.
///
/// ```no_run
/// # async fn example() -> Result<(), steadfast::Error> {
/// use steadfast::Client;
/// use steadfast::transport::http_client::HttpTarget;
///
/// let client = Client::connect("https://example.org/mcp").await?;
/// let client = Client::connect(HttpTarget::new("https://example.org/mcp").header("x-team", "weather")).await?;
/// # Ok(()) }
/// ```
///
/// Certificates are checked with what the operating system trusts. A redirect is followed only to the same origin, so that
/// nobody else is sent what was meant for this server.
#[derive(Clone)]
pub struct HttpTarget {
    pub(super) url: Result<reqwest::Url, String>,
    pub(super) headers: HeaderMap,
    pub(super) client: Option<reqwest::Client>,
    pub(super) fetch: Option<Arc<dyn Fetch>>,
    pub(super) authorize: Option<Arc<dyn Authorize>>,
    /// What was wrong with a header.
    pub(super) problem: Option<String>,
}

impl HttpTarget {
    /// The server's endpoint.
    pub fn new(url: impl AsRef<str>) -> Self {
        let url = reqwest::Url::parse(url.as_ref()).map_err(|error| format!("not a URL: {error}"));
        let url = url.and_then(|url| match url.scheme() {
            "http" | "https" => Ok(url),
            other => Err(format!("`{other}:` is not a scheme of HTTP")),
        });
        Self { url, headers: HeaderMap::new(), client: None, fetch: None, authorize: None, problem: None }
    }

    /// A header of every request. It is not shown in logs.
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        let parsed = HeaderName::try_from(name.as_ref()).ok().zip(HeaderValue::try_from(value.as_ref()).ok());
        match parsed {
            Some((name, mut value)) => {
                value.set_sensitive(true);
                self.headers.append(name, value);
            }
            None => self.problem = Some(format!("`{}` cannot be a header", name.as_ref())),
        }
        self
    }

    /// An HTTP client of your own: its proxies, its certificates, its pool. How it follows redirects is then its own matter.
    pub fn client(mut self, client: reqwest::Client) -> Self {
        self.client = Some(client);
        self
    }

    /// Something else than reqwest makes the requests. How redirects are followed is then its own matter, and the rest of what
    /// is said here about connections too.
    pub fn fetch(mut self, fetch: impl Fetch) -> Self {
        self.fetch = Some(Arc::new(fetch));
        self
    }

    /// Who brings the headers that let requests in.
    pub fn authorize(mut self, authorize: impl Authorize) -> Self {
        self.authorize = Some(Arc::new(authorize));
        self
    }

    /// One pool of connections for all that clone it.
    pub(crate) fn with_one_pool(mut self) -> Self {
        // What is wrong with it is said when it is opened.
        if self.fetch.is_none() {
            self.fetch = ReqwestFetch::new(self.client.clone()).ok().map(|fetch| Arc::new(fetch) as Arc<dyn Fetch>);
        }
        self
    }

    /// What it takes to make requests, for messages of at most that length.
    pub(super) fn resolve(self, longest: usize, runtime: Arc<dyn Runtime>) -> io::Result<Shared> {
        let usage = |message: String| io::Error::new(io::ErrorKind::InvalidInput, message);
        let url = self.url.map_err(usage)?;
        if let Some(problem) = self.problem {
            return Err(usage(problem));
        }
        let fetch = match self.fetch {
            Some(fetch) => fetch,
            None => Arc::new(ReqwestFetch::new(self.client)?),
        };
        Ok(Shared::new(url, self.headers, fetch, self.authorize, longest, runtime))
    }
}

/// Never shows a header, nor what of the URL may be a secret.
impl std::fmt::Debug for HttpTarget {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let origin = self.url.as_ref().map(|url| url.origin().ascii_serialization());
        formatter.debug_struct("HttpTarget").field("origin", &origin).finish_non_exhaustive()
    }
}
