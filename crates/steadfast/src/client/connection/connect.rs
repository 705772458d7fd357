//! The settings of a client before it connects.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use steadfast_model::notification::Notification;
use steadfast_model::request::{self, Request};
use steadfast_model::wire::PerMessageMembers;
use steadfast_model::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult, Implementation,
    JsonObject, ListRootsResult, TASKS_EXTENSION,
};
use steadfast_proto::connection::Limits;
use tokio::sync::watch;

use super::opening::{ClientConnectionOpener, NegotiationMode};
use super::reconnect::ReconnectPolicy;
use super::reconnecting::ReconnectingConnection;
use super::target::{ConnectTarget, TransportConnector};
use crate::client::cache::{ClientCache, ResponseCache};
use crate::client::dispatch::{ClientCloseCheckInterceptor, ClientRequestPipeline};
use crate::client::handlers::capabilities::capabilities_to_declare;
use crate::client::handlers::server_request::ServerToClientRequest;
use crate::client::handlers::{ClientContext, ClientHandlers};
use crate::client::notifications::logs::ClientLogLevelInterceptor;
use crate::client::tasks::registry::FollowedTaskRegistry;
use crate::client::{Client, ClientInner};
use crate::error::{Error, Outcome};
use crate::runtime::connection::notification_handlers::VendorNotificationContext;
use crate::runtime::handler::async_handler::AsyncHandlerFn;
use crate::runtime::{Runtime, TokioRuntime};

/// The default of [`ConnectBuilder::opening_timeout`], the time that a client has to open a connection.
const DEFAULT_OPENING_TIMEOUT: Duration = Duration::from_secs(20);

/// A client that is not connected yet: await it to connect.
#[must_use = "a client does not connect until this is awaited"]
pub struct ConnectBuilder {
    connector: TransportConnector,
    info: Implementation,
    capabilities: ClientCapabilities,
    /// The client capabilities that the handlers imply, which are declared where `capabilities` does not set them.
    implied: ClientCapabilities,
    handlers: ClientHandlers,
    negotiation: NegotiationMode,
    limits: Limits,
    opening_timeout: Duration,
    ping_interval: Option<Duration>,
    /// The reconnect policy; `None` for the default of the transport.
    reconnect: Option<ReconnectPolicy>,
    trust_annotations: bool,
    tasks: bool,
    runtime: Option<Arc<dyn Runtime>>,
    cache: Option<ResponseCache>,
    checks_output: bool,
}

impl ConnectBuilder {
    pub(crate) fn new<Via>(target: impl ConnectTarget<Via>) -> Self {
        Self {
            connector: target.into_connector(),
            info: Implementation::new("steadfast", env!("CARGO_PKG_VERSION")),
            capabilities: ClientCapabilities::new(),
            implied: ClientCapabilities::new(),
            handlers: ClientHandlers::default(),
            negotiation: NegotiationMode::Auto,
            limits: Limits::default(),
            opening_timeout: DEFAULT_OPENING_TIMEOUT,
            ping_interval: None,
            reconnect: None,
            trust_annotations: false,
            tasks: false,
            runtime: None,
            cache: Some(ResponseCache::new()),
            checks_output: true,
        }
    }

    /// The name and version of the client. By default, a client has the name and version of this library.
    pub fn info(mut self, info: Implementation) -> Self {
        self.info = info;
        self
    }

    /// The capabilities that the client declares. Roots, sampling and elicitation are declared only if there is a
    /// handler for them.
    pub fn capabilities(mut self, capabilities: ClientCapabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Adds a handler that returns the roots of the client.
    ///
    /// Up to 2025-11-25 the server sends a request for the roots; since 2026-07-28 the server asks for the roots in
    /// place of the result of a call, and the call continues with the roots that the handler returned. The client
    /// declares the capability for roots: as its [`capabilities`](ConnectBuilder::capabilities) have it, or with
    /// default options if they do not. Handlers for sampling and elicitation work in the same way.
    ///
    /// ```
    /// # use steadfast::{prelude::*, ListRootsResult, model::Root};
    /// # fn connect(server: Server) {
    /// let connecting = Client::connect(server)
    ///     .on_roots(|_| async { Ok(ListRootsResult::new(vec![Root::new("file:///home/ann/project")])) });
    /// # }
    /// ```
    pub fn on_roots<F, A>(self, handler: F) -> Self
    where
        F: Fn(ClientContext) -> A + Send + Sync + 'static,
        A: Future<Output = Result<ListRootsResult, Error>> + Send + 'static,
    {
        self.on::<request::ListRoots>(move |_, ctx| handler(ctx))
    }

    /// Adds a handler for the server's sampling requests, and declares the capability for sampling.
    pub fn on_sample(
        self,
        handler: impl AsyncHandlerFn<CreateMessageParams, ClientContext, Result<CreateMessageResult, Error>>,
    ) -> Self {
        self.on::<request::CreateMessage>(handler)
    }

    /// Adds a handler for the server's elicitation requests, and declares the capability for forms and URLs. The client
    /// adds the defaults of a form for fields that the handler leaves out.
    ///
    /// ```
    /// # use steadfast::{prelude::*, ElicitParams, ElicitResult};
    /// # fn connect(server: Server) {
    /// let connecting = Client::connect(server).on_elicit(|request, _| async move {
    ///     match request {
    ///         ElicitParams::Form(form) => Ok(ElicitResult::accept(steadfast::JsonObject::new())),
    ///         _ => Ok(ElicitResult::decline()),
    ///     }
    /// });
    /// # }
    /// ```
    pub fn on_elicit(
        self,
        handler: impl AsyncHandlerFn<ElicitParams, ClientContext, Result<ElicitResult, Error>>,
    ) -> Self {
        self.on::<request::Elicit>(handler)
    }

    fn on<R: ServerToClientRequest>(
        mut self,
        handler: impl AsyncHandlerFn<R::Params, ClientContext, Result<R::Result, Error>>,
    ) -> Self {
        self.implied = R::declare(self.implied);
        self.handlers.add::<R>(move |params, ctx| {
            let (completion, running) = (R::completion(&params), handler(params, ctx));
            async move { Ok(R::complete(completion, running.await?)) }
        });
        self
    }

    /// Adds a handler for a vendor request of the server, which is not in the specification: see
    /// [`request`](crate::model::request). Servers send requests to clients in revisions up to 2025-11-25. If the
    /// method of a server's request has no handler, the client responds with an error.
    ///
    /// ```
    /// # use serde::{Deserialize, Serialize};
    /// # use steadfast::{prelude::*, Method, model::Request};
    /// /// `acme/open_file`
    /// enum OpenFile {}
    ///
    /// impl Request for OpenFile {
    ///     const METHOD: Method = Method::vendor_request("acme/open_file");
    ///     type Params = File;
    ///     type Result = ();
    /// }
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct File { path: String }
    ///
    /// # fn connect(server: Server) {
    /// let connecting = Client::connect(server).on_request::<OpenFile>(|file, _| async move {
    ///     println!("opening {}", file.path);
    ///     Ok(())
    /// });
    /// # }
    /// ```
    pub fn on_request<R: Request>(
        mut self,
        handler: impl AsyncHandlerFn<R::Params, ClientContext, Result<R::Result, Error>>,
    ) -> Self {
        const {
            assert!(
                R::METHOD.is_vendor_request(),
                "the method is in the specification: use `on_roots`, `on_sample` or `on_elicit`"
            );
        }
        self.handlers.add_vendor::<R>(handler);
        self
    }

    /// Adds a handler for a vendor notification of the server, which is not in the specification. The notification
    /// handlers of a client run one at a time, in the order of the notifications; if too many notifications wait, the
    /// oldest are dropped.
    pub fn on_notification<N: Notification>(
        mut self,
        handler: impl AsyncHandlerFn<N::Params, VendorNotificationContext, ()>,
    ) -> Self {
        const {
            assert!(
                N::METHOD.is_vendor_notification(),
                "the method is in the specification: use `Client::changes`, `Client::logs` or `Call::on_progress`"
            );
        }
        self.handlers.notifications.add::<N>(handler);
        self
    }

    /// The protocol revisions that the client tries when it connects. By default a client negotiates the revision
    /// with [`NegotiationMode::Auto`].
    pub fn negotiation(mut self, negotiation: NegotiationMode) -> Self {
        self.negotiation = negotiation;
        self
    }

    /// The limits of each connection: see [`Limits`].
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The timeout for opening a connection: reaching the server and negotiating the revision. By default a client
    /// has 20 seconds to open a connection. With [`NegotiationMode::Auto`], `server/discover` has half of the time
    /// that is left once the server is reached, because some older servers do not respond to it; the rest is for
    /// their handshake.
    ///
    /// If a connection cannot be opened, it is closed before the error is returned. A server process that was started
    /// is stopped as by [`Client::close`], which may take more time: as much as its
    /// [`Command`](crate::transport::child::Command) allows.
    pub fn opening_timeout(mut self, timeout: Duration) -> Self {
        self.opening_timeout = timeout;
        self
    }

    /// Pings the server at this interval, in revisions that have `ping` (up to 2025-11-25), and closes the connection
    /// when the server does not respond before the next ping is due. By default a client sends no pings: a server that
    /// exits is noticed without pings, and a server that hangs is noticed by the timeouts of calls.
    pub fn ping_interval(mut self, interval: Duration) -> Self {
        self.ping_interval = Some(interval);
        self
    }

    /// How the client reconnects when its connection is lost. HTTP clients reconnect by default; other clients do not.
    pub fn reconnect(mut self, policy: ReconnectPolicy) -> Self {
        self.reconnect = Some(policy);
        self
    }

    /// Trusts the read-only and idempotent hints of the server's tools: a lost call of such a tool is sent again, if
    /// the tool was listed before. Use `trust_annotations` only with servers that you trust.
    pub fn trust_annotations(mut self) -> Self {
        self.trust_annotations = true;
        self
    }

    /// Declares the tasks extension (2026-07-28): a server may create an MCP task for a call. The client polls the MCP
    /// task, and the call returns the result of the task as if there had been no task.
    pub fn tasks(mut self) -> Self {
        self.tasks = true;
        self
    }

    /// Runs the client on this runtime, such as a simulator, instead of the tokio runtime in which the builder is
    /// awaited.
    pub fn runtime(mut self, runtime: Arc<dyn Runtime>) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// Sets the response cache of the client, which other clients of the same server may share. By default every
    /// client has a cache of its own.
    pub fn cache(mut self, cache: ResponseCache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Caches no responses: every call is sent to the server.
    pub fn no_cache(mut self) -> Self {
        self.cache = None;
        self
    }

    /// Does not check the results of tools against their output schemas, for servers whose results or schemas are
    /// wrong. A client that checks results does not call a tool whose output schema has an unknown dialect, refers to
    /// another document or exceeds the limits of a schema; the error says why.
    ///
    /// Without the crate feature `schema-validation`, no client checks the results of tools.
    pub fn unchecked_output(mut self) -> Self {
        self.checks_output = false;
        self
    }

    async fn open(self) -> Result<Client, Error> {
        let mut capabilities =
            capabilities_to_declare(self.capabilities, self.implied, |method| self.handlers.has(method));
        if self.tasks {
            capabilities = capabilities.with_extension(TASKS_EXTENSION, JsonObject::new());
        }
        let use_io_loop = self.runtime.is_none();
        let runtime: Arc<dyn Runtime> = match self.runtime {
            Some(runtime) => runtime,
            None => Arc::new(TokioRuntime::current().map_err(|error| Error::transport(Outcome::NotSent, error))?),
        };
        let over_http = self.connector.is_http();
        let policy = self
            .reconnect
            .unwrap_or_else(|| if over_http { ReconnectPolicy::default() } else { ReconnectPolicy::never() });
        let reconnects = policy.max_attempts() > 0 && self.connector.can_reopen();
        let cache = ClientCache::new(self.cache, self.checks_output, reconnects);
        let closing = watch::Sender::new(false);
        let dispatch = ClientRequestPipeline {
            common_members: PerMessageMembers::of_client(&self.info, &capabilities),
            layers: vec![
                Arc::new(ClientCloseCheckInterceptor(closing.subscribe())),
                Arc::new(ClientLogLevelInterceptor(Arc::clone(&cache))),
            ],
        };
        let opener = ClientConnectionOpener {
            cache,
            dispatch: Arc::new(dispatch),
            connector: self.connector,
            info: self.info,
            handlers: self.handlers.with_declared(capabilities.clone()),
            capabilities,
            negotiation: self.negotiation,
            task_registry: FollowedTaskRegistry::new(self.limits.calls),
            limits: self.limits,
            timeout: self.opening_timeout,
            ping_interval: self.ping_interval,
            runtime,
            use_io_loop,
        };
        let live = opener.open(None, opener.deadline(), drop).await?;
        let (connection, trusts_annotations) =
            (ReconnectingConnection::new(opener, live, policy, closing), self.trust_annotations);
        let next_token = AtomicI64::new(1);
        Ok(Client { inner: Arc::new(ClientInner { connection, over_http, trusts_annotations, next_token }) })
    }
}

impl IntoFuture for ConnectBuilder {
    type Output = Result<Client, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.open())
    }
}

impl std::fmt::Debug for ConnectBuilder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ConnectBuilder")
            .field("info", &self.info)
            .field("negotiation", &self.negotiation)
            .finish_non_exhaustive()
    }
}
