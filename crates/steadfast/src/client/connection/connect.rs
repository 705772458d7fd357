//! A client about to connect: what it is, what it answers, and how it comes back.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use steadfast_model::era::Decoration;
use steadfast_model::request;
use steadfast_model::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult, Implementation,
    JsonObject, ListRootsResult, TASKS_EXTENSION,
};
use steadfast_proto::connection::Limits;

use super::opening::{Era, Opener};
use super::reconnect::Reconnect;
use super::reconnecting::ReconnectingConnection;
use super::target::{Connector, Target};
use crate::client::cache::{ClientCache, ResponseCache};
use crate::client::handlers::Handlers;
use crate::client::handlers::capabilities::declared;
use crate::client::handlers::server_request::ServerRequest;
use crate::client::tasks::registry::TaskRegistry;
use crate::client::{Client, Inner};
use crate::error::{Error, Outcome};
use crate::runtime::{Runtime, TokioRuntime};

/// How long the server may take to open a connection.
const OPENING: Duration = Duration::from_secs(20);

/// A client about to connect: await it. Nothing is opened before.
#[must_use = "nothing is opened until this is awaited"]
pub struct Connecting {
    connector: Connector,
    info: Implementation,
    capabilities: ClientCapabilities,
    /// What the handlers stand for, where `capabilities` says nothing.
    implied: ClientCapabilities,
    handlers: Handlers,
    era: Era,
    limits: Limits,
    opening: Duration,
    keep_alive: Option<Duration>,
    /// What is usual for the target, unless told.
    reconnect: Option<Reconnect>,
    trust_annotations: bool,
    tasks: bool,
    runtime: Option<Arc<dyn Runtime>>,
    cache: Option<ResponseCache>,
    checks_output: bool,
}

impl Connecting {
    pub(crate) fn new<Via>(target: impl Target<Via>) -> Self {
        Self {
            connector: target.connector(),
            info: Implementation::new("steadfast", env!("CARGO_PKG_VERSION")),
            capabilities: ClientCapabilities::new(),
            implied: ClientCapabilities::new(),
            handlers: Handlers::default(),
            era: Era::Any,
            limits: Limits::default(),
            opening: OPENING,
            keep_alive: None,
            reconnect: None,
            trust_annotations: false,
            tasks: false,
            runtime: None,
            cache: Some(ResponseCache::new()),
            checks_output: true,
        }
    }

    /// What the client calls itself.
    pub fn info(mut self, info: Implementation) -> Self {
        self.info = info;
        self
    }

    /// What the client says that it can do. Roots, sampling and elicitation are declared only if there is a handler for
    /// them.
    pub fn capabilities(mut self, capabilities: ClientCapabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Answers what a server asks for: on the older wires a request of its own, since 2026-07-28 a question that comes in
    /// place of a result. The call that it came for goes on by itself. The client declares that it can be asked, in the way
    /// that its [`capabilities`](Connecting::capabilities) say if they say something.
    ///
    /// ```
    /// # use steadfast::{prelude::*, request, ListRootsResult};
    /// # fn connect(server: Server) {
    /// let connecting =
    ///     Client::connect(server).on::<request::ListRoots, _, _>(|_| async { Ok(ListRootsResult::default()) });
    /// # }
    /// ```
    ///
    /// What servers do not ask for has no handler:
    ///
    /// ```compile_fail,E0277
    /// # use steadfast::{prelude::*, request, CallToolResult};
    /// # fn connect(server: Server) {
    /// let connecting =
    ///     Client::connect(server).on::<request::CallTool, _, _>(|_| async { Ok(CallToolResult::default()) });
    /// # }
    /// ```
    pub fn on<R, F, A>(mut self, handler: F) -> Self
    where
        R: ServerRequest,
        F: Fn(R::Params) -> A + Send + Sync + 'static,
        A: Future<Output = Result<R::Result, Error>> + Send + 'static,
    {
        self.implied = R::imply(self.implied);
        self.handlers.add::<R, _, _>(move |params| {
            let (rest, answering) = (R::rest(&params), handler(params));
            async move { Ok(R::complete(rest, answering.await?)) }
        });
        self
    }

    /// Answers when a server asks for the roots, and declares that it can be asked.
    pub fn on_roots<F, A>(self, handler: F) -> Self
    where
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = Result<ListRootsResult, Error>> + Send + 'static,
    {
        self.on::<request::ListRoots, _, _>(move |_| handler())
    }

    /// Answers when a server asks for the model, and declares that it can be asked.
    pub fn on_sample<F, A>(self, handler: F) -> Self
    where
        F: Fn(CreateMessageParams) -> A + Send + Sync + 'static,
        A: Future<Output = Result<CreateMessageResult, Error>> + Send + 'static,
    {
        self.on::<request::CreateMessage, _, _>(handler)
    }

    /// Answers when a server asks the user, by a form or by a URL, and declares that it can be asked in both ways. What a
    /// form has defaults for need not be in the answer.
    ///
    /// ```
    /// # use steadfast::{prelude::*, ElicitParams, ElicitResult};
    /// # fn connect(server: Server) {
    /// let connecting = Client::connect(server).on_elicit(|asked| async move {
    ///     match asked {
    ///         ElicitParams::Form(form) => Ok(ElicitResult::accept(steadfast::JsonObject::new())),
    ///         _ => Ok(ElicitResult::decline()),
    ///     }
    /// });
    /// # }
    /// ```
    pub fn on_elicit<F, A>(self, handler: F) -> Self
    where
        F: Fn(ElicitParams) -> A + Send + Sync + 'static,
        A: Future<Output = Result<ElicitResult, Error>> + Send + 'static,
    {
        self.on::<request::Elicit, _, _>(handler)
    }

    /// Which revisions to try.
    pub fn era(mut self, era: Era) -> Self {
        self.era = era;
        self
    }

    /// With other limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How long it may take to open a connection: to reach the server, and to find out which revision it speaks. Twenty seconds
    /// unless told. Where any revision will do ([`Era::Any`]), the newest is asked for in the first half of what is left once
    /// the server is reached, because some older servers do not answer that; the rest is for their handshake.
    ///
    /// What was begun and came to nothing is over before the error is there: a process that was started is ended as
    /// [`Client::close`] ends it, which may take as long as [`Command`](crate::transport::child::Command) says on top.
    pub fn opening_timeout(mut self, timeout: Duration) -> Self {
        self.opening = timeout;
        self
    }

    /// Asks the server that often whether it is there, in revisions that have pings (up to 2025-11-25), and closes the
    /// connection when it does not answer until the next is due. Off unless told: a server that goes is noticed without it,
    /// and one that hangs by the timeouts of calls.
    pub fn keep_alive(mut self, every: Duration) -> Self {
        self.keep_alive = Some(every);
        self
    }

    /// How the client comes back when its connection is lost. Servers at a URL are come back to unless told; others are not
    /// unless told.
    pub fn reconnect(mut self, policy: Reconnect) -> Self {
        self.reconnect = Some(policy);
        self
    }

    /// Believes a server that says of its tools that they only read, or may be called twice: a call of one of them that was
    /// lost is made again by itself. It has to have been listed before. Do so only with servers that you trust.
    pub fn trust_annotations(mut self) -> Self {
        self.trust_annotations = true;
        self
    }

    /// Takes tasks in place of results (the tasks extension of 2026-07-28), and follows them: whoever calls has the result as
    /// if there had been no task.
    pub fn tasks(mut self) -> Self {
        self.tasks = true;
        self
    }

    /// In other surroundings than the tokio runtime in which this is awaited: a simulator's.
    pub fn with_runtime(mut self, runtime: Arc<dyn Runtime>) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// Keeps answers in that cache, which other clients of the same server may share. Every client has one of its own unless
    /// told.
    pub fn cache(mut self, cache: ResponseCache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Keeps no answers: every call asks the server.
    pub fn no_cache(mut self) -> Self {
        self.cache = None;
        self
    }

    /// Takes what tools answer as it is, although it does not fit their output schemas, or these cannot be read: for servers
    /// that do not keep their word. Without this, a tool whose output schema is of an unknown dialect, refers to another
    /// document or goes beyond the [limits](crate::server::schema_limits) is not called, and the error says why.
    ///
    /// Without the feature `schema-validation` nothing is checked, as if this were called.
    pub fn unchecked_output(mut self) -> Self {
        self.checks_output = false;
        self
    }

    async fn open(self) -> Result<Client, Error> {
        let mut capabilities = declared(self.capabilities, self.implied, |method| self.handlers.has(method));
        if self.tasks {
            capabilities = capabilities.with_extension(TASKS_EXTENSION, JsonObject::new());
        }
        let apart = self.runtime.is_none();
        let runtime: Arc<dyn Runtime> = match self.runtime {
            Some(runtime) => runtime,
            None => Arc::new(TokioRuntime::current().map_err(|error| Error::transport(Outcome::NotSent, error))?),
        };
        let over_http = self.connector.is_http();
        let policy =
            self.reconnect.unwrap_or_else(|| if over_http { Reconnect::default() } else { Reconnect::never() });
        let comes_back = policy.most() > 0 && self.connector.opens_again();
        let opener = Opener {
            cache: ClientCache::new(self.cache, self.checks_output, comes_back),
            connector: self.connector,
            decoration: Decoration::of_client(&self.info, &capabilities),
            info: self.info,
            handlers: self.handlers.declaring(capabilities.clone()),
            capabilities,
            era: self.era,
            followed: TaskRegistry::new(self.limits.calls),
            limits: self.limits,
            timeout: self.opening,
            keep_alive: self.keep_alive,
            runtime,
            apart,
        };
        let live = opener.open(None, opener.deadline(), drop).await?;
        let (connection, trusts_annotations) =
            (ReconnectingConnection::new(opener, live, policy), self.trust_annotations);
        let next_token = AtomicI64::new(1);
        Ok(Client { inner: Arc::new(Inner { connection, over_http, trusts_annotations, next_token }) })
    }
}

impl IntoFuture for Connecting {
    type Output = Result<Client, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.open())
    }
}

impl std::fmt::Debug for Connecting {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Connecting").field("info", &self.info).field("era", &self.era).finish_non_exhaustive()
    }
}
