//! The tower service of an MCP server: checks the origin of an HTTP request and dispatches it by its HTTP method.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use http::{Method as HttpMethod, Request, Response, StatusCode};
use http_body::Body;
use steadfast_model::ErrorObject;
use steadfast_proto::connection::{ClientOrServerDescription, Limits};
use steadfast_proto::http::origin_policy::{OriginPolicy, OriginRejection};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use super::body::HttpServiceBody;
use super::incoming::HeaderMapAdapter;
use super::load::ServerLoadLimiter;
use super::options::{self, HttpServerOptions};
use super::reply;
use super::sessions::HttpSessionTable;
use crate::runtime::{Runtime, TokioRuntime};
use crate::server::{IntoServer, Server};

/// An MCP server as a tower service, which serves one endpoint at any path. An `HttpService` is cheap to clone; all
/// clones share their sessions.
///
/// The service has to be called in a tokio runtime, in which its handlers run. A session lives until the client deletes
/// it, it was idle for [`HttpServerOptions::session_idle_timeout`], or [`HttpService::shutdown`] is called.
#[derive(Clone)]
pub struct HttpService {
    pub(crate) shared: Arc<HttpServiceState>,
    /// The runtime of the requests that this clone receives, if it differs from that of the others.
    pub(crate) runtime: Option<Arc<dyn Runtime>>,
}

/// The state that all HTTP requests of a service share.
pub(crate) struct HttpServiceState {
    pub(crate) server: Server,
    pub(crate) hello: Arc<ClientOrServerDescription>,
    pub(crate) options: HttpServerOptions,
    pub(crate) limits: Limits,
    pub(crate) origin_policy: OriginPolicy,
    pub(crate) load: Arc<ServerLoadLimiter>,
    pub(crate) sessions: Arc<HttpSessionTable>,
    pub(crate) closing: HttpServiceShutdown,
    runtime: OnceLock<Arc<dyn Runtime>>,
}

/// Whether the HTTP service is shutting down; wakes waiting tasks when the shutdown begins.
#[derive(Default)]
pub(crate) struct HttpServiceShutdown {
    closing: AtomicBool,
    notify: Arc<Notify>,
}

impl HttpServiceShutdown {
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// Completes when the shutdown of the HTTP service begins.
    pub(crate) fn notified(&self) -> OwnedNotified {
        Arc::clone(&self.notify).notified_owned()
    }

    fn begin(&self) {
        self.closing.store(true, Ordering::SeqCst);
        self.notify.notify_waiters();
    }
}

impl HttpService {
    /// Creates the HTTP service of an MCP server.
    pub fn new(server: impl IntoServer, options: HttpServerOptions) -> Self {
        let origin_policy = options.origin_policy.clone().unwrap_or_else(options::origin_policy_of_mounted_service);
        Self::with(server.into_server(), options, origin_policy, OnceLock::new())
    }

    /// Runs the handlers of the server on `runtime`, instead of the tokio runtime in which the service is called.
    /// Setting the runtime has no effect after the first request.
    pub fn runtime(self, runtime: Arc<dyn Runtime>) -> Self {
        // Fails if a request has set it already.
        let _ = self.shared.runtime.set(runtime);
        self
    }

    pub(crate) fn with(
        server: Server,
        options: HttpServerOptions,
        origin_policy: OriginPolicy,
        runtime: OnceLock<Arc<dyn Runtime>>,
    ) -> Self {
        let limits = options.limits.clone().unwrap_or_else(|| server.limits().clone());
        let origin_policy = options.origins.iter().fold(origin_policy, OriginPolicy::allow_origin);
        let shared = HttpServiceState {
            hello: Arc::new(server.hello()),
            load: ServerLoadLimiter::new(&limits),
            sessions: Arc::new(HttpSessionTable::new(options.max_sessions)),
            closing: HttpServiceShutdown::default(),
            limits,
            server,
            options,
            origin_policy,
            runtime,
        };
        Self { shared: Arc::new(shared), runtime: None }
    }

    /// Begins to shut the HTTP service down. Running handlers may still respond until the drain deadline; then they
    /// are stopped, their requests get an error response, and every event stream ends. During the shutdown, new
    /// requests are refused with 503; responses and cancellations are still accepted.
    pub fn shutdown(&self) {
        self.shared.closing.begin();
        self.shared.sessions.shut_down();
    }

    /// The current number of open sessions.
    pub fn sessions(&self) -> usize {
        self.shared.sessions.len()
    }
}

impl HttpServiceState {
    /// The runtime of the handlers: the one that was set, or else the tokio runtime in which the service was first
    /// called.
    fn runtime(&self) -> Option<&Arc<dyn Runtime>> {
        if let Some(runtime) = self.runtime.get() {
            return Some(runtime);
        }
        let runtime = TokioRuntime::current().ok()?;
        Some(self.runtime.get_or_init(|| Arc::new(runtime)))
    }

    async fn handle<B: Body>(
        self: Arc<Self>,
        runtime: Option<Arc<dyn Runtime>>,
        request: Request<B>,
    ) -> Response<HttpServiceBody> {
        let (parts, body) = request.into_parts();
        let authority = parts.uri.authority().map(http::uri::Authority::as_str);
        match self.origin_policy.check(&HeaderMapAdapter(&parts.headers), authority) {
            Ok(()) => {}
            Err(OriginRejection::Origin) => return reply::refuse(StatusCode::FORBIDDEN, "this Origin is not allowed"),
            Err(OriginRejection::Host) => return reply::refuse(StatusCode::FORBIDDEN, "this Host is not allowed"),
        }
        let Some(runtime) = runtime.or_else(|| self.runtime().map(Arc::clone)) else {
            let error = ErrorObject::internal("the service was called outside of a tokio runtime");
            return reply::error(StatusCode::INTERNAL_SERVER_ERROR, None, &error);
        };
        #[cfg(feature = "legacy-sse")]
        if self.is_legacy_sse(parts.uri.path()) {
            return self.legacy_sse(runtime, parts, body).await;
        }
        match parts.method {
            HttpMethod::POST => self.post(runtime, parts, body).await,
            HttpMethod::GET => self.listen(&parts),
            HttpMethod::DELETE => self.delete(&parts),
            _ => reply::not_allowed(METHODS),
        }
    }
}

/// The HTTP methods of the endpoint, of all revisions.
const METHODS: &str = "POST, GET, DELETE";

impl<B> tower_service::Service<Request<B>> for HttpService
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Send,
{
    type Response = Response<HttpServiceBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (shared, runtime) = (Arc::clone(&self.shared), self.runtime.clone());
        Box::pin(async move { Ok(shared.handle(runtime, request).await) })
    }
}

impl std::fmt::Debug for HttpService {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("HttpService").field("server", &self.shared.server).finish_non_exhaustive()
    }
}
