//! Servers: tools, prompts and resources, their handlers, and how they are served.
//!
//! Most servers are an `impl` block with [`#[server]`](macro@crate::server) on it. Everything that the macros do can
//! also be done with [`Server::builder`] and [`ServerTool::new`].

mod builder;
mod completion;
mod context;
pub(crate) mod decode;
mod dispatch;
pub(crate) mod input;
pub(crate) mod private;
mod prompt;
mod registry;
mod resource;
mod serve;
mod subscriptions;
pub mod tasks;
mod tool;
mod vendor;

use std::fmt;
use std::sync::{Arc, OnceLock};

use steadfast_model::wire::PerMessageMembers;
use steadfast_model::{CacheHints, Implementation, JsonObject, ServerCapabilities, TASKS_EXTENSION};

use steadfast_proto::connection::Limits;

pub use crate::runtime::connection::notification_handlers::VendorNotificationContext;
pub use crate::runtime::handler::async_handler::AsyncHandlerFn;
pub use builder::ServerBuilder;
pub use completion::{Completer, CompletionFuture, CompletionReply, IntoCompletionReply};
pub use context::{ClientInfo, Context};
pub use input::ask::Ask;
pub use input::elicit::{Elicit, ElicitOutcome};
pub use input::form::Form;
pub use input::need::RequiredClientCapability;
pub use input::seal::StateKeys;
pub use prompt::reply::{IntoPromptReply, PromptReply};
pub use prompt::{ServerPrompt, ServerPromptBuilder};
pub use resource::reply::{IntoResourceReply, ResourceReply};
pub use resource::template::{ServerResourceTemplate, ServerResourceTemplateBuilder};
pub use resource::{ServerResource, ServerResourceBuilder};
pub use serve::{Serve, ServeBuilder};
pub use tool::error::{ToolError, ToolReply};
pub use tool::handler::{BlockingHandler, Handler};
pub use tool::media::{Audio, Image};
pub use tool::reply::{IntoToolReply, Structured};
pub use tool::{ServerTool, ServerToolBuilder};

#[cfg(feature = "http")]
pub(crate) use dispatch::ServerDispatcher;
pub(crate) use registry::{Catalog, CatalogItem, LiveCatalog};
#[cfg(feature = "http")]
pub(crate) use serve::signals::listen as listen_for_signals;
#[cfg(feature = "http")]
pub(crate) use serve::start_failed;
pub(crate) use subscriptions::watch::{ServerChange, ServerChangeCallback};
pub(crate) use tool::arguments::RawArguments;

use subscriptions::watch::ServerChangeWatchers;

use crate::error::Error;
use crate::runtime::FirstPollHistory;
use dispatch::layer::{ServerRequestInterceptor, TasksExtensionCheckInterceptor};
use tasks::{ServerTaskRequestRoutes, ServerTaskSetup, ServerTasks, TaskMode, TaskSettings};
use vendor::ServerVendorHandlers;

/// An MCP server: its name and version, and its tools, prompts and resources. A server is cheap to clone; all clones
/// are the same server.
///
/// ```
/// use steadfast::{Server, ServerTool};
///
/// let server = Server::builder("clock", "1.0.0")
///     .instructions("Ask for the time in any place.")
///     .tool(ServerTool::new("now").description("Seconds since 1970.").handler(|| async {
///         std::time::UNIX_EPOCH.elapsed().map(|elapsed| elapsed.as_secs())
///     }))
///     .build();
/// assert_eq!(server.info().name, "clock");
/// ```
#[derive(Clone)]
pub struct Server {
    inner: Arc<ServerInner>,
}

struct ServerInner {
    settings: ServerSettings,
    common_members: PerMessageMembers,
    tools: LiveCatalog<ServerTool>,
    prompts: LiveCatalog<ServerPrompt>,
    resources: LiveCatalog<ServerResource>,
    resource_templates: LiveCatalog<ServerResourceTemplate>,
    /// The MCP tasks of the server. Initialized for the first MCP task, or for the first request about one.
    tasks: OnceLock<Arc<ServerTasks>>,
    watchers: Arc<ServerChangeWatchers>,
    /// The interceptors that see every request before it is routed to a handler, in this order.
    layers: Vec<Arc<dyn ServerRequestInterceptor>>,
}

/// The tools, prompts and resources of a server.
#[derive(Debug, Clone, Default)]
struct ServerItems {
    tools: Vec<ServerTool>,
    prompts: Vec<ServerPrompt>,
    resources: Vec<ServerResource>,
    resource_templates: Vec<ServerResourceTemplate>,
}

/// The settings of a server, which do not change after it is built.
#[derive(Debug, Clone)]
struct ServerSettings {
    info: Implementation,
    instructions: Option<String>,
    /// How long clients may cache the lists of the server.
    cache: CacheHints,
    /// The maximum number of items in a page of a list.
    page_size: usize,
    /// Whether all handlers run on the workers only, and none is polled on the thread of an I/O loop.
    handlers_on_workers: bool,
    /// Whether to declare the prompts capability even if there are no prompts yet.
    expects_prompts: bool,
    /// Whether to declare the resources capability even if there are no resources yet.
    expects_resources: bool,
    /// The protocol extensions that the server declares besides the tasks extension, with their settings.
    extensions: JsonObject,
    limits: Limits,
    tasks: Arc<OnceLock<ServerTaskSetup>>,
    /// The keys that seal the state that clients carry between the rounds of a request.
    state_keys: StateKeys,
    /// The handlers of vendor methods, which are not in the specification.
    vendor_handlers: ServerVendorHandlers,
}

/// Methods to get information about a server, and its tools.
impl Server {
    /// Starts building a server with this name and version.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ServerBuilder {
        ServerBuilder::new(name, version)
    }

    /// The name and version of the server.
    pub fn info(&self) -> &Implementation {
        &self.inner.settings.info
    }

    /// Instructions for the model on how to use the server.
    pub fn instructions(&self) -> Option<&str> {
        self.inner.settings.instructions.as_deref()
    }

    /// The current tools of the server, in the order in which they were added.
    pub fn tools(&self) -> Vec<ServerTool> {
        self.tool_list().iter().cloned().collect()
    }

    /// The server's tool with that name, if there is one.
    pub fn tool(&self, name: &str) -> Option<ServerTool> {
        self.tool_list().find(name).cloned()
    }

    /// The capabilities that the server declares to clients. Tools may be added at run time, so the tools capability
    /// is always declared. MCP tasks, prompts and resources are declared if there are any when a connection opens, or
    /// if they are expected; completions are declared if a prompt or a resource template has a completer, or may get
    /// one.
    pub(crate) fn capabilities(&self) -> ServerCapabilities {
        let mut all = ServerCapabilities::new().with_tools(true).with_logging();
        if self.tool_list().iter().any(|tool| tool.task_mode() != TaskMode::Never) {
            all = all.with_extension(TASKS_EXTENSION, JsonObject::new());
        }
        for (name, settings) in &self.inner.settings.extensions {
            all = all.with_extension(name, settings.as_object().cloned().unwrap_or_default());
        }
        let (prompts, templates) = (self.prompt_list(), self.resource_template_list());
        let ServerSettings { expects_prompts, expects_resources, .. } = self.inner.settings;
        if expects_prompts || !prompts.is_empty() {
            all = all.with_prompts(true);
        }
        if expects_resources || !templates.is_empty() || !self.resource_list().is_empty() {
            all = all.with_resources(true, true);
        }
        let completes = prompts.iter().any(|prompt| !prompt.completers().is_empty())
            || templates.iter().any(|template| !template.completers().is_empty());
        // Prompts and resources that are expected may have completers.
        if completes || expects_prompts || expects_resources { all.with_completions() } else { all }
    }

    /// The MCP tasks of the server. Only code that is reached through [`ServerTaskRequestRoutes`] calls this function.
    pub(crate) fn tasks(&self) -> &Arc<ServerTasks> {
        let ServerInner { settings, watchers, tasks, .. } = &*self.inner;
        tasks.get_or_init(|| {
            let setup = settings.tasks.get_or_init(|| ServerTaskSetup::new(TaskSettings::default()));
            Arc::new(ServerTasks::new(setup.settings.clone(), Arc::clone(watchers)))
        })
    }

    /// The routes of requests about MCP tasks; `None` if the program has not set where tasks are stored, and there was
    /// no MCP task so far.
    pub(crate) fn task_routes(&self) -> Option<&'static ServerTaskRequestRoutes> {
        self.inner.settings.tasks.get().map(|setup| setup.routes)
    }

    /// The `_meta` entries and cache hints that the server adds to every result, in revisions that have them.
    pub(crate) fn common_members(&self) -> &PerMessageMembers {
        &self.inner.common_members
    }

    /// The handlers of vendor methods, which are not in the specification.
    pub(crate) fn vendor_handlers(&self) -> &ServerVendorHandlers {
        &self.inner.settings.vendor_handlers
    }

    /// The memory and time limits of each connection of the server.
    pub fn limits(&self) -> &Limits {
        &self.inner.settings.limits
    }

    /// The history of a handler, if its first polls may run on the thread of an I/O loop.
    pub(crate) fn io_loop_history<'a>(
        &self,
        history: Option<&'a Arc<FirstPollHistory>>,
    ) -> Option<&'a Arc<FirstPollHistory>> {
        history.filter(|_| !self.inner.settings.handlers_on_workers)
    }

    /// The interceptors that see every request before it is routed to a handler, in this order.
    pub(crate) fn layers(&self) -> &[Arc<dyn ServerRequestInterceptor>] {
        &self.inner.layers
    }

    /// The keys that seal the state that clients carry between the rounds of a request.
    pub(crate) fn state_keys(&self) -> &StateKeys {
        &self.inner.settings.state_keys
    }

    /// A snapshot of the list of tools.
    pub(crate) fn tool_list(&self) -> Arc<Catalog<ServerTool>> {
        self.inner.tools.now()
    }
}

/// Methods that change the tools of a server, and that merge two servers.
impl Server {
    /// Adds a tool, also while clients are connected: the clients are notified that the tool list has changed. A tool
    /// with the same name is replaced and returned. Calls that are running finish with the tool that they started with.
    ///
    /// ```
    /// use steadfast::{Server, ServerTool};
    ///
    /// let server = Server::builder("growing", "1.0.0").build();
    /// server.add_tool(ServerTool::new("ready").handler(|| async { true }));
    /// assert!(server.tool("ready").is_some());
    /// assert!(server.remove_tool("ready").is_some());
    /// assert!(server.tools().is_empty());
    /// ```
    pub fn add_tool(&self, tool: ServerTool) -> Option<ServerTool> {
        if let Some(problem) = tool.problem() {
            tracing::error!(tool = tool.name(), problem, "added a tool that cannot be called");
        }
        let replaced = self.inner.tools.add(tool);
        self.inner.watchers.notify(&ServerChange::Tools);
        replaced
    }

    /// Removes a tool and returns it; `None` if the server has no tool with that name. Running calls of a removed tool
    /// finish.
    pub fn remove_tool(&self, name: &str) -> Option<ServerTool> {
        let removed = self.inner.tools.remove(name);
        if removed.is_some() {
            self.inner.watchers.notify(&ServerChange::Tools);
        }
        removed
    }

    /// Returns a server with the tools, prompts and resources of both servers. Everything else is taken from this
    /// server; the name, the instructions, the limits, the extensions and the handlers of vendor methods of `other` are
    /// dropped. The two servers that are merged are not changed.
    ///
    /// Fails if both servers have a tool or a prompt with the same name, or a resource with the same URI.
    ///
    /// ```
    /// use steadfast::{Server, ServerTool};
    ///
    /// let clock = Server::builder("clock", "1.0.0").tool(ServerTool::new("now").handler(|| async { 0 })).build();
    /// let dice = Server::builder("dice", "1.0.0").tool(ServerTool::new("roll").handler(|| async { 4 })).build();
    /// let both = clock.merge(dice).unwrap();
    /// assert_eq!(both.info().name, "clock");
    /// assert_eq!(both.tools().len(), 2);
    /// ```
    pub fn merge(self, other: impl IntoServer) -> Result<Server, Error> {
        let mut items = self.items();
        let others = other.into_server().items();
        join("tool", &mut items.tools, others.tools)?;
        join("prompt", &mut items.prompts, others.prompts)?;
        join("resource", &mut items.resources, others.resources)?;
        join("resource template", &mut items.resource_templates, others.resource_templates)?;
        Ok(Self::assemble(self.inner.settings.clone(), items))
    }

    /// Calls `watcher` after each change of the server, until the last `Arc` of the watcher is dropped.
    pub(crate) fn watch(&self, watcher: &Arc<ServerChangeCallback>) {
        self.inner.watchers.add(watcher);
    }

    /// A snapshot of everything that the server offers.
    fn items(&self) -> ServerItems {
        ServerItems {
            tools: self.tools(),
            prompts: self.prompts(),
            resources: self.resources(),
            resource_templates: self.resource_templates(),
        }
    }

    fn assemble(settings: ServerSettings, items: ServerItems) -> Self {
        let common_members = PerMessageMembers::of_server(&settings.info).with_cache(settings.cache);
        let page_size = settings.page_size;
        let watchers: Arc<ServerChangeWatchers> = Arc::default();
        let inner = ServerInner {
            tools: LiveCatalog::new(items.tools, page_size),
            prompts: LiveCatalog::new(items.prompts, page_size),
            resources: LiveCatalog::new(items.resources, page_size),
            resource_templates: LiveCatalog::new(items.resource_templates, page_size),
            tasks: OnceLock::new(),
            watchers,
            layers: vec![Arc::new(TasksExtensionCheckInterceptor)],
            common_members,
            settings,
        };
        Self { inner: Arc::new(inner) }
    }
}

/// Adds the items of another server. Returns an error if both servers have an item with the same key.
fn join<T: CatalogItem>(kind: &str, here: &mut Vec<T>, there: Vec<T>) -> Result<(), Error> {
    if let Some(both) = there.iter().find(|item| here.iter().any(|present| present.key() == item.key())) {
        return Err(Error::usage(format!("both servers have a {kind} named `{}`", both.key())));
    }
    here.extend(there);
    Ok(())
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("Server");
        debug.field("info", &self.inner.settings.info);
        debug.field("tools", &keys(&self.tool_list())).field("prompts", &keys(&self.prompt_list()));
        debug.field("resources", &keys(&self.resource_list()));
        debug.field("resource_templates", &keys(&self.resource_template_list())).finish()
    }
}

fn keys<T: CatalogItem>(catalog: &Catalog<T>) -> Vec<String> {
    catalog.iter().map(|item| item.key().to_owned()).collect()
}

/// A type that can be served: a [`Server`], a [`ServerBuilder`], or a type with [`#[server]`](macro@crate::server) on
/// an `impl` block.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a server",
    label = "this type does not implement `ServerType`, so it cannot be served",
    note = "put `#[server]` on the `impl` block that has its tools, or make a `Server` with `Server::builder(name, version)`"
)]
pub trait IntoServer {
    /// Converts the value into a [`Server`].
    fn into_server(self) -> Server;
}

/// A type whose methods are the tools of a server; implemented by `#[server]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a server",
    label = "this type does not implement `ServerType`, so it cannot be served",
    note = "put `#[server]` on the `impl` block that has its tools, or make a `Server` with `Server::builder(name, version)`"
)]
pub trait ServerType: Send + Sync + Sized + 'static {
    /// Builds the server from this value, which all its tools share.
    fn server(this: Arc<Self>) -> Server;
}

impl IntoServer for Server {
    fn into_server(self) -> Server {
        self
    }
}

impl<T: ServerType> IntoServer for T {
    fn into_server(self) -> Server {
        T::server(Arc::new(self))
    }
}

/// An `Arc` can be served by programs that keep a reference to the value that the tools share.
impl<T: ServerType> IntoServer for Arc<T> {
    fn into_server(self) -> Server {
        T::server(self)
    }
}

#[cfg(test)]
mod tests;
