//! Servers: tools, what they take and what they return.
//!
//! Most servers are an `impl` block with [`#[server]`](macro@crate::server) on it. All that the macros do can be done by
//! hand with [`Server::builder`] and [`Tool::new`].

mod arguments;
mod builder;
mod context;
mod failure;
mod handler;
mod media;
mod parameters;
#[doc(hidden)]
pub mod private;
mod reply;
mod schema;
mod serve;
mod service;
mod signals;
mod tool;
mod tools;
mod validation;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use steadfast_model::era::Decoration;
use steadfast_model::{Cache, Implementation, Revision, ServerCapabilities};

use steadfast_proto::connection::Limits;

pub use builder::ServerBuilder;
pub use context::{ClientInfo, Context};
pub use failure::{Failure, Reply, ToolError};
pub use handler::{BlockingHandler, Handler};
pub use media::{Audio, Image};
pub use reply::{IntoReply, Structured};
pub use serve::{Serve, Serving};
pub use tool::{Tool, ToolBuilder};

pub(crate) use arguments::Arguments;
pub(crate) use handler::Run;
#[cfg(feature = "http")]
pub(crate) use serve::not_begun;
#[cfg(feature = "http")]
pub(crate) use service::ServerService;
#[cfg(feature = "http")]
pub(crate) use signals::listen as listen_for_signals;
pub(crate) use tools::Tools;

use crate::error::Error;

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
    tools: RwLock<Arc<Tools>>,
    watchers: Mutex<Vec<Weak<Watcher>>>,
}

/// What is settled when a server is built.
#[derive(Debug, Clone)]
struct Profile {
    info: Implementation,
    instructions: Option<String>,
    /// How long clients may keep its lists.
    cache: Cache,
    limits: Limits,
}

/// Called after the list of tools has changed. It must not block.
pub(crate) type Watcher = dyn Fn() + Send + Sync;

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

    /// What it can do, as clients are told. Tools may come at run time, so they are always declared.
    #[allow(clippy::unused_self, reason = "what a server can do will depend on the server")]
    pub(crate) fn capabilities(&self) -> ServerCapabilities {
        ServerCapabilities::new().with_tools(true).with_logging()
    }

    /// What is added to each result, for revisions that want it.
    pub(crate) fn decoration(&self) -> &Decoration {
        &self.inner.decoration
    }

    /// The result of `tools/list` for a revision, as it is now.
    pub(crate) fn tool_list_answer(&self, revision: Revision) -> Result<Arc<[u8]>, Error> {
        self.tool_list().list_answer(revision, &self.inner.decoration)
    }

    /// The limits of its connections.
    pub fn limits(&self) -> &Limits {
        &self.inner.profile.limits
    }

    /// The list of tools as it is now.
    pub(crate) fn tool_list(&self) -> Arc<Tools> {
        Arc::clone(&self.inner.tools.read().unwrap_or_else(PoisonError::into_inner))
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
        let mut current = self.inner.tools.write().unwrap_or_else(PoisonError::into_inner);
        let (tools, replaced) = current.with(tool);
        *current = Arc::new(tools);
        drop(current);
        self.tell_watchers();
        replaced
    }

    /// Removes a tool; false if there is none of that name. Calls of it that are running finish.
    pub fn remove_tool(&self, name: &str) -> bool {
        let mut current = self.inner.tools.write().unwrap_or_else(PoisonError::into_inner);
        let Some(tools) = current.without(name) else { return false };
        *current = Arc::new(tools);
        drop(current);
        self.tell_watchers();
        true
    }

    /// A server with the tools of both, that is otherwise like this one. The two stay as they are.
    ///
    /// Fails if both have a tool of one name.
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
        let mut tools = self.tools();
        for tool in other.into_server().tools() {
            if tools.iter().any(|present| present.name() == tool.name()) {
                return Err(Error::usage(format!("both servers have a tool named `{}`", tool.name())));
            }
            tools.push(tool);
        }
        Ok(Self::assemble(self.inner.profile.clone(), tools))
    }

    /// Has `watcher` called after each change of the list of tools, for as long as it lives.
    pub(crate) fn watch_tools(&self, watcher: &Arc<Watcher>) {
        let mut watchers = self.watchers();
        watchers.retain(|watcher| watcher.strong_count() > 0);
        watchers.push(Arc::downgrade(watcher));
    }

    fn assemble(profile: Profile, tools: Vec<Tool>) -> Self {
        let decoration = Decoration::of_server(&profile.info).with_cache(profile.cache);
        let tools = RwLock::new(Arc::new(Tools::new(tools)));
        let watchers = Mutex::default();
        Self { inner: Arc::new(Inner { profile, decoration, tools, watchers }) }
    }

    fn tell_watchers(&self) {
        // Called without the lock, so that a watcher may come back to the server.
        let watchers: Vec<_> = self.watchers().iter().filter_map(Weak::upgrade).collect();
        for watcher in watchers {
            watcher();
        }
    }

    fn watchers(&self) -> MutexGuard<'_, Vec<Weak<Watcher>>> {
        self.inner.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools = self.tool_list();
        let names: Vec<&str> = tools.iter().map(Tool::name).collect();
        formatter.debug_struct("Server").field("info", &self.inner.profile.info).field("tools", &names).finish()
    }
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
