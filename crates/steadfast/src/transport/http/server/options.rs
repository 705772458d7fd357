//! What can be chosen about a server on HTTP, each with a default and a reason.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use steadfast_model::Principal;
use steadfast_proto::connection::Limits;
use steadfast_proto::http::guard::Guard;
use steadfast_proto::http::resume::LogLimits;

type Identify = dyn Fn(&Parts) -> Option<Principal> + Send + Sync;

/// How a server behaves on HTTP.
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpOptions {
    /// Who may talk to the server from a browser, and under which name. Unless it is set: pages of this machine, and the
    /// names of this machine if the server listens on the loopback interface only.
    pub guard: Option<Guard>,
    /// The limits of connections, if they are not the server's. The number of requests and their bytes are also those of the
    /// whole service.
    pub limits: Option<Limits>,
    /// Sessions at once (before 2026-07-28), of both transports together. Past it new ones are refused with 503.
    pub sessions: usize,
    /// A session without an open response and without a request for so long is ended. 10 minutes: clients that are alive
    /// keep a stream open. One of HTTP+SSE is ended if its client begins no handshake, or reads nothing, for so long.
    pub session_idle: Duration,
    /// How much of a session's events is kept for clients that come back.
    pub log: LogLimits,
    /// How long a client is told to wait before it connects again.
    pub retry: Duration,
    /// A request of 2026-07-28 that takes longer is answered with events, so that comments can keep the way open. Proxies
    /// give up after 30 to 60 seconds of silence.
    pub stream_after: Duration,
    /// The same before 2026-07-28, where only events can be resumed.
    pub resumable_after: Duration,
    /// A comment is sent on streams that have been silent for so long.
    pub keep_alive: Duration,
    /// How long a client may take to send a body.
    pub body_timeout: Duration,
    /// How long a client may take to send the head of a request, and a connection may idle (`serve_http` only).
    pub head_timeout: Duration,
    /// Connections at once (`serve_http` only). More wait in the queue of the system.
    pub connections: usize,
    pub(crate) identify: Option<Arc<Identify>>,
    /// Where HTTP+SSE is served: nowhere without the feature `legacy-sse`.
    pub(crate) legacy_sse: Option<Arc<str>>,
    /// Whose pages are let in, beside those that the guard lets in.
    pub(crate) origins: Vec<String>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            guard: None,
            limits: None,
            sessions: 10_000,
            session_idle: Duration::from_secs(600),
            log: LogLimits::default(),
            retry: Duration::from_millis(500),
            stream_after: Duration::from_secs(5),
            resumable_after: Duration::from_millis(250),
            keep_alive: Duration::from_secs(15),
            body_timeout: Duration::from_secs(30),
            head_timeout: Duration::from_secs(30),
            connections: 10_000,
            identify: None,
            origins: Vec::new(),
            legacy_sse: None,
        }
    }
}

impl HttpOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// With other limits than the server's.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Lets in what this guard lets in, and nothing else.
    pub fn with_guard(mut self, guard: Guard) -> Self {
        self.guard = Some(guard);
        self
    }

    /// Lets pages of this origin in too.
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }

    /// Says who sent a request, where that is not a [`Principal`] in its extensions: such a one, as `RequireBearer` of
    /// `steadfast-auth` leaves it there, is found without this.
    ///
    /// A session belongs to whoever opened it: to others it does not exist. So do tasks, and the state of requests of several
    /// rounds. Handlers see it as [`Context::principal`](crate::Context::principal).
    ///
    /// ```
    /// use steadfast::transport::http::HttpOptions;
    /// // A proxy in front has checked who it is, and lets nobody else set this header.
    /// let options = HttpOptions::new()
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

    /// Serves the deprecated HTTP+SSE transport of 2024-11-05 too, for clients that know no other: at this path, as clients
    /// write it, such as `/sse`. It is off unless this is called.
    ///
    /// `serve_http` serves it there by itself. Who mounts the service in a router routes that path to it as well; a prefix
    /// that the router takes away is part of the path here. GET opens the stream, which says where to POST to: the same path,
    /// with the session in its query. All that the server says is on the stream, so a client that closes it has hung up, and
    /// what runs for it is stopped. Limits, origins and principals are those of the service.
    ///
    /// ```
    /// use steadfast::Server;
    /// use steadfast::transport::http::{HttpOptions, HttpService};
    ///
    /// let server = Server::builder("clock", "1.0.0").build();
    /// // Router::new().route_service("/mcp", service.clone()).route_service("/sse", service)
    /// let service = HttpService::new(server, HttpOptions::new().legacy_sse("/sse"));
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

/// For a service that others mount: under which names it is reached is not known here.
pub(crate) fn mounted() -> Guard {
    Guard::loopback().allow_any_host()
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { guard, sessions, session_idle, .. } = self;
        let mut shown = formatter.debug_struct("HttpOptions");
        shown.field("guard", guard).field("sessions", sessions).field("session_idle", session_idle);
        shown.finish_non_exhaustive()
    }
}
