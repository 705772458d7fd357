//! The options of a server on HTTP, each with a default and a reason.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use steadfast_model::Principal;
use steadfast_proto::connection::Limits;
use steadfast_proto::http::origin_policy::OriginPolicy;
use steadfast_proto::http::resume::SseEventLogLimits;

type PrincipalExtractor = dyn Fn(&Parts) -> Option<Principal> + Send + Sync;

/// The options of a server on HTTP.
#[derive(Clone)]
#[must_use = "options have an effect only if they are given to a server"]
pub struct HttpServerOptions {
    pub(crate) origin_policy: Option<OriginPolicy>,
    pub(crate) limits: Option<Limits>,
    pub(crate) max_sessions: usize,
    pub(crate) session_idle_timeout: Duration,
    pub(crate) event_log: SseEventLogLimits,
    pub(crate) retry_after: Duration,
    pub(crate) stream_after: Duration,
    pub(crate) resumable_after: Duration,
    pub(crate) comment_interval: Duration,
    pub(crate) body_timeout: Duration,
    pub(crate) head_timeout: Duration,
    pub(crate) max_connections: usize,
    pub(crate) identify: Option<Arc<PrincipalExtractor>>,
    /// The path at which HTTP+SSE is served; always `None` without the feature `legacy-sse`.
    pub(crate) legacy_sse: Option<Arc<str>>,
    /// Origins that are allowed in addition to those of the origin policy.
    pub(crate) origins: Vec<String>,
}

impl Default for HttpServerOptions {
    fn default() -> Self {
        Self {
            origin_policy: None,
            limits: None,
            max_sessions: 10_000,
            session_idle_timeout: Duration::from_secs(600),
            event_log: SseEventLogLimits::default(),
            retry_after: Duration::from_millis(500),
            stream_after: Duration::from_secs(5),
            resumable_after: Duration::from_millis(250),
            comment_interval: Duration::from_secs(15),
            body_timeout: Duration::from_secs(30),
            head_timeout: Duration::from_secs(30),
            max_connections: 10_000,
            identify: None,
            origins: Vec::new(),
            legacy_sse: None,
        }
    }
}

impl HttpServerOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the limits of connections, if they are to differ from the limits of the server. The limits of requests in
    /// flight and of their bytes also apply to the whole HTTP service.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Sets which web origins may call the server from a browser, and under which host names the server may be called.
    /// By default pages of this machine may call the server, but no pages if `serve_http` listens on an address that is
    /// not loopback. By default every host name is allowed, but only those of this machine if `serve_http` listens on a
    /// loopback address.
    pub fn origin_policy(mut self, origin_policy: OriginPolicy) -> Self {
        self.origin_policy = Some(origin_policy);
        self
    }

    /// Sets the maximum number of open sessions of revisions before 2026-07-28, over Streamable HTTP and HTTP+SSE
    /// together. Further sessions are refused with 503.
    ///
    /// 10,000 by default. Clients of 2026-07-28 have no sessions; `max_connections` limits the number of their HTTP
    /// connections.
    pub fn max_sessions(mut self, max_sessions: usize) -> Self {
        self.max_sessions = max_sessions;
        self
    }

    /// Sets how long a session may be idle, without an open HTTP response and without a new HTTP request, before the
    /// server ends it; 10 minutes by default. Clients that are alive keep an event stream open. An HTTP+SSE session is
    /// ended if its client does not begin the handshake within the idle timeout, or later neither sends nor reads
    /// anything for this time.
    pub fn session_idle_timeout(mut self, session_idle_timeout: Duration) -> Self {
        self.session_idle_timeout = session_idle_timeout;
        self
    }

    /// Sets the limits of the events of a session that are stored for clients that reconnect.
    pub fn event_log(mut self, event_log: SseEventLogLimits) -> Self {
        self.event_log = event_log;
        self
    }

    /// Sets how long clients are asked to wait before they reconnect to an event stream (`retry` of server-sent
    /// events).
    ///
    /// By default clients are asked to wait 500 ms before they reconnect.
    pub fn retry_after(mut self, retry_after: Duration) -> Self {
        self.retry_after = retry_after;
        self
    }

    /// Sets the time after which a request of 2026-07-28 without a response gets an event stream, so that comments can
    /// keep the HTTP connection open. Many proxies close connections that are idle for 30 to 60 seconds.
    ///
    /// By default a request of 2026-07-28 gets an event stream after 5 s without a response.
    pub fn stream_after(mut self, stream_after: Duration) -> Self {
        self.stream_after = stream_after;
        self
    }

    /// Sets the time after which a request of a revision before 2026-07-28 without a response gets an event stream:
    /// only event streams can be resumed.
    ///
    /// By default a request of an older revision gets an event stream after 250 ms without a response.
    pub fn resumable_after(mut self, resumable_after: Duration) -> Self {
        self.resumable_after = resumable_after;
        self
    }

    /// Sets how long an event stream may be idle before the server sends a comment on it.
    ///
    /// By default the server sends a comment on an event stream that was idle for 15 s.
    pub fn comment_interval(mut self, comment_interval: Duration) -> Self {
        self.comment_interval = comment_interval;
        self
    }

    /// Sets how long a client may take to send the body of an HTTP request.
    ///
    /// By default a client has 30 s to send the body of an HTTP request.
    pub fn body_timeout(mut self, body_timeout: Duration) -> Self {
        self.body_timeout = body_timeout;
        self
    }

    /// Sets how long a client may take to send the head of an HTTP request, and how long an HTTP connection may be idle
    /// (`serve_http` only).
    ///
    /// By default a client has 30 s to send the head of an HTTP request, and a connection may be idle for 30 s.
    pub fn head_timeout(mut self, head_timeout: Duration) -> Self {
        self.head_timeout = head_timeout;
        self
    }

    /// Sets the maximum number of open HTTP connections (`serve_http` only). Further connections wait in the backlog of
    /// the listening socket.
    ///
    /// 10,000 by default.
    pub fn max_connections(mut self, max_connections: usize) -> Self {
        self.max_connections = max_connections;
        self
    }

    /// Allows web pages of this origin to call the server, in addition to those of the origin policy.
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }

    /// Sets how the principal of a request is found. By default the principal is the [`Principal`] in the extensions of
    /// the HTTP request, where `BearerLayer` of `steadfast-auth` puts it.
    ///
    /// A session belongs to the principal that opened it, and does not exist for other principals. MCP tasks, and the
    /// state of requests that ask the client for input, belong to their principal in the same way. Handlers see the
    /// principal as [`Context::principal`](crate::Context::principal).
    ///
    /// `identify` is called on the thread of the connection for each HTTP request, and must not block: if it has to look
    /// something up, do so in a layer around the service, and leave the principal in the extensions of the request.
    ///
    /// ```
    /// use steadfast::transport::http::HttpServerOptions;
    /// // A proxy in front authenticates users, and removes this header from their requests.
    /// let options = HttpServerOptions::new()
    ///     .identify(|request| Some(request.headers.get("x-forwarded-user")?.to_str().ok()?.to_owned()));
    /// # drop(options);
    /// ```
    pub fn identify<P: Into<Principal>>(
        mut self,
        identify: impl Fn(&Parts) -> Option<P> + Send + Sync + 'static,
    ) -> Self {
        self.identify = Some(Arc::new(move |parts| identify(parts).map(Into::into)));
        self
    }

    /// Serves the deprecated HTTP+SSE transport of 2024-11-05 too, for clients that support no other transport: at this
    /// path, as clients write it, such as `/sse`. Off by default.
    ///
    /// `serve_http` routes the path of HTTP+SSE by itself. If you mount the service in a router, route the path of
    /// HTTP+SSE to it as well; a prefix that the router strips is part of the path here. GET opens the event stream,
    /// which names the URL to POST to: the same path, with the session in its query. The server sends all its messages
    /// on this event stream, so a client that closes it has disconnected, and the handlers of its requests are stopped.
    /// The limits, origin policy and principals of the service apply to HTTP+SSE too.
    ///
    /// ```
    /// use steadfast::Server;
    /// use steadfast::transport::http::{HttpServerOptions, HttpService};
    ///
    /// let server = Server::builder("clock", "1.0.0").build();
    /// // Router::new().route_service("/mcp", service.clone()).route_service("/sse", service)
    /// let service = HttpService::new(server, HttpServerOptions::new().legacy_sse("/sse"));
    /// # drop(service);
    /// ```
    #[cfg(feature = "legacy-sse")]
    pub fn legacy_sse(mut self, path: impl Into<String>) -> Self {
        self.legacy_sse = Some(path.into().into());
        self
    }

    pub(crate) fn principal(&self, parts: &Parts) -> Option<Principal> {
        match &self.identify {
            Some(identify) => identify(parts),
            None => parts.extensions.get().cloned(),
        }
    }
}

/// The default origin policy of a service that is mounted in a router: any host name is allowed, because those of the
/// service are not known here.
pub(crate) fn origin_policy_of_mounted_service() -> OriginPolicy {
    OriginPolicy::loopback().allow_any_host()
}

impl fmt::Debug for HttpServerOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { origin_policy, max_sessions, session_idle_timeout, .. } = self;
        let mut shown = formatter.debug_struct("HttpServerOptions");
        shown.field("origin_policy", origin_policy).field("max_sessions", max_sessions);
        shown.field("session_idle_timeout", session_idle_timeout);
        shown.finish_non_exhaustive()
    }
}
