//! The builder of an MCP server.

use std::panic::Location;
use std::sync::{Arc, OnceLock};

use steadfast_model::{CacheHints, Icon, Implementation, JsonObject};
use steadfast_proto::connection::Limits;

use super::input::seal::StateKeys;
use super::prompt::ServerPrompt;
use super::registry::names;
use super::resource::ServerResource;
use super::resource::template::ServerResourceTemplate;
use super::tasks::{ServerTaskSetup, TaskSettings};
use super::tool::ServerTool;
use super::vendor::ServerVendorHandlers;
use super::{CatalogItem, IntoServer, Server, ServerItems, ServerSettings};
use crate::error::Error;

/// The default number of items in a page of a list. Few servers have more items than that, and few clients fetch a
/// second page.
const PAGE_SIZE: usize = 1000;

/// Builds a [`Server`]: see [`Server::builder`].
#[derive(Debug, Clone)]
#[must_use = "call `build` to get the server"]
pub struct ServerBuilder {
    settings: ServerSettings,
    items: ServerItems,
}

impl ServerBuilder {
    pub(super) fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let info = Implementation::new(name, version);
        let settings = ServerSettings {
            info,
            instructions: None,
            cache: CacheHints::default(),
            page_size: PAGE_SIZE,
            handlers_on_workers: false,
            expects_prompts: false,
            expects_resources: false,
            extensions: JsonObject::new(),
            limits: Limits::default(),
            tasks: Arc::default(),
            state_keys: StateKeys::random(),
            vendor_handlers: ServerVendorHandlers::default(),
        };
        Self { settings, items: ServerItems::default() }
    }

    /// The name of the server that is displayed to people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.settings.info.title = Some(title.into());
        self
    }

    /// A one-sentence description of the server, for people.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.settings.info.description = Some(description.into());
        self
    }

    /// Adds an icon.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.settings.info.icons.push(icon);
        self
    }

    /// The URL of a website where people can read more about the server.
    pub fn website(mut self, url: impl Into<String>) -> Self {
        self.settings.info.website_url = Some(url.into());
        self
    }

    /// Instructions for the model on how to use the server.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.settings.instructions = Some(instructions.into());
        self
    }

    /// How long clients may cache the lists of the server, and whether the cache may be shared between users (since
    /// 2026-07-28). By default, clients may not cache lists.
    ///
    /// ```
    /// use steadfast::{CacheHints, CacheScope, Server};
    /// let server = Server::builder("steady", "1.0.0").cache(CacheHints::new(60_000, CacheScope::Public)).build();
    /// ```
    pub fn cache(mut self, cache: CacheHints) -> Self {
        self.settings.cache = cache;
        self
    }

    /// The maximum number of items in a page of a list, 1000 by default. Clients fetch the next page of a list with the
    /// cursor of the last page.
    pub fn page_size(mut self, items: usize) -> Self {
        self.settings.page_size = items;
        self
    }

    /// Runs `async` handlers only on the workers of the tokio runtime, and plain functions only on blocking threads.
    ///
    /// By default, a handler whose earlier first polls were ready at once and quick is polled for the first time on
    /// the thread that reads its requests, so that no other thread has to be woken. That is a thread of the library,
    /// in the context of the tokio runtime: `tokio::spawn`, timers, sockets, task-locals and `block_in_place` work as
    /// on a worker, thread-locals are different ones, `on_thread_start` has not run, and `tokio::task::id` panics
    /// because the poll is not part of a task. On a `current_thread` runtime such a poll is not on the only thread of the
    /// runtime: it runs beside the other tasks, and without a subscriber of `tracing` that was set for that thread. If a handler
    /// is not quick after all, another thread takes over the connections within a few milliseconds.
    ///
    /// To run the handler of only one tool on the workers, use
    /// [`ServerToolBuilder::on_workers`](crate::server::ServerToolBuilder::on_workers).
    pub fn handlers_on_workers(mut self) -> Self {
        self.settings.handlers_on_workers = true;
        self
    }

    /// The memory and time limits of each connection.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.settings.limits = limits;
        self
    }

    /// Where and how long the server stores MCP tasks.
    pub fn tasks(mut self, settings: TaskSettings) -> Self {
        self.settings.tasks = Arc::new(OnceLock::from(ServerTaskSetup::new(settings)));
        self
    }

    /// The keys that seal the state that clients carry between the rounds of a request (since 2026-07-28). By
    /// default, a server seals the state of requests with a random key.
    pub fn state_keys(mut self, keys: StateKeys) -> Self {
        self.settings.state_keys = keys;
        self
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: ServerTool) -> Self {
        self.items.tools.push(tool);
        self
    }

    /// Adds several tools.
    pub fn tools(mut self, tools: impl IntoIterator<Item = ServerTool>) -> Self {
        self.items.tools.extend(tools);
        self
    }

    /// Adds a prompt.
    pub fn prompt(mut self, prompt: ServerPrompt) -> Self {
        self.items.prompts.push(prompt);
        self
    }

    /// Adds several prompts.
    pub fn prompts(mut self, prompts: impl IntoIterator<Item = ServerPrompt>) -> Self {
        self.items.prompts.extend(prompts);
        self
    }

    /// Adds a resource.
    pub fn resource(mut self, resource: ServerResource) -> Self {
        self.items.resources.push(resource);
        self
    }

    /// Adds several resources.
    pub fn resources(mut self, resources: impl IntoIterator<Item = ServerResource>) -> Self {
        self.items.resources.extend(resources);
        self
    }

    /// Adds a resource template to the server. If a URI matches several templates, the first one is used.
    pub fn resource_template(mut self, template: ServerResourceTemplate) -> Self {
        self.items.resource_templates.push(template);
        self
    }

    /// Adds several resource templates to the server.
    pub fn resource_templates(mut self, templates: impl IntoIterator<Item = ServerResourceTemplate>) -> Self {
        self.items.resource_templates.extend(templates);
        self
    }

    /// Declares prompts and the completion of their arguments to clients, even if there are no prompts yet: they may be
    /// added at run time. A server that has prompts declares them without a call of this method.
    pub fn expect_prompts(mut self) -> Self {
        self.settings.expects_prompts = true;
        self
    }

    /// Declares resources and the completion of template variables to clients, even if there are no resources yet: they
    /// may be added at run time. A server that has resources declares them without a call of this method.
    pub fn expect_resources(mut self) -> Self {
        self.settings.expects_resources = true;
        self
    }

    /// Declares an extension of the protocol to clients, with its settings. The name of an extension starts with a
    /// prefix of its owner, as in `com.example/colours`. The tools and resources of the server implement the extension.
    /// The extension for MCP tasks is declared automatically.
    ///
    /// ```
    /// use steadfast::{JsonObject, Server};
    ///
    /// let server = Server::builder("bright", "1.0.0").extension("com.example/colours", JsonObject::new()).build();
    /// let nameless = Server::builder("dark", "1.0.0").extension("colours", JsonObject::new()).try_build();
    /// assert!(nameless.unwrap_err().to_string().contains("`colours` cannot be the name of an extension"));
    /// ```
    pub fn extension(mut self, name: impl Into<String>, settings: JsonObject) -> Self {
        self.settings.extensions.insert(name.into(), settings.into());
        self
    }

    pub(super) fn vendor_handlers_mut(&mut self) -> &mut ServerVendorHandlers {
        &mut self.settings.vendor_handlers
    }

    /// Builds the server.
    ///
    /// # Panics
    ///
    /// Panics if two tools or two prompts have the same name, two resources have the same URI, or one of them has a
    /// [problem](ServerTool::problem). If the tools, prompts or resources come from outside of the program, use
    /// [`ServerBuilder::try_build`].
    #[track_caller]
    pub fn build(self) -> Server {
        let name = self.settings.info.name.clone();
        match self.try_build() {
            Ok(server) => server,
            Err(error) => panic!("failed to build the server `{name}` at {}: {error}", Location::caller()),
        }
    }

    /// Builds the server. Fails if two tools or two prompts have the same name, two resources have the same URI, or one
    /// of them has a [problem](ServerTool::problem).
    ///
    /// ```
    /// use steadfast::{Server, ServerTool};
    ///
    /// let tool = ServerTool::new("ready").handler(|| async { true });
    /// let error = Server::builder("twins", "1.0.0").tool(tool.clone()).tool(tool).try_build().unwrap_err();
    /// assert_eq!(error.to_string(), "there are two tools named `ready`");
    /// ```
    pub fn try_build(self) -> Result<Server, Error> {
        if let Some(problem) = names::problem_of_extensions(&self.settings.extensions) {
            return Err(Error::usage(problem));
        }
        check_distinct("tools named", &self.items.tools)?;
        for tool in &self.items.tools {
            if let Some(problem) = tool.problem() {
                return Err(Error::usage(format!("the tool `{}` cannot be served: {problem}", tool.name())));
            }
        }
        check_distinct("prompts named", &self.items.prompts)?;
        for prompt in &self.items.prompts {
            if let Some(problem) = prompt.problem() {
                return Err(Error::usage(format!("the prompt `{}` cannot be served: {problem}", prompt.name())));
            }
        }
        check_distinct("resources at", &self.items.resources)?;
        for resource in &self.items.resources {
            if let Some(problem) = resource.problem() {
                return Err(Error::usage(format!("the resource `{}` cannot be served: {problem}", resource.uri())));
            }
        }
        check_distinct("resource templates", &self.items.resource_templates)?;
        for template in &self.items.resource_templates {
            if let Some(problem) = template.problem() {
                let uri_template = template.uri_template();
                return Err(Error::usage(format!(
                    "the resource template `{uri_template}` cannot be served: {problem}"
                )));
            }
        }
        Ok(Server::assemble(self.settings, self.items))
    }
}

/// Returns an error if two items of the server have the same name or URI, because only one of them could be found.
fn check_distinct<T: CatalogItem>(kind: &str, items: &[T]) -> Result<(), Error> {
    let mut keys: Vec<&str> = items.iter().map(CatalogItem::key).collect();
    keys.sort_unstable();
    match keys.iter().zip(keys.iter().skip(1)).find(|(left, right)| left == right) {
        Some((twice, _)) => Err(Error::usage(format!("there are two {kind} `{twice}`"))),
        None => Ok(()),
    }
}

impl IntoServer for ServerBuilder {
    #[track_caller]
    fn into_server(self) -> Server {
        self.build()
    }
}
