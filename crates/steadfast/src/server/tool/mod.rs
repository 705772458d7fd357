//! A tool of a server: its definition, which clients list, and its handler.

pub(crate) mod arguments;
mod builder;
pub(crate) mod error;
pub(crate) mod handler;
pub(crate) mod media;
pub(crate) mod parameters;
pub(crate) mod reply;
pub(crate) mod schema;

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use steadfast_model as model;
use steadfast_model::{CallToolResult, ListToolsResult};
use steadfast_proto::connection::PeerInfo;
use steadfast_proto::http::params::MirroredParams;

use super::context::Context;
use super::input::need;
use super::input::need::RequiredClientCapability;
use super::registry::CatalogItem;
use super::tasks::{PreTaskInputHandler, ServerTaskRequestRoutes, TaskMode};
use crate::error::Error;
use crate::runtime::{FirstPollHistory, HandlerJob};
use crate::server::dispatch::encode::ServerHandlerOutput;
use arguments::RawArguments;
use builder::HandwrittenSchemaFlags;
use handler::ErasedHandler;

pub use builder::ServerToolBuilder;

/// A tool that a server offers to clients: its definition and its handler. Cheap to clone.
///
/// `#[tool]` makes a tool from a function; [`ServerTool::new`] makes a tool without the macro, also at run time.
/// Schemas that are written by hand need the crate feature `schema-validation`:
///
#[cfg_attr(feature = "schema-validation", doc = "```")]
#[cfg_attr(not(feature = "schema-validation"), doc = "```no_run")]
/// use serde_json::json;
/// use steadfast::{JsonObject, Server, ServerTool};
///
/// let shout = ServerTool::new("shout")
///     .description("Says it louder.")
///     .input_schema(json!({
///         "type": "object",
///         "properties": { "text": { "type": "string", "maxLength": 1000 } },
///         "required": ["text"],
///     }))
///     .read_only()
///     .handler(|arguments: JsonObject| async move {
///         arguments["text"].as_str().unwrap_or_default().to_uppercase()
///     });
///
/// let server = Server::builder("loud", "1.0.0").tool(shout).build();
/// ```
#[derive(Clone)]
pub struct ServerTool {
    inner: Arc<ServerToolInner>,
}

struct ServerToolInner {
    definition: model::Tool,
    cooperative: bool,
    tasks: Option<(TaskMode, &'static ServerTaskRequestRoutes)>,
    ask_first: Option<PreTaskInputHandler>,
    needs: Vec<RequiredClientCapability>,
    problem: Option<String>,
    handler: Arc<dyn ErasedHandler>,
    /// The history of the first polls of the tool's handler. `None` if the handler runs on the workers only.
    history: Option<Arc<FirstPollHistory>>,
    /// The arguments of the tool that HTTP clients mirror into headers.
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "the annotations are checked without HTTP too"))]
    mirrored: MirroredParams,
}

impl ServerTool {
    /// Starts building a tool with that name. [`ServerToolBuilder::handler`] finishes building the tool.
    #[allow(clippy::new_ret_no_self, reason = "returns a builder: there is no tool until it has a handler")]
    pub fn new(name: impl Into<String>) -> ServerToolBuilder {
        let mut definition = model::Tool::new(name);
        definition.input_schema = schema::of_nothing();
        ServerToolBuilder::new(definition, HandwrittenSchemaFlags::default())
    }

    /// Starts building a tool with an existing definition, for example that of another server's tool.
    ///
    /// Arguments and results are checked against the schemas of the definition, which needs the crate feature
    /// `schema-validation`: without this feature the tool has a [problem](ServerTool::problem).
    pub fn from_definition(definition: model::Tool) -> ServerToolBuilder {
        let schemas =
            HandwrittenSchemaFlags { input_by_hand: true, output_by_hand: definition.output_schema.is_some() };
        ServerToolBuilder::new(definition, schemas)
    }

    /// The name of the tool.
    pub fn name(&self) -> &str {
        &self.inner.definition.name
    }

    /// The definition of the tool, which clients get from `tools/list`.
    pub fn definition(&self) -> &model::Tool {
        &self.inner.definition
    }

    /// Whether the tool's handler is cooperative: a cancelled handler is not dropped at once, but may go on for a grace
    /// period.
    pub fn is_cooperative(&self) -> bool {
        self.inner.cooperative
    }

    /// The arguments of the tool that HTTP clients mirror into headers.
    #[cfg(feature = "http")]
    pub(crate) fn mirrored(&self) -> &MirroredParams {
        &self.inner.mirrored
    }

    /// Whether calls of the tool run as MCP tasks.
    pub fn task_mode(&self) -> TaskMode {
        self.inner.tasks.map_or(TaskMode::Never, |(support, _)| support)
    }

    /// Whether calls of the tool run as MCP tasks, and the server's routes for task requests; `None` if calls never run
    /// as tasks.
    pub(crate) fn tasks(&self) -> Option<(TaskMode, &'static ServerTaskRequestRoutes)> {
        self.inner.tasks
    }

    /// The capabilities that a client must have declared to call the tool; calls of other clients are refused.
    pub fn needs(&self) -> &[RequiredClientCapability] {
        &self.inner.needs
    }

    /// The handler that requests input from the client before a call of the tool becomes an MCP task.
    pub(super) fn asks_first(&self) -> Option<&PreTaskInputHandler> {
        self.inner.ask_first.as_ref()
    }

    /// What is wrong with the tool, if anything: an invalid schema, for example. Calls of a tool with a problem end
    /// with an error, and [`ServerBuilder::build`](super::ServerBuilder::build) rejects it.
    pub fn problem(&self) -> Option<&str> {
        self.inner.problem.as_deref()
    }

    /// Calls the tool without a server, for tests. In such a call, a blocking handler runs on the current thread.
    ///
    /// If the tool fails, this function returns `Ok` with a result that has `isError`; `Err` is a JSON-RPC error.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use serde_json::json;
    /// use steadfast::{JsonObject, ServerTool};
    ///
    /// let tool = ServerTool::new("count").handler(|arguments: JsonObject| async move { arguments.len() });
    /// let result = tool.call(json!({ "a": 1, "b": 2 })).await.unwrap();
    /// assert_eq!(result.content[0].as_text(), Some("2"));
    /// # });
    /// ```
    pub async fn call(&self, arguments: impl Serialize) -> Result<CallToolResult, Error> {
        let text = serde_json::to_string(&arguments).map_err(Error::encode)?.into_boxed_str();
        let range = 0..text.len();
        match self.start(RawArguments::within(text, range), Context::detached()).run().await {
            ServerHandlerOutput::Tool(reply) => reply.or_else(super::ToolError::into_result),
            _ => Err(Error::internal("the handler returned something else than the result of a tool")),
        }
    }

    /// The history of the first polls of the tool's handler, if they may run on the thread of an I/O loop.
    pub(crate) fn history(&self) -> Option<&Arc<FirstPollHistory>> {
        self.inner.history.as_ref()
    }

    /// Returns an error if the client has not declared a capability that the tool needs.
    pub(crate) fn check_needs(&self, client: &PeerInfo) -> Result<(), Error> {
        need::check(&self.inner.needs, client)
    }

    /// Prepares one call of the tool. No code of the handler runs before the returned future is polled, or the returned
    /// function is called.
    pub(crate) fn start(&self, arguments: RawArguments, ctx: Context) -> HandlerJob<ServerHandlerOutput> {
        Arc::clone(&self.inner.handler).start(arguments, ctx)
    }
}

impl CatalogItem for ServerTool {
    const KIND: u8 = b't';
    type Definition = model::Tool;
    type List = ListToolsResult;

    fn key(&self) -> &str {
        self.name()
    }

    fn definition(&self) -> &model::Tool {
        self.definition()
    }

    fn page(definitions: Vec<model::Tool>, next_cursor: Option<String>) -> ListToolsResult {
        let mut page = ListToolsResult::new(definitions);
        page.next_cursor = next_cursor;
        page
    }
}

impl fmt::Debug for ServerTool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tool").field("definition", &self.inner.definition).finish_non_exhaustive()
    }
}
