//! The builder of a tool: its definition, its schemas, and the handler that completes it.

use std::sync::Arc;

use schemars::JsonSchema;
use serde_json::Value;
use steadfast_model as model;
use steadfast_model::{JsonObject, ToolAnnotations};
use steadfast_proto::http::params::MirroredParams;

use super::error::ToolError;
use super::handler::{
    AsyncTool, BlockingHandler, BlockingTool, DecodeArguments, ErasedHandler, Handler, NamedArgumentsDecoder,
    ToolChecks, WholeArgumentsDecoder,
};
use super::parameters::ParameterTuple;
use super::reply::IntoToolReply;
use super::{ServerTool, ServerToolInner, schema};
use crate::server::context::Context;
use crate::server::input::need::RequiredClientCapability;
use crate::server::registry::description::description_setters;
use crate::server::registry::names;
use crate::server::tasks::{PreTaskInputHandler, ServerTaskRequestRoutes, TASK_ROUTES, TaskMode};
use crate::validation::SchemaValidator;

/// Builds a [`ServerTool`]: see [`ServerTool::new`].
#[derive(Debug)]
#[must_use = "call `handler` to get the tool"]
pub struct ServerToolBuilder {
    definition: model::Tool,
    schemas: HandwrittenSchemaFlags,
    cooperative: bool,
    tasks: Option<(TaskMode, &'static ServerTaskRequestRoutes)>,
    ask_first: Option<PreTaskInputHandler>,
    needs: Vec<RequiredClientCapability>,
    problem: Option<String>,
    on_workers: bool,
}

/// Which schemas of a tool were written by hand: arguments and results are checked against such schemas at each call.
/// Schemas that were derived from a type need no check, because decoding into the type is the check.
#[derive(Debug, Default)]
pub(super) struct HandwrittenSchemaFlags {
    pub(super) input_by_hand: bool,
    pub(super) output_by_hand: bool,
}

impl ServerToolBuilder {
    pub(super) fn new(definition: model::Tool, schemas: HandwrittenSchemaFlags) -> Self {
        Self {
            definition,
            schemas,
            cooperative: false,
            tasks: None,
            ask_first: None,
            needs: Vec::new(),
            problem: None,
            on_workers: false,
        }
    }

    description_setters!(description: "What the tool does and when to use it, for the model.");

    /// The JSON Schema of the tool's arguments: an object. Arguments are checked against this schema before the handler
    /// runs. The check needs the crate feature `schema-validation`: without this feature the tool has a
    /// [problem](ServerTool::problem), and no server can be built with the tool.
    ///
    /// The dialect of the schema is 2020-12 unless `$schema` names another: 2019-09, draft-07, draft-06 and draft-04
    /// are supported too. The schema may not refer to other documents, and has limits: 1 MiB, and bounds for its depth
    /// and its number of subschemas. A schema that exceeds these limits is a [problem](ServerTool::problem) of the
    /// tool.
    pub fn input_schema(mut self, schema: impl Into<Value>) -> Self {
        match schema.into() {
            Value::Object(mut schema) => {
                schema.entry("type").or_insert_with(|| "object".into());
                self.definition.input_schema = schema;
                self.schemas.input_by_hand = true;
                self
            }
            _ => self.with_problem("the input schema of the tool is not an object"),
        }
    }

    /// Derives the schema of the tool's arguments from the type that the handler takes. Decoding into that type is the
    /// check, so the arguments are not checked against the schema.
    ///
    /// ```
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    /// use steadfast::ServerTool;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Search {
    ///     /// What to look for
    ///     text: String,
    ///     limit: Option<u32>,
    /// }
    ///
    /// let tool = ServerTool::new("search").input::<Search>().handler(|search: Search| async move { search.text });
    /// assert_eq!(tool.definition().input_schema["properties"]["text"]["description"], "What to look for");
    /// ```
    pub fn input<A: JsonSchema>(mut self) -> Self {
        self.definition.input_schema = schema::of_input::<A>();
        self.schemas.input_by_hand = false;
        self
    }

    /// The JSON Schema of the tool's structured content, with the same rules as [`ServerToolBuilder::input_schema`].
    /// Results of the tool are checked against this schema, which needs the crate feature `schema-validation` too. A
    /// handler that returns [`Structured`](crate::Structured) has its own schema.
    pub fn output_schema(mut self, schema: impl Into<Value>) -> Self {
        match schema.into() {
            Value::Object(schema) => {
                self.definition.output_schema = Some(schema);
                self.schemas.output_by_hand = true;
                self
            }
            _ => self.with_problem("the output schema of the tool is not an object"),
        }
    }

    /// Derives the schema of the tool's structured content from a type, for a handler that returns a
    /// [`CallToolResult`](steadfast_model::CallToolResult) or JSON of that shape. Results of the tool are checked
    /// against this schema, which needs the crate feature `schema-validation`; a handler that returns
    /// [`Structured`](crate::Structured) needs neither the schema nor the feature.
    pub fn output<T: JsonSchema>(mut self) -> Self {
        self.definition.output_schema = Some(schema::of_output::<T>());
        self.schemas.output_by_hand = true;
        self
    }

    /// Sets all annotations of the tool, which are hints for clients, and replaces those that were set before.
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.definition.annotations = Some(annotations);
        self
    }

    /// A hint: the tool is read-only.
    pub fn read_only(mut self) -> Self {
        self.hints().read_only_hint = Some(true);
        self
    }

    /// A hint: whether the tool may perform destructive updates. Without a hint, clients assume that a tool may
    /// perform destructive updates.
    pub fn destructive(mut self, destructive: bool) -> Self {
        self.hints().destructive_hint = Some(destructive);
        self
    }

    /// A hint: calling the tool twice with the same arguments does no more than calling it once.
    pub fn idempotent(mut self) -> Self {
        self.hints().idempotent_hint = Some(true);
        self
    }

    /// A hint: whether the tool interacts with the outside world, such as the web. Without a hint, clients assume
    /// that a tool interacts with the outside world.
    pub fn open_world(mut self, open_world: bool) -> Self {
        self.hints().open_world_hint = Some(open_world);
        self
    }

    /// Whether calls of the tool run as MCP tasks: the client gets a task at once, polls the task, and gets the result
    /// from it. The handler of the tool is the same with and without tasks.
    ///
    /// ```
    /// use steadfast::ServerTool;
    /// use steadfast::server::tasks::TaskMode;
    ///
    /// let tool = ServerTool::new("index").task(TaskMode::Optional).handler(|| async { "done" });
    /// assert_eq!(tool.task_mode(), TaskMode::Optional);
    /// ```
    pub fn task(mut self, support: TaskMode) -> Self {
        self.tasks = Some((support, &TASK_ROUTES));
        self
    }

    /// Requests input from the client before a call of the tool becomes an MCP task: the call ends with these input
    /// requests until they are answered, and then the task starts. The handler of the task requests the same input
    /// again, in the same way, and gets the answers immediately. If a call does not become an MCP task, only the
    /// handler requests the input.
    ///
    /// ```
    /// use steadfast::server::tasks::TaskMode;
    /// use steadfast::{Context, ServerTool, ToolError};
    ///
    /// async fn days(ctx: Context) -> Result<u8, ToolError> {
    ///     Ok(ctx.elicit("How many days?").key("days").await?)
    /// }
    ///
    /// ServerTool::new("archive")
    ///     .task(TaskMode::Required)
    ///     .ask_first(|ctx: Context| async move { days(ctx).await.map(drop) })
    ///     .handler(|ctx: Context| async move { Ok::<_, ToolError>(format!("{} days", days(ctx).await?)) });
    /// ```
    pub fn ask_first<F, A>(mut self, ask: F) -> Self
    where
        F: Fn(Context) -> A + Send + Sync + 'static,
        A: Future<Output = Result<(), ToolError>> + Send + 'static,
    {
        self.ask_first = Some(PreTaskInputHandler::new(ask));
        self
    }

    /// Adds a capability that a client must have declared: calls of other clients are refused before the tool runs.
    /// Call `needs` once for each required capability.
    ///
    /// ```
    /// use steadfast::{Context, ServerTool};
    /// use steadfast::server::RequiredClientCapability;
    ///
    /// ServerTool::new("summary").needs(RequiredClientCapability::Sampling).handler(|ctx: Context| async move {
    ///     let summary = ctx.sample("Say it in a word.").await?;
    ///     Ok::<_, steadfast::ToolError>(summary.content)
    /// });
    /// ```
    pub fn needs(mut self, need: RequiredClientCapability) -> Self {
        self.needs.push(need);
        self
    }

    /// Runs the handler only on the workers of the tokio runtime or, if it is a plain function, on a blocking thread.
    /// Without `on_workers`, a handler that usually answers at once is polled for the first time on a thread of the
    /// library: see [`ServerBuilder::handlers_on_workers`](crate::server::ServerBuilder::handlers_on_workers).
    pub fn on_workers(mut self) -> Self {
        self.on_workers = true;
        self
    }

    /// Finishes building the tool, with an `async` handler, which runs on the async worker threads. See [`Handler`].
    ///
    /// An `async` handler that blocks its thread delays others: use [`ServerToolBuilder::blocking_handler`] for code
    /// that blocks.
    pub fn handler<M: 'static, H: Handler<M>>(self, handler: H) -> ServerTool
    where
        H::Output: IntoToolReply,
    {
        let decoder = WholeArgumentsDecoder::<H::Arguments>::new();
        self.on_async(decoder, move |arguments, ctx| handler.call(arguments, ctx))
    }

    /// Finishes building the tool, with a plain handler, which runs on a thread that may block. See
    /// [`BlockingHandler`].
    ///
    /// ```
    /// use serde::Deserialize;
    /// use steadfast::{Context, ServerTool};
    ///
    /// #[derive(Deserialize)]
    /// struct Hash {
    ///     path: String,
    /// }
    ///
    /// ServerTool::new("size").blocking_handler(|Hash { path }: Hash, ctx: Context| -> std::io::Result<u64> {
    ///     Ok(std::fs::metadata(path)?.len())
    /// });
    /// ```
    pub fn blocking_handler<M: 'static, H: BlockingHandler<M>>(self, handler: H) -> ServerTool
    where
        H::Output: IntoToolReply + 'static,
    {
        let decoder = WholeArgumentsDecoder::<H::Arguments>::new();
        self.on_blocking(decoder, move |arguments, ctx| handler.call(arguments, ctx))
    }

    /// Finishes building the tool, with the handler that `#[tool]` makes from an `async fn`.
    pub(crate) fn parameters_handler<P, F, Out>(self, names: &'static [&'static str], function: F) -> ServerTool
    where
        P: ParameterTuple,
        F: Fn(P, Context) -> Out + Send + Sync + 'static,
        Out: Future + Send + 'static,
        Out::Output: IntoToolReply,
    {
        self.on_async(NamedArgumentsDecoder::<P>::new(names), function)
    }

    /// Finishes building the tool, with the handler that `#[tool]` makes from a plain `fn`.
    pub(crate) fn blocking_parameters_handler<P, F, Out>(
        self,
        names: &'static [&'static str],
        function: F,
    ) -> ServerTool
    where
        P: ParameterTuple,
        F: Fn(P, Context) -> Out + Send + Sync + 'static,
        Out: IntoToolReply + 'static,
    {
        self.on_blocking(NamedArgumentsDecoder::<P>::new(names), function)
    }

    /// Sets an input schema that was derived from the types of the handler.
    pub(crate) fn typed_input_schema(mut self, schema: JsonObject) -> Self {
        self.definition.input_schema = schema;
        self.schemas.input_by_hand = false;
        self
    }

    fn on_async<I, F, Out>(mut self, decoder: I, call: F) -> ServerTool
    where
        I: DecodeArguments,
        F: Fn(I::Value, Context) -> Out + Send + Sync + 'static,
        Out: Future + Send + 'static,
        Out::Output: IntoToolReply,
    {
        let checks = self.checks::<Out::Output>();
        self.complete(Arc::new(AsyncTool { decoder, call, checks }))
    }

    fn on_blocking<I, F, Out>(mut self, decoder: I, call: F) -> ServerTool
    where
        I: DecodeArguments,
        F: Fn(I::Value, Context) -> Out + Send + Sync + 'static,
        Out: IntoToolReply + 'static,
    {
        let checks = self.checks::<Out>();
        self.complete(Arc::new(BlockingTool { decoder, call, checks }))
    }

    fn complete(self, handler: Arc<dyn ErasedHandler>) -> ServerTool {
        let Self { definition, cooperative, tasks, ask_first, needs, mut problem, on_workers, .. } = self;
        let history = (!on_workers).then(Arc::default);
        let mut mirrored = MirroredParams::default();
        // A tool with a problem is never called, and its schema may be of any size.
        if problem.is_none() {
            match MirroredParams::of_schema(&definition.input_schema) {
                Ok(found) => mirrored = found,
                Err(bad) => problem = Some(bad.to_string()),
            }
        }
        ServerTool {
            inner: Arc::new(ServerToolInner {
                definition,
                cooperative,
                tasks,
                ask_first,
                needs,
                problem,
                handler,
                history,
                mirrored,
            }),
        }
    }

    fn checks<R: IntoToolReply>(&mut self) -> ToolChecks {
        if self.definition.output_schema.is_none() {
            self.definition.output_schema = R::output_schema();
        }
        if self.definition.name.is_empty() {
            self.note_problem("the name of the tool is empty");
        } else if !names::is_recommended_tool_name(&self.definition.name) {
            let name = &*self.definition.name;
            tracing::warn!(
                name,
                "not every client accepts this tool name: use up to 128 letters, digits, `_`, `-` and `.`"
            );
        }
        if self.definition.input_schema.get("type") != Some(&Value::from("object")) {
            self.note_problem("the input schema of the tool is not of `type: object`");
        }
        if let Some(problem) = names::problem_of_meta(self.definition.meta.as_ref()) {
            self.note_problem(&problem);
        }
        let input = self.schemas.input_by_hand.then(|| SchemaValidator::new(&self.definition.input_schema));
        let output =
            self.definition.output_schema.as_ref().filter(|_| self.schemas.output_by_hand).map(SchemaValidator::new);
        let input = self.usable("input", input);
        let output = self.usable("output", output);
        ToolChecks { input, output, problem: self.problem.clone() }
    }

    fn usable(&mut self, which: &str, compiled: Option<Result<SchemaValidator, String>>) -> Option<SchemaValidator> {
        match compiled? {
            Ok(validator) => Some(validator),
            Err(complaint) => {
                self.note_problem(&format!("the {which} schema of the tool cannot be used: {complaint}"));
                None
            }
        }
    }

    fn with_problem(mut self, problem: &str) -> Self {
        self.note_problem(problem);
        self
    }

    fn note_problem(&mut self, problem: &str) {
        // Report the first problem: later ones may be consequences.
        self.problem.get_or_insert_with(|| problem.to_owned());
    }

    fn hints(&mut self) -> &mut ToolAnnotations {
        self.definition.annotations.get_or_insert_default()
    }
}
