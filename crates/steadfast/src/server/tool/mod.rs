//! A tool: what clients are told about it, and the function that it runs.

pub(crate) mod arguments;
pub(crate) mod error;
pub(crate) mod handler;
pub(crate) mod media;
pub(crate) mod parameters;
pub(crate) mod reply;
pub(crate) mod schema;

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use steadfast_model as model;
use steadfast_model::{CallToolResult, JsonObject, ListToolsResult, ToolAnnotations};
use steadfast_proto::connection::Peer;
use steadfast_proto::http::params::MirroredParams;

use super::context::Context;
use super::input::need;
use super::input::need::Need;
use super::registry::Item;
use super::registry::description::description_setters;
use super::registry::names;
use super::tasks::{AskFirst, TaskSupport};
use crate::error::Error;
use crate::validation::Validator;
use arguments::Arguments;
use error::ToolError;
use handler::{BlockingHandler, Checks, Handler, Named, OnThreads, OnWorkers, Read, Run, Start, Whole};
use parameters::Parameters;
use reply::IntoReply;

/// A tool of a server. Cheap to clone.
///
/// `#[tool]` makes one from a function; this makes one by hand, also at run time. Schemas that are written by hand need the
/// feature `schema-validation`:
///
#[cfg_attr(feature = "schema-validation", doc = "```")]
#[cfg_attr(not(feature = "schema-validation"), doc = "```no_run")]
/// use serde_json::json;
/// use steadfast::{JsonObject, Server, Tool};
///
/// let shout = Tool::new("shout")
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
pub struct Tool {
    inner: Arc<Inner>,
}

struct Inner {
    definition: model::Tool,
    cooperative: bool,
    tasks: TaskSupport,
    ask_first: Option<AskFirst>,
    needs: Vec<Need>,
    problem: Option<String>,
    handler: Arc<dyn Start>,
    /// Its arguments that HTTP clients mirror into headers.
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "checked all the same"))]
    mirrored: MirroredParams,
}

impl Tool {
    /// Begins a tool of that name. It is complete when it is given a handler.
    #[allow(clippy::new_ret_no_self, reason = "a tool without a handler is not a tool")]
    pub fn new(name: impl Into<String>) -> ToolBuilder {
        let mut definition = model::Tool::new(name);
        definition.input_schema = schema::of_nothing();
        ToolBuilder {
            definition,
            schemas: Schemas::default(),
            cooperative: false,
            tasks: TaskSupport::Never,
            ask_first: None,
            needs: Vec::new(),
            problem: None,
        }
    }

    /// Begins a tool with a description that exists already, for example the one of another server's tool.
    ///
    /// Arguments and results are checked against the schemas in it, which needs the feature `schema-validation`: without it
    /// the tool has a [problem](Tool::problem).
    pub fn from_definition(definition: model::Tool) -> ToolBuilder {
        let schemas = Schemas { input_by_hand: true, output_by_hand: definition.output_schema.is_some() };
        ToolBuilder {
            definition,
            schemas,
            cooperative: false,
            tasks: TaskSupport::Never,
            ask_first: None,
            needs: Vec::new(),
            problem: None,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner.definition.name
    }

    /// What clients are told about it.
    pub fn definition(&self) -> &model::Tool {
        &self.inner.definition
    }

    /// Whether its handler goes on after a cancellation, until it has seen it for itself.
    pub fn is_cooperative(&self) -> bool {
        self.inner.cooperative
    }

    /// Its arguments that HTTP clients mirror into headers.
    #[cfg(feature = "http")]
    pub(crate) fn mirrored(&self) -> &MirroredParams {
        &self.inner.mirrored
    }

    /// Whether its calls run as tasks.
    pub fn task_support(&self) -> TaskSupport {
        self.inner.tasks
    }

    /// What a client has to be able to do, or its calls are refused.
    pub fn needs(&self) -> &[Need] {
        &self.inner.needs
    }

    /// What is asked before a call becomes a task.
    pub(super) fn asks_first(&self) -> Option<&AskFirst> {
        self.inner.ask_first.as_ref()
    }

    /// What is wrong with the tool, if something is: a schema that is none, for example. Calls of such a tool end with
    /// an error, and [`ServerBuilder::build`](super::ServerBuilder::build) refuses it.
    pub fn problem(&self) -> Option<&str> {
        self.inner.problem.as_deref()
    }

    /// Calls the tool without a server around it, for tests. A blocking handler runs on this thread.
    ///
    /// The result of a tool that failed is `Ok` and says so; `Err` is a JSON-RPC error.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use serde_json::json;
    /// use steadfast::{JsonObject, Tool};
    ///
    /// let tool = Tool::new("count").handler(|arguments: JsonObject| async move { arguments.len() });
    /// let result = tool.call(json!({ "a": 1, "b": 2 })).await.unwrap();
    /// assert_eq!(result.content[0].as_text(), Some("2"));
    /// # });
    /// ```
    pub async fn call(&self, arguments: impl Serialize) -> Result<CallToolResult, Error> {
        let text = serde_json::to_string(&arguments).map_err(Error::encode)?.into_boxed_str();
        let range = 0..text.len();
        let reply = match self.start(Arguments::within(text, range), Context::detached()) {
            Run::Future(future) => future.await,
            Run::Blocking(function) => function(),
        };
        reply.or_else(super::Failure::into_answer)
    }

    /// An error if the client cannot do what the tool needs.
    pub(crate) fn check_needs(&self, client: &Peer) -> Result<(), Error> {
        need::check(&self.inner.needs, client)
    }

    /// Makes one call ready to run.
    pub(crate) fn start(&self, arguments: Arguments, ctx: Context) -> Run {
        Arc::clone(&self.inner.handler).start(arguments, ctx)
    }
}

impl Item for Tool {
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

impl fmt::Debug for Tool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tool").field("definition", &self.inner.definition).finish_non_exhaustive()
    }
}

/// A tool in the making: see [`Tool::new`].
#[derive(Debug)]
#[must_use = "a tool is complete when it is given a handler"]
pub struct ToolBuilder {
    definition: model::Tool,
    schemas: Schemas,
    cooperative: bool,
    tasks: TaskSupport,
    ask_first: Option<AskFirst>,
    needs: Vec<Need>,
    problem: Option<String>,
}

/// Where the schemas come from: those written by hand are checked at each call, those of types need not be.
#[derive(Debug, Default)]
struct Schemas {
    input_by_hand: bool,
    output_by_hand: bool,
}

impl ToolBuilder {
    description_setters!(description: "What the tool does and when to use it, for the model.");

    /// The JSON Schema of the arguments: an object. Arguments are checked against it before the handler runs. That needs the
    /// feature `schema-validation`: without it the tool has a [problem](Tool::problem), and no server is built with it.
    ///
    /// It is of draft 2020-12 unless its `$schema` names another: 2019-09, draft-07, draft-06 and draft-04 are known too.
    /// It may not refer to other documents, and has to keep within [`schema_limits`](super::schema_limits). One that
    /// does not is a [problem](Tool::problem) of the tool.
    pub fn input_schema(mut self, schema: impl Into<Value>) -> Self {
        match schema.into() {
            Value::Object(mut schema) => {
                schema.entry("type").or_insert_with(|| "object".into());
                self.definition.input_schema = schema;
                self.schemas.input_by_hand = true;
                self
            }
            _ => self.with_problem("its input schema is not an object"),
        }
    }

    /// Takes the schema of the arguments from a type, the one that the handler takes. Reading into that type is the
    /// check, so no other is made.
    ///
    /// ```
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    /// use steadfast::Tool;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Search {
    ///     /// What to look for
    ///     text: String,
    ///     limit: Option<u32>,
    /// }
    ///
    /// let tool = Tool::new("search").input::<Search>().handler(|search: Search| async move { search.text });
    /// assert_eq!(tool.definition().input_schema["properties"]["text"]["description"], "What to look for");
    /// ```
    pub fn input<A: JsonSchema>(mut self) -> Self {
        self.definition.input_schema = schema::of_input::<A>();
        self.schemas.input_by_hand = false;
        self
    }

    /// The JSON Schema of the structured content, with the same rules as [`ToolBuilder::input_schema`]. Results are checked
    /// against it, which needs the feature `schema-validation` too. A handler that returns [`Structured`](crate::Structured) brings its own.
    pub fn output_schema(mut self, schema: impl Into<Value>) -> Self {
        match schema.into() {
            Value::Object(schema) => {
                self.definition.output_schema = Some(schema);
                self.schemas.output_by_hand = true;
                self
            }
            _ => self.with_problem("its output schema is not an object"),
        }
    }

    /// Takes the schema of the structured content from a type, for a handler that returns a [`CallToolResult`] or JSON of
    /// that shape. Results are checked against it, which needs the feature `schema-validation`; a handler that returns
    /// [`Structured`](crate::Structured) needs neither.
    pub fn output<T: JsonSchema>(mut self) -> Self {
        self.definition.output_schema = Some(schema::of_output::<T>());
        self.schemas.output_by_hand = true;
        self
    }

    /// All hints at once.
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.definition.annotations = Some(annotations);
        self
    }

    /// A hint: the tool changes nothing.
    pub fn read_only(mut self) -> Self {
        self.hints().read_only_hint = Some(true);
        self
    }

    /// A hint: whether the tool may destroy something. Clients assume so unless told.
    pub fn destructive(mut self, destructive: bool) -> Self {
        self.hints().destructive_hint = Some(destructive);
        self
    }

    /// A hint: calling the tool twice with the same arguments does no more than calling it once.
    pub fn idempotent(mut self) -> Self {
        self.hints().idempotent_hint = Some(true);
        self
    }

    /// A hint: whether the tool reaches out to the world, such as the web. Clients assume so unless told.
    pub fn open_world(mut self, open_world: bool) -> Self {
        self.hints().open_world_hint = Some(open_world);
        self
    }

    /// Whether calls run as tasks: clients get a task at once, ask after it, and find the result there. The handler is the
    /// same either way.
    ///
    /// ```
    /// use steadfast::Tool;
    /// use steadfast::server::tasks::TaskSupport;
    ///
    /// let tool = Tool::new("index").task(TaskSupport::Optional).handler(|| async { "done" });
    /// assert_eq!(tool.task_support(), TaskSupport::Optional);
    /// ```
    pub fn task(mut self, support: TaskSupport) -> Self {
        self.tasks = support;
        self
    }

    /// What is asked before a call becomes a task: it ends with these questions until they are answered, and the task begins
    /// when they are. The handler asks them again, in the same way, and has the answers at once. A call that does not become
    /// a task leaves it to the handler to ask.
    ///
    /// ```
    /// use steadfast::server::tasks::TaskSupport;
    /// use steadfast::{Context, Tool, ToolError};
    ///
    /// async fn days(ctx: Context) -> Result<u8, ToolError> {
    ///     Ok(ctx.elicit("How many days?").key("days").await?)
    /// }
    ///
    /// Tool::new("archive")
    ///     .task(TaskSupport::Required)
    ///     .ask_first(|ctx: Context| async move { days(ctx).await.map(drop) })
    ///     .handler(|ctx: Context| async move { Ok::<_, ToolError>(format!("{} days", days(ctx).await?)) });
    /// ```
    pub fn ask_first<F, A>(mut self, ask: F) -> Self
    where
        F: Fn(Context) -> A + Send + Sync + 'static,
        A: Future<Output = Result<(), ToolError>> + Send + 'static,
    {
        self.ask_first = Some(AskFirst::new(ask));
        self
    }

    /// Something that a client has to be able to do: others are refused before the tool runs. May be said more than once.
    ///
    /// ```
    /// use steadfast::{Context, Tool};
    /// use steadfast::server::Need;
    ///
    /// Tool::new("summary").needs(Need::Sampling).handler(|ctx: Context| async move {
    ///     let summary = ctx.sample("Say it in a word.").await?;
    ///     Ok::<_, steadfast::ToolError>(summary.content)
    /// });
    /// ```
    pub fn needs(mut self, need: Need) -> Self {
        self.needs.push(need);
        self
    }

    /// Completes the tool with an `async` handler, which runs on the workers. See [`Handler`].
    ///
    /// A handler that blocks its thread delays others: use [`ToolBuilder::blocking_handler`] for that.
    pub fn handler<M: 'static, H: Handler<M>>(self, handler: H) -> Tool
    where
        H::Output: IntoReply,
    {
        let read = Whole::<H::Arguments>::new();
        self.on_workers(read, move |arguments, ctx| handler.call(arguments, ctx))
    }

    /// Completes the tool with a plain handler, which runs on a thread that it may block. See [`BlockingHandler`].
    ///
    /// ```
    /// use serde::Deserialize;
    /// use steadfast::{Context, Tool};
    ///
    /// #[derive(Deserialize)]
    /// struct Hash {
    ///     path: String,
    /// }
    ///
    /// Tool::new("size").blocking_handler(|Hash { path }: Hash, ctx: Context| -> std::io::Result<u64> {
    ///     Ok(std::fs::metadata(path)?.len())
    /// });
    /// ```
    pub fn blocking_handler<M: 'static, H: BlockingHandler<M>>(self, handler: H) -> Tool
    where
        H::Output: IntoReply + 'static,
    {
        let read = Whole::<H::Arguments>::new();
        self.on_threads(read, move |arguments, ctx| handler.call(arguments, ctx))
    }

    /// What `#[tool]` makes of an `async fn`.
    pub(crate) fn parameters_handler<P, F, Answer>(self, names: &'static [&'static str], function: F) -> Tool
    where
        P: Parameters,
        F: Fn(P, Context) -> Answer + Send + Sync + 'static,
        Answer: Future + Send + 'static,
        Answer::Output: IntoReply,
    {
        self.on_workers(Named::<P>::new(names), function)
    }

    /// What `#[tool]` makes of a plain `fn`.
    pub(crate) fn blocking_parameters_handler<P, F, Answer>(self, names: &'static [&'static str], function: F) -> Tool
    where
        P: Parameters,
        F: Fn(P, Context) -> Answer + Send + Sync + 'static,
        Answer: IntoReply + 'static,
    {
        self.on_threads(Named::<P>::new(names), function)
    }

    /// A schema that fits the types of the handler.
    pub(crate) fn typed_input_schema(mut self, schema: JsonObject) -> Self {
        self.definition.input_schema = schema;
        self.schemas.input_by_hand = false;
        self
    }

    fn on_workers<I, F, Answer>(mut self, read: I, call: F) -> Tool
    where
        I: Read,
        F: Fn(I::Value, Context) -> Answer + Send + Sync + 'static,
        Answer: Future + Send + 'static,
        Answer::Output: IntoReply,
    {
        let checks = self.checks::<Answer::Output>();
        self.complete(Arc::new(OnWorkers { read, call, checks }))
    }

    fn on_threads<I, F, Answer>(mut self, read: I, call: F) -> Tool
    where
        I: Read,
        F: Fn(I::Value, Context) -> Answer + Send + Sync + 'static,
        Answer: IntoReply + 'static,
    {
        let checks = self.checks::<Answer>();
        self.complete(Arc::new(OnThreads { read, call, checks }))
    }

    fn complete(self, handler: Arc<dyn Start>) -> Tool {
        let Self { definition, cooperative, tasks, ask_first, needs, mut problem, .. } = self;
        let mut mirrored = MirroredParams::default();
        // What has a problem is not called, and its schema may be of any size.
        if problem.is_none() {
            match MirroredParams::of_schema(&definition.input_schema) {
                Ok(found) => mirrored = found,
                Err(bad) => problem = Some(bad.to_string()),
            }
        }
        Tool { inner: Arc::new(Inner { definition, cooperative, tasks, ask_first, needs, problem, handler, mirrored }) }
    }

    fn checks<R: IntoReply>(&mut self) -> Checks {
        if self.definition.output_schema.is_none() {
            self.definition.output_schema = R::output_schema();
        }
        if self.definition.name.is_empty() {
            self.note_problem("its name is empty");
        } else if !is_plain(&self.definition.name) {
            let name = &*self.definition.name;
            tracing::warn!(
                name,
                "not every client takes this name: it should have up to 128 letters, digits, `_`, `-` and `.`"
            );
        }
        if self.definition.input_schema.get("type") != Some(&Value::from("object")) {
            self.note_problem("its input schema is not of `type: object`");
        }
        if let Some(problem) = names::problem_of_meta(self.definition.meta.as_ref()) {
            self.note_problem(&problem);
        }
        let input = self.schemas.input_by_hand.then(|| Validator::new(&self.definition.input_schema));
        let output = self.definition.output_schema.as_ref().filter(|_| self.schemas.output_by_hand).map(Validator::new);
        let input = self.sound("input", input);
        let output = self.sound("output", output);
        Checks { input, output, problem: self.problem.clone() }
    }

    fn sound(&mut self, which: &str, compiled: Option<Result<Validator, String>>) -> Option<Validator> {
        match compiled? {
            Ok(validator) => Some(validator),
            Err(complaint) => {
                self.note_problem(&format!("its {which} schema cannot be used: {complaint}"));
                None
            }
        }
    }

    fn with_problem(mut self, problem: &str) -> Self {
        self.note_problem(problem);
        self
    }

    fn note_problem(&mut self, problem: &str) {
        // The first is the one to mend first.
        self.problem.get_or_insert_with(|| problem.to_owned());
    }

    fn hints(&mut self) -> &mut ToolAnnotations {
        self.definition.annotations.get_or_insert_default()
    }
}

/// Whether the specification advises to call a tool so. What else it is called works here, and with most clients.
fn is_plain(name: &str) -> bool {
    name.len() <= 128 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}
