//! The URL of an MCP server, and a client's settings for connections to it.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::Url;
use steadfast_proto::connection::Limits;
use tokio::sync::watch;

use super::authorize::Authorize;
use super::fetch::network::ClientNetworkSettings;
use super::fetch::{ReqwestTransportFetch, TransportFetch, TransportFetchOnWorkerThreads};
#[cfg(feature = "legacy-sse")]
use super::legacy_sse::{ClientLegacySseState, ServerNeedsLegacySse};
use super::mirrored_headers::ClientToolHeaders;
use super::shared::HttpClientConnection;
use crate::runtime::Runtime;

/// An MCP server at a URL, with the settings for connections to it.
///
/// ```no_run
/// # async fn example() -> Result<(), steadfast::Error> {
/// use steadfast::Client;
/// use steadfast::transport::http::HttpTarget;
///
/// let client = Client::connect("https://example.org/mcp").await?;
/// let client = Client::connect(HttpTarget::new("https://example.org/mcp").header("x-team", "weather")).await?;
/// # Ok(()) }
/// ```
///
/// Cheap to clone. All clones of an `HttpTarget` share one pool of connections, and the knowledge whether the server
/// needs HTTP+SSE.
///
/// The certificate of the server is verified with the certificates that the operating system trusts, and those of
/// [`trust_certificate`](Self::trust_certificate). HTTP/2 is used over TLS if the server offers it. Redirects are
/// followed only within the same origin, so that no other server receives the request. Compressed HTTP responses of
/// the server are refused.
///
/// The client uses the proxies of the environment (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, with the exceptions of
/// `NO_PROXY`), except for servers on this machine, to which it connects directly.
#[derive(Clone)]
#[must_use = "no connection is opened until a client connects to the target"]
pub struct HttpTarget {
    url: Result<Url, String>,
    headers: HeaderMap,
    network: ClientNetworkSettings,
    fetch: Option<Arc<dyn TransportFetch>>,
    authorize: Option<Arc<dyn Authorize>>,
    #[cfg(feature = "legacy-sse")]
    only_legacy_sse: bool,
    /// The first problem with the settings of this target, which is reported when a client connects.
    problem: Option<String>,
    pool: Arc<Mutex<Option<reqwest::Client>>>,
    #[cfg(feature = "legacy-sse")]
    known: Arc<ServerNeedsLegacySse>,
}

impl HttpTarget {
    /// Creates a target for the server's endpoint at this URL.
    pub fn new(url: impl AsRef<str>) -> Self {
        let url = Url::parse(url.as_ref()).map_err(|error| format!("not a URL: {error}"));
        let url = url.and_then(|url| match url.scheme() {
            "http" | "https" => Ok(url),
            other => Err(format!("unsupported URL scheme `{other}:`, expected `http:` or `https:`")),
        });
        Self {
            url,
            headers: HeaderMap::new(),
            network: ClientNetworkSettings::default(),
            fetch: None,
            authorize: None,
            #[cfg(feature = "legacy-sse")]
            only_legacy_sse: false,
            problem: None,
            pool: Arc::default(),
            #[cfg(feature = "legacy-sse")]
            known: Arc::default(),
        }
    }

    /// Adds a header to every request. The header is not shown in logs. A header that the protocol or the HTTP
    /// connection uses is an error when a client connects.
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        let Ok(name) = HeaderName::try_from(name.as_ref()) else {
            // The name is not shown: it may be a whole header line, with a secret.
            self.note_problem("invalid header name".to_owned());
            return self;
        };
        match HeaderValue::try_from(value.as_ref()) {
            _ if is_reserved(&name) => self.note_problem(format!("the header `{name}` is reserved for the protocol")),
            Ok(mut value) => {
                value.set_sensitive(true);
                self.headers.append(name, value);
            }
            Err(_) => self.note_problem(format!("the value of the header `{name}` is invalid")),
        }
        self
    }

    /// Trusts a certificate authority in addition to those that the operating system trusts: one certificate in DER, or any
    /// number in PEM.
    ///
    /// ```no_run
    /// # fn example() -> std::io::Result<()> {
    /// use steadfast::transport::http::HttpTarget;
    ///
    /// let target = HttpTarget::new("https://tools.internal/mcp").trust_certificate(std::fs::read("authority.pem")?);
    /// # Ok(()) }
    /// ```
    pub fn trust_certificate(self, certificate: impl AsRef<[u8]>) -> Self {
        self.change_network(|network| network.trust(certificate.as_ref()))
    }

    /// Connects to the server through the proxy at `url`, wherever the server is and whatever the environment says.
    /// The URL of the proxy may hold a user name and a password.
    pub fn proxy(self, url: impl AsRef<str>) -> Self {
        self.change_network(|network| network.through(url.as_ref()))
    }

    /// Connects without a proxy, whatever the environment says.
    pub fn no_proxy(self) -> Self {
        self.change_network(|network| {
            network.directly();
            Ok(())
        })
    }

    /// Uses HTTP+SSE, the transport of 2024-11-05, without trying anything newer. The setting `legacy_sse` is not
    /// required: a server that supports only HTTP+SSE is detected, at the cost of two more requests.
    #[cfg(feature = "legacy-sse")]
    pub fn legacy_sse(mut self) -> Self {
        self.only_legacy_sse = true;
        self
    }

    /// Sends requests with an HTTP client of your own, which follows redirects by its own rules. The proxies and
    /// certificates of this target have no effect on such an HTTP client, so setting both is an error when a client
    /// connects.
    pub fn fetch(mut self, fetch: impl TransportFetch) -> Self {
        self.fetch = Some(Arc::new(fetch));
        self
    }

    /// Sets the authorizer, which adds credentials to every request.
    pub fn authorize(mut self, authorize: impl Authorize) -> Self {
        self.authorize = Some(Arc::new(authorize));
        self
    }

    /// Checks the settings of this target, and creates the state of a connection whose messages are within these
    /// limits.
    pub(crate) fn resolve(
        self,
        tool_headers: Arc<dyn ClientToolHeaders>,
        limits: &Limits,
        runtime: Arc<dyn Runtime>,
    ) -> io::Result<HttpClientConnection> {
        let usage = |message: &str| io::Error::new(io::ErrorKind::InvalidInput, message);
        let url = self.url.as_ref().map_err(|problem| usage(problem))?;
        if let Some(problem) = self.problem.as_deref().or(self.conflict()) {
            return Err(usage(problem));
        }
        let fetch = self.fetch_from(url, &runtime)?;
        Ok(HttpClientConnection {
            url: url.clone(),
            headers: self.headers,
            fetch,
            follows_redirects: self.fetch.is_none(),
            authorize: self.authorize,
            max_message_bytes: limits.message_bytes,
            max_depth: limits.depth,
            tool_headers,
            runtime,
            session: Mutex::default(),
            #[cfg(feature = "legacy-sse")]
            legacy: ClientLegacySseState::new(self.only_legacy_sse, self.known),
            receives_notifications: watch::Sender::new(false),
            log: Mutex::default(),
        })
    }

    fn fetch_from(&self, url: &Url, runtime: &Arc<dyn Runtime>) -> io::Result<Arc<dyn TransportFetch>> {
        if let Some(fetch) = &self.fetch {
            let (fetch, runtime) = (Arc::clone(fetch), Arc::clone(runtime));
            return Ok(Arc::new(TransportFetchOnWorkerThreads { fetch, runtime }));
        }
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let client = match &*pool {
            Some(client) => client.clone(),
            None => pool.insert(self.network.client(url)?).clone(),
        };
        Ok(Arc::new(ReqwestTransportFetch::new(client)))
    }

    /// Changes the network settings of the target: its proxy and its trusted certificates. The target gets a new
    /// pool, so that existing connections are not used any more.
    fn change_network(mut self, change: impl FnOnce(&mut ClientNetworkSettings) -> Result<(), String>) -> Self {
        self.pool = Arc::default();
        if let Err(problem) = change(&mut self.network) {
            self.note_problem(problem);
        }
        self
    }

    /// Records a problem with the options of this target. Only the first problem is kept: later ones may follow from
    /// it.
    fn note_problem(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }

    /// Describes the conflict if the options of this HTTP target exclude each other.
    fn conflict(&self) -> Option<&'static str> {
        let conflict = self.fetch.is_some() && self.network.is_customized();
        conflict.then_some("`proxy`, `no_proxy` and `trust_certificate` have no effect beside `fetch`")
    }
}

/// The prefix of the names of MCP's own headers, which programs may not set.
const PROTOCOL: &str = "mcp-";

/// The headers, besides those of MCP, that programs may not set on requests, because the client or the HTTP library
/// sets them.
const RESERVED: &[&str] = &[
    "accept",
    // Compressed responses are refused.
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    // The server would see it. Credentials of a proxy belong into the URL of the proxy.
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Whether a request header is reserved for the client and the HTTP library, so that programs may not set it.
fn is_reserved(name: &HeaderName) -> bool {
    name.as_str().starts_with(PROTOCOL) || RESERVED.contains(&name.as_str())
}

/// The debug output shows no header, and only the origin of the URL: headers and the rest of the URL may hold secrets.
impl std::fmt::Debug for HttpTarget {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let origin = self.url.as_ref().map(|url| url.origin().ascii_serialization());
        formatter.debug_struct("HttpTarget").field("origin", &origin).finish_non_exhaustive()
    }
}
