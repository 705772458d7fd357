//! Where to connect, and how.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::Url;
use steadfast_proto::connection::Limits;
use tokio::sync::watch;

use super::authorize::Authorize;
use super::fetch::network::Network;
use super::fetch::{Fetch, FetchOnWorkers, ReqwestFetch};
#[cfg(feature = "legacy-sse")]
use super::legacy_sse::{LegacySse, LegacySupport};
use super::reserved::is_reserved;
use super::shared::Shared;
use super::tool_headers::ToolHeaders;
use crate::runtime::Runtime;

/// A server at a URL.
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
/// Cheap to clone. All clones share one pool of connections, and what was found out about the server.
///
/// Certificates are checked with what the operating system trusts, and what [`trust_certificate`](Self::trust_certificate)
/// adds. HTTP/2 is spoken over TLS where the server offers it. A redirect is followed only to the same origin, so that nobody
/// else is sent what was meant for this server. Nothing is unpacked: answers that come compressed are refused.
///
/// Proxies are those of the environment (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, with the exceptions of `NO_PROXY`), except
/// for servers of this machine, which are reached directly.
#[derive(Clone)]
#[must_use = "nothing is opened until a client connects to it"]
pub struct HttpTarget {
    url: Result<Url, String>,
    headers: HeaderMap,
    reach: Network,
    client: Option<reqwest::Client>,
    fetch: Option<Arc<dyn Fetch>>,
    authorize: Option<Arc<dyn Authorize>>,
    #[cfg(feature = "legacy-sse")]
    only_legacy_sse: bool,
    /// What was wrong with what was asked for, first of all.
    problem: Option<String>,
    pool: Arc<Mutex<Option<reqwest::Client>>>,
    #[cfg(feature = "legacy-sse")]
    known: Arc<LegacySupport>,
}

impl HttpTarget {
    /// The server's endpoint.
    pub fn new(url: impl AsRef<str>) -> Self {
        let url = Url::parse(url.as_ref()).map_err(|error| format!("not a URL: {error}"));
        let url = url.and_then(|url| match url.scheme() {
            "http" | "https" => Ok(url),
            other => Err(format!("`{other}:` is not a scheme of HTTP")),
        });
        Self {
            url,
            headers: HeaderMap::new(),
            reach: Network::default(),
            client: None,
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

    /// A header of every request. It is not shown in logs. Those that the protocol or the connection speaks by are refused when
    /// this is connected to.
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        let Ok(name) = HeaderName::try_from(name.as_ref()) else {
            // Which one is not said: it may be a whole line, with its secret.
            self.note_problem("what was given as the name of a header cannot be one".to_owned());
            return self;
        };
        match HeaderValue::try_from(value.as_ref()) {
            _ if is_reserved(&name) => self.note_problem(format!("the header `{name}` is not for programs to set")),
            Ok(mut value) => {
                value.set_sensitive(true);
                self.headers.append(name, value);
            }
            Err(_) => self
                .note_problem(format!("the value of the header `{name}` has something in it that no header can hold")),
        }
        self
    }

    /// Trusts the servers that this certificate vouches for, beside those that the operating system trusts: an authority of
    /// your own, in DER, or any number of them in PEM.
    ///
    /// ```no_run
    /// # fn example() -> std::io::Result<()> {
    /// use steadfast::transport::http::HttpTarget;
    ///
    /// let target = HttpTarget::new("https://tools.internal/mcp").trust_certificate(std::fs::read("authority.pem")?);
    /// # Ok(()) }
    /// ```
    pub fn trust_certificate(self, certificate: impl AsRef<[u8]>) -> Self {
        self.reached(|reach| reach.trust(certificate.as_ref()))
    }

    /// Goes through this proxy, wherever the server is and whatever the environment says. A name and a password may stand in
    /// its URL.
    pub fn proxy(self, url: impl AsRef<str>) -> Self {
        self.reached(|reach| reach.through(url.as_ref()))
    }

    /// Goes through no proxy, whatever the environment says.
    pub fn no_proxy(self) -> Self {
        self.reached(|reach| {
            reach.directly();
            Ok(())
        })
    }

    /// Speaks HTTP+SSE, the transport of 2024-11-05, without trying anything newer. It need not be said: a server that knows
    /// nothing else is found out by itself, with two requests more.
    #[cfg(feature = "legacy-sse")]
    pub fn legacy_sse(mut self) -> Self {
        self.only_legacy_sse = true;
        self
    }

    /// An HTTP client of your own: its proxies, its certificates, its pool. How it follows redirects is then its own matter.
    /// What is said here of proxies and certificates would have no effect on it, so both together are an error when this is
    /// connected to.
    pub fn client(mut self, client: reqwest::Client) -> Self {
        self.client = Some(client);
        self
    }

    /// Something else than reqwest makes the requests. How redirects are followed is then its own matter, and the rest of what
    /// is said here about connections too: proxies, certificates or a [`client`](Self::client) beside it are an error when this
    /// is connected to.
    pub fn fetch(mut self, fetch: impl Fetch) -> Self {
        self.fetch = Some(Arc::new(fetch));
        self
    }

    /// Who brings the headers that let requests in.
    pub fn authorize(mut self, authorize: impl Authorize) -> Self {
        self.authorize = Some(Arc::new(authorize));
        self
    }

    /// What it takes to make requests, for messages within these limits.
    pub(crate) fn resolve(
        self,
        tool_headers: Arc<dyn ToolHeaders>,
        limits: &Limits,
        runtime: Arc<dyn Runtime>,
    ) -> io::Result<Shared> {
        let usage = |message: &str| io::Error::new(io::ErrorKind::InvalidInput, message);
        let url = self.url.as_ref().map_err(|problem| usage(problem))?;
        if let Some(problem) = self.problem.as_deref().or(self.conflict()) {
            return Err(usage(problem));
        }
        let fetch = self.fetch_from(url, &runtime)?;
        Ok(Shared {
            url: url.clone(),
            headers: self.headers,
            fetch,
            follows: self.fetch.is_none() && self.client.is_none(),
            authorize: self.authorize,
            longest: limits.message_bytes,
            depth: limits.depth,
            tool_headers,
            runtime,
            session: Mutex::default(),
            #[cfg(feature = "legacy-sse")]
            legacy: LegacySse::new(self.only_legacy_sse, self.known),
            audible: watch::Sender::new(false),
            log: Mutex::default(),
        })
    }

    fn fetch_from(&self, url: &Url, runtime: &Arc<dyn Runtime>) -> io::Result<Arc<dyn Fetch>> {
        if let Some(fetch) = &self.fetch {
            let (fetch, runtime) = (Arc::clone(fetch), Arc::clone(runtime));
            return Ok(Arc::new(FetchOnWorkers { fetch, runtime }));
        }
        if let Some(client) = &self.client {
            return Ok(Arc::new(ReqwestFetch::new(client.clone())));
        }
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let client = match &*pool {
            Some(client) => client.clone(),
            None => pool.insert(self.reach.client(url)?).clone(),
        };
        Ok(Arc::new(ReqwestFetch::new(client)))
    }

    /// Reached in another way, it has other connections.
    fn reached(mut self, change: impl FnOnce(&mut Network) -> Result<(), String>) -> Self {
        self.pool = Arc::default();
        if let Err(problem) = change(&mut self.reach) {
            self.note_problem(problem);
        }
        self
    }

    /// The first one is told: those behind it may come of it.
    fn note_problem(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }

    /// Settings that undo each other.
    fn conflict(&self) -> Option<&'static str> {
        match (&self.client, &self.fetch, self.reach.is_said()) {
            (Some(_), Some(_), _) => {
                Some("`client` and `fetch` are both set, and only one of them can make the requests")
            }
            (Some(_), None, true) => Some("`proxy`, `no_proxy` and `trust_certificate` have no effect beside `client`"),
            (None, Some(_), true) => Some("`proxy`, `no_proxy` and `trust_certificate` have no effect beside `fetch`"),
            _ => None,
        }
    }
}

/// Never shows a header, nor what of the URL may be a secret.
impl std::fmt::Debug for HttpTarget {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let origin = self.url.as_ref().map(|url| url.origin().ascii_serialization());
        formatter.debug_struct("HttpTarget").field("origin", &origin).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_of_the_programs_has_its_own_connections() {
        let target = HttpTarget::new("http://127.0.0.1:1/");
        let url = target.url.clone().unwrap();
        let own = target.clone().client(Network::default().client(&url).unwrap());
        assert_eq!((target.clone().no_proxy().conflict(), own.conflict()), (None, None));
        for beside in [own.clone().no_proxy(), own.clone().proxy("http://127.0.0.1:2")] {
            assert!(beside.conflict().is_some_and(|problem| problem.contains("beside `client`")));
        }
    }
}
