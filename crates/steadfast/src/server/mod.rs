//! Servers: tools, prompts and resources, what they take and what they return.
//!
//! Most servers are an `impl` block with [`#[server]`](macro@crate::server) on it. All that the macros do can be done by
//! hand with [`Server::builder`] and [`Tool::new`].

mod builder;
mod completion;
mod context;
pub(crate) mod decode;
mod dispatch;
pub(crate) mod input;
#[doc(hidden)]
pub mod private;
mod prompt;
mod registry;
mod resource;
mod serve;
mod subscriptions;
pub mod tasks;
mod tool;

use std::fmt;
use std::sync::Arc;

use steadfast_model::era::Decoration;
use steadfast_model::{Cache, Implementation, JsonObject, ServerCapabilities, TASKS_EXTENSION};

use steadfast_proto::connection::Limits;

pub use builder::ServerBuilder;
pub use completion::{Completer, CompletionFuture, CompletionReply, IntoCompletion};
pub use context::{ClientInfo, Context};
pub use input::ask::{Ask, Elicit, Elicited};
pub use input::form::Form;
pub use input::need::Need;
pub use input::seal::StateKeys;
pub use prompt::reply::{IntoPrompt, PromptReply};
pub use prompt::{Prompt, PromptBuilder};
pub use resource::reply::{IntoResource, ResourceReply};
pub use resource::template::{ResourceTemplate, ResourceTemplateBuilder};
pub use resource::{Resource, ResourceBuilder};
pub use serve::{Serve, Serving};
pub use tool::error::{Failure, Reply, ToolError};
pub use tool::handler::{BlockingHandler, Handler};
pub use tool::media::{Audio, Image};
pub use tool::reply::{IntoReply, Structured};
pub use tool::{Tool, ToolBuilder};

pub use crate::validation::limits as schema_limits;

#[cfg(feature = "http")]
pub(crate) use dispatch::ServerService;
pub(crate) use registry::{Catalog, Item, LiveCatalog};
#[cfg(feature = "http")]
pub(crate) use serve::not_begun;
#[cfg(feature = "http")]
pub(crate) use serve::signals::listen as listen_for_signals;
pub(crate) use subscriptions::watch::{Change, Watcher};
pub(crate) use tool::arguments::Arguments;
pub(crate) use tool::handler::Run;

use subscriptions::watch::Watchers;

use crate::error::Error;
use tasks::{TaskSettings, TaskSupport, Tasks};

/// A server: who it is and what it offers. Cheap to clone; all clones are the same server.
///
/// ```
/// use steadfast::{Server, Tool};
///
/// let server = Server::builder("clock", "1.0.0")
///     .instructions("Ask for the time in any place.")
///     .tool(Tool::new("now").description("Seconds since 1970.").handler(|| async {
///         std::time::UNIX_EPOCH.elapsed().map(|elapsed| elapsed.as_secs())
///     }))
///     .build();
/// assert_eq!(server.info().name, "clock");
/// ```
#[derive(Clone)]
pub struct Server {
    inner: Arc<Inner>,
}

struct Inner {
    profile: Profile,
    decoration: Decoration,
    tools: LiveCatalog<Tool>,
    prompts: LiveCatalog<Prompt>,
    resources: LiveCatalog<Resource>,
    resource_templates: LiveCatalog<ResourceTemplate>,
    tasks: Arc<Tasks>,
    watchers: Arc<Watchers>,
}

/// What a server is built with.
#[derive(Debug, Clone, Default)]
struct Parts {
    tools: Vec<Tool>,
    prompts: Vec<Prompt>,
    resources: Vec<Resource>,
    resource_templates: Vec<ResourceTemplate>,
}

/// What is settled when a server is built.
#[derive(Debug, Clone)]
struct Profile {
    info: Implementation,
    instructions: Option<String>,
    /// How long clients may keep its lists.
    cache: Cache,
    /// How many items a page of a list has.
    page_size: usize,
    /// Prompts are declared although there may be none yet.
    expects_prompts: bool,
    /// Resources are declared although there may be none yet.
    expects_resources: bool,
    /// Extensions that it declares, beside that of tasks, with their settings.
    extensions: JsonObject,
    limits: Limits,
    tasks: TaskSettings,
    /// What clients carry for it is sealed with these.
    state_keys: StateKeys,
}

/// What it is.
impl Server {
    /// Begins a server.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ServerBuilder {
        ServerBuilder::new(name, version)
    }

    /// Who the server is.
    pub fn info(&self) -> &Implementation {
        &self.inner.profile.info
    }

    /// How to use it, for the model.
    pub fn instructions(&self) -> Option<&str> {
        self.inner.profile.instructions.as_deref()
    }

    /// Its tools now, in the order in which they were added.
    pub fn tools(&self) -> Vec<Tool> {
        self.tool_list().iter().cloned().collect()
    }

    /// The tool of that name.
    pub fn tool(&self, name: &str) -> Option<Tool> {
        self.tool_list().find(name).cloned()
    }

    /// What it can do, as clients are told. Tools may come at run time, so they are always declared; tasks, prompts and
    /// resources if there are any when a connection begins, or are expected; completions if one of these completes, or may.
    pub(crate) fn capabilities(&self) -> ServerCapabilities {
        let mut all = ServerCapabilities::new().with_tools(true).with_logging();
        if self.tool_list().iter().any(|tool| tool.task_support() != TaskSupport::Never) {
            all = all.with_extension(TASKS_EXTENSION, JsonObject::new());
        }
        for (name, settings) in &self.inner.profile.extensions {
            all = all.with_extension(name, settings.as_object().cloned().unwrap_or_default());
        }
        let (prompts, templates) = (self.prompt_list(), self.resource_template_list());
        let Profile { expects_prompts, expects_resources, .. } = self.inner.profile;
        if expects_prompts || !prompts.is_empty() {
            all = all.with_prompts(true);
        }
        if expects_resources || !templates.is_empty() || !self.resource_list().is_empty() {
            all = all.with_resources(true, true);
        }
        let completes = prompts.iter().any(|prompt| !prompt.completers().is_empty())
            || templates.iter().any(|template| !template.completers().is_empty());
        // What is expected may complete.
        if completes || expects_prompts || expects_resources { all.with_completions() } else { all }
    }

    /// Its tasks.
    pub(crate) fn tasks(&self) -> &Arc<Tasks> {
        &self.inner.tasks
    }

    /// What is added to each result, for revisions that want it.
    pub(crate) fn decoration(&self) -> &Decoration {
        &self.inner.decoration
    }

    /// The limits of its connections.
    pub fn limits(&self) -> &Limits {
        &self.inner.profile.limits
    }

    /// What clients carry for it is sealed with these.
    pub(crate) fn state_keys(&self) -> &StateKeys {
        &self.inner.profile.state_keys
    }

    /// The list of tools as it is now.
    pub(crate) fn tool_list(&self) -> Arc<Catalog<Tool>> {
        self.inner.tools.now()
    }
}

/// What changes it.
impl Server {
    /// Adds a tool, also while clients are connected: they are told that the list has changed. A tool of the same name
    /// is replaced, and given back. Calls that are running finish with the tool that they started with.
    ///
    /// ```
    /// use steadfast::{Server, Tool};
    ///
    /// let server = Server::builder("growing", "1.0.0").build();
    /// server.add_tool(Tool::new("ready").handler(|| async { true }));
    /// assert!(server.tool("ready").is_some());
    /// assert!(server.remove_tool("ready"));
    /// assert!(server.tools().is_empty());
    /// ```
    pub fn add_tool(&self, tool: Tool) -> Option<Tool> {
        if let Some(problem) = tool.problem() {
            tracing::error!(tool = tool.name(), problem, "a tool was added that cannot be called");
        }
        let replaced = self.inner.tools.add(tool);
        self.inner.watchers.tell(&Change::Tools);
        replaced
    }

    /// Removes a tool; false if there is none of that name. Calls of it that are running finish.
    pub fn remove_tool(&self, name: &str) -> bool {
        let removed = self.inner.tools.remove(name);
        if removed {
            self.inner.watchers.tell(&Change::Tools);
        }
        removed
    }

    /// A server with the tools, prompts and resources of both, that is otherwise like this one. The two stay as they are.
    ///
    /// Fails if both have a tool or a prompt of one name, or a resource at one URI.
    ///
    /// ```
    /// use steadfast::{Server, Tool};
    ///
    /// let clock = Server::builder("clock", "1.0.0").tool(Tool::new("now").handler(|| async { 0 })).build();
    /// let dice = Server::builder("dice", "1.0.0").tool(Tool::new("roll").handler(|| async { 4 })).build();
    /// let both = clock.merge(dice).unwrap();
    /// assert_eq!(both.info().name, "clock");
    /// assert_eq!(both.tools().len(), 2);
    /// ```
    pub fn merge(self, other: impl IntoServer) -> Result<Server, Error> {
        let mut parts = self.parts();
        let others = other.into_server().parts();
        join("tool", &mut parts.tools, others.tools)?;
        join("prompt", &mut parts.prompts, others.prompts)?;
        join("resource", &mut parts.resources, others.resources)?;
        join("resource template", &mut parts.resource_templates, others.resource_templates)?;
        Ok(Self::assemble(self.inner.profile.clone(), parts))
    }

    /// Has `watcher` called after each change, for as long as it lives.
    pub(crate) fn watch(&self, watcher: &Arc<Watcher>) {
        self.inner.watchers.add(watcher);
    }

    /// What it offers now.
    fn parts(&self) -> Parts {
        Parts {
            tools: self.tools(),
            prompts: self.prompts(),
            resources: self.resources(),
            resource_templates: self.resource_templates(),
        }
    }

    fn assemble(profile: Profile, parts: Parts) -> Self {
        let decoration = Decoration::of_server(&profile.info).with_cache(profile.cache);
        let page_size = profile.page_size;
        let watchers: Arc<Watchers> = Arc::default();
        let inner = Inner {
            tools: LiveCatalog::new(parts.tools, page_size),
            prompts: LiveCatalog::new(parts.prompts, page_size),
            resources: LiveCatalog::new(parts.resources, page_size),
            resource_templates: LiveCatalog::new(parts.resource_templates, page_size),
            tasks: Arc::new(Tasks::new(profile.tasks.clone(), Arc::clone(&watchers))),
            watchers,
            decoration,
            profile,
        };
        Self { inner: Arc::new(inner) }
    }
}

/// Adds the items of another server, none of which may be here already.
fn join<T: Item>(kind: &str, here: &mut Vec<T>, there: Vec<T>) -> Result<(), Error> {
    if let Some(both) = there.iter().find(|item| here.iter().any(|present| present.key() == item.key())) {
        return Err(Error::usage(format!("both servers have a {kind} named `{}`", both.key())));
    }
    here.extend(there);
    Ok(())
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("Server");
        debug.field("info", &self.inner.profile.info);
        debug.field("tools", &keys(&self.tool_list())).field("prompts", &keys(&self.prompt_list()));
        debug.field("resources", &keys(&self.resource_list()));
        debug.field("resource_templates", &keys(&self.resource_template_list())).finish()
    }
}

fn keys<T: Item>(catalog: &Catalog<T>) -> Vec<String> {
    catalog.iter().map(|item| item.key().to_owned()).collect()
}

/// What can be served: a [`Server`], a [`ServerBuilder`], or a type with [`#[server]`](macro@crate::server) on an `impl`
/// block.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a server",
    label = "this cannot be served",
    note = "put `#[server]` on the `impl` block that has its tools, or make a `Server` with `Server::builder(name, version)`"
)]
pub trait IntoServer {
    /// Makes the server.
    fn into_server(self) -> Server;
}

/// A type whose methods are the tools of a server: what `#[server]` implements.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a server",
    label = "this cannot be served",
    note = "put `#[server]` on the `impl` block that has its tools, or make a `Server` with `Server::builder(name, version)`"
)]
pub trait ServerType: Send + Sync + Sized + 'static {
    /// Makes the server. All its tools share this value.
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

/// For who wants to keep a hand on the value that the tools share.
impl<T: ServerType> IntoServer for Arc<T> {
    fn into_server(self) -> Server {
        T::server(self)
    }
}

#[cfg(test)]
mod tests;
