//! A prompt of a server: its definition, which clients list, and the function that makes its messages.

pub(crate) mod registry;
pub(crate) mod reply;

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use steadfast_model as model;
use steadfast_model::{GetPromptResult, PromptArgument};

use super::completion::{Completer, Completers};
use super::context::Context;
use super::decode::strings;
use super::decode::strings::NamedStrings;
use super::input::need::RequiredClientCapability;
use super::registry::description::{description_setters, needs_setter};
use super::registry::names::problem_of_meta;
use super::tool::arguments::RawArguments;
use super::tool::error::ToolError;
use super::tool::handler::{BlockingHandler, Handler};
use super::tool::parameters::ParameterTuple;
use super::tool::schema;
use crate::error::Error;
use crate::runtime::{FirstPollHistory, HandlerJob};
use crate::server::dispatch::encode::ServerHandlerOutput;
use reply::{IntoPromptReply, PromptReply};

/// A prompt of a server: a template for messages that a user can start from. Cheap to clone.
///
/// `#[prompt]` makes a prompt from a function; [`ServerPrompt::new`] makes a prompt without the macro, also at run
/// time:
///
/// ```
/// use serde::Deserialize;
/// use steadfast::{ServerPrompt, Server};
///
/// #[derive(Deserialize)]
/// struct Review {
///     code: String,
///     strictness: Option<u8>,
/// }
///
/// let review = ServerPrompt::new("review")
///     .description("Reviews code.")
///     .required_argument("code", "The code to review")
///     .optional_argument("strictness", "From 1 to 10")
///     .handler(|Review { code, strictness }: Review| async move {
///         format!("Review this, with strictness {}:\n{code}", strictness.unwrap_or(5))
///     });
///
/// let server = Server::builder("reviews", "1.0.0").prompt(review).build();
/// ```
#[derive(Clone)]
pub struct ServerPrompt {
    inner: Arc<ServerPromptInner>,
}

struct ServerPromptInner {
    definition: model::Prompt,
    completers: Completers,
    cooperative: bool,
    history: Arc<FirstPollHistory>,
    needs: Vec<RequiredClientCapability>,
    problem: Option<String>,
    start: Box<StartPrompt>,
}

/// Prepares one `prompts/get`. Decoding and checking the arguments is part of the returned job.
type StartPrompt = dyn Fn(RawArguments, Context) -> HandlerJob<ServerHandlerOutput> + Send + Sync;

impl ServerPrompt {
    /// Starts building a prompt with that name. [`ServerPromptBuilder::handler`] finishes building the prompt.
    #[allow(clippy::new_ret_no_self, reason = "returns a builder: there is no prompt until it has a handler")]
    pub fn new(name: impl Into<String>) -> ServerPromptBuilder {
        Self::from_definition(model::Prompt::new(name))
    }

    /// Starts building a prompt with an existing definition, for example that of another server's prompt.
    pub fn from_definition(definition: model::Prompt) -> ServerPromptBuilder {
        ServerPromptBuilder { definition, completers: Completers::default(), cooperative: false, needs: Vec::new() }
    }

    /// The name of the prompt.
    pub fn name(&self) -> &str {
        &self.inner.definition.name
    }

    /// The definition of the prompt, which clients get with `prompts/list`.
    pub fn definition(&self) -> &model::Prompt {
        &self.inner.definition
    }

    /// Whether the handler of the prompt is cooperative: a cancelled handler is not dropped at once, but may go on for
    /// a grace period.
    pub fn is_cooperative(&self) -> bool {
        self.inner.cooperative
    }

    /// The capabilities that a client must have declared to use the prompt; requests of other clients are refused.
    pub fn needs(&self) -> &[RequiredClientCapability] {
        &self.inner.needs
    }

    /// What is wrong with the prompt, if anything: two arguments with the same name, for example. A prompt with a
    /// problem cannot be used, and [`ServerBuilder::build`](super::ServerBuilder::build) rejects it.
    pub fn problem(&self) -> Option<&str> {
        self.inner.problem.as_deref()
    }

    /// Runs the prompt without a server, for tests. In such a run, a blocking handler runs on the current thread.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use std::collections::BTreeMap;
    ///
    /// use serde_json::json;
    /// use steadfast::{ServerPrompt, PromptMessage};
    ///
    /// let prompt = ServerPrompt::new("greet").required_argument("name", "Whom").handler(
    ///     |arguments: BTreeMap<String, String>| async move { format!("Greet {}.", arguments["name"]) },
    /// );
    /// let result = prompt.fill(json!({ "name": "Ada" })).await.unwrap();
    /// assert_eq!(result.messages, [PromptMessage::user("Greet Ada.")]);
    ///
    /// let error = prompt.fill(()).await.unwrap_err();
    /// assert_eq!(error.object().message, "Bad arguments: `name` is missing");
    /// # });
    /// ```
    pub async fn fill(&self, arguments: impl Serialize) -> Result<GetPromptResult, Error> {
        let text = serde_json::to_string(&arguments).map_err(Error::encode)?.into_boxed_str();
        let range = 0..text.len();
        match self.start(RawArguments::within(text, range), Context::detached()).run().await {
            ServerHandlerOutput::Prompt(reply) => reply.map_err(ToolError::into_error),
            _ => Err(Error::internal("the handler returned something else than the result of a prompt")),
        }
    }

    /// Prepares one `prompts/get`.
    pub(crate) fn start(&self, arguments: RawArguments, ctx: Context) -> HandlerJob<ServerHandlerOutput> {
        (self.inner.start)(arguments, ctx)
    }

    /// The completion functions of the prompt's arguments, which suggest values to clients.
    /// The history of the first polls of the prompt's handler.
    pub(crate) fn history(&self) -> &Arc<FirstPollHistory> {
        &self.inner.history
    }

    pub(crate) fn completers(&self) -> &Completers {
        &self.inner.completers
    }

    /// Whether the prompt has an argument with this name.
    pub(crate) fn takes(&self, argument: &str) -> bool {
        self.inner.definition.arguments.iter().any(|known| known.name == argument)
    }
}

impl fmt::Debug for ServerPrompt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Prompt").field("definition", &self.inner.definition).finish_non_exhaustive()
    }
}

/// Builds a [`ServerPrompt`]: see [`ServerPrompt::new`].
#[derive(Debug)]
#[must_use = "call `handler` to get the prompt"]
pub struct ServerPromptBuilder {
    definition: model::Prompt,
    completers: Completers,
    cooperative: bool,
    needs: Vec<RequiredClientCapability>,
}

/// Creates an argument of a prompt, with a description unless the description is empty.
pub(crate) fn described_argument(
    name: impl Into<String>,
    description: impl Into<String>,
    required: bool,
) -> PromptArgument {
    let mut argument = PromptArgument::new(name).with_required(required);
    argument.description = Some(description.into()).filter(|text| !text.is_empty());
    argument
}

impl ServerPromptBuilder {
    description_setters!(description: "A description of what the prompt is for.");
    needs_setter!();

    /// Adds an argument of the prompt that must be present, with a description.
    pub fn required_argument(self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.argument(described_argument(name, description, true))
    }

    /// Adds an argument of the prompt that may be absent, with a description.
    pub fn optional_argument(self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.argument(described_argument(name, description, false))
    }

    /// Adds an argument of the prompt with all its properties.
    pub fn argument(mut self, argument: PromptArgument) -> Self {
        self.definition.arguments.push(argument);
        self
    }

    /// Derives the arguments of the prompt from the type that the handler takes: from its fields, with their doc
    /// comments as descriptions. Fields that have a default or are an `Option` are optional.
    ///
    /// On the wire all arguments of a prompt are strings, from which numbers, bools and the names of an enum are
    /// decoded.
    ///
    /// ```
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    /// use steadfast::ServerPrompt;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Trip {
    ///     /// Where to
    ///     city: String,
    ///     days: Option<u8>,
    /// }
    ///
    /// let prompt = ServerPrompt::new("trip").arguments::<Trip>().handler(|trip: Trip| async move {
    ///     format!("Plan {} days in {}.", trip.days.unwrap_or(3), trip.city)
    /// });
    /// let arguments = &prompt.definition().arguments;
    /// assert_eq!((arguments[0].description.as_deref(), arguments[0].required), (Some("Where to"), Some(true)));
    /// assert_eq!(arguments[1].required, Some(false));
    /// ```
    pub fn arguments<A: JsonSchema>(mut self) -> Self {
        let schema = schema::of_input::<A>();
        let required = schema.get("required").and_then(|required| required.as_array());
        let properties = schema.get("properties").and_then(|properties| properties.as_object());
        for (name, property) in properties.into_iter().flatten() {
            let is_required = required.is_some_and(|names| names.iter().any(|required| required == name));
            let text = |key| property.get(key).and_then(|text| text.as_str());
            self = self.argument(described_argument(name, text("description").unwrap_or_default(), is_required));
        }
        self
    }

    /// Adds completion of an argument while a user types it. See [`Completer`].
    pub fn complete<M: 'static>(mut self, argument: impl Into<String>, completer: impl Completer<M>) -> Self {
        self.completers.add(argument.into(), completer);
        self
    }

    /// Finishes building the prompt, with an `async` handler, which runs on the async worker threads. What a prompt's
    /// handler may take and return is described at [`Handler`] and [`IntoPromptReply`].
    pub fn handler<M: 'static, H: Handler<M>>(self, handler: H) -> ServerPrompt
    where
        H::Output: IntoPromptReply,
    {
        self.on_async(strings::decode, move |arguments, ctx| handler.call(arguments, ctx))
    }

    /// Finishes building the prompt, with a plain handler, which runs on a thread that may block. See
    /// [`BlockingHandler`].
    pub fn blocking_handler<M: 'static, H: BlockingHandler<M>>(self, handler: H) -> ServerPrompt
    where
        H::Output: IntoPromptReply,
    {
        self.on_blocking(strings::decode, move |arguments, ctx| handler.call(arguments, ctx))
    }

    /// Finishes building the prompt, with the handler that `#[prompt]` makes from an `async fn`.
    pub(crate) fn parameters_handler<P, F, Out>(self, names: &'static [&'static str], function: F) -> ServerPrompt
    where
        P: ParameterTuple,
        F: Fn(P, Context) -> Out + Send + Sync + 'static,
        Out: Future + Send + 'static,
        Out::Output: IntoPromptReply,
    {
        self.on_async(move |strings: &NamedStrings| strings::decode_parameters(strings, names), function)
    }

    /// Finishes building the prompt, with the handler that `#[prompt]` makes from a plain `fn`.
    pub(crate) fn blocking_parameters_handler<P, F, Out>(
        self,
        names: &'static [&'static str],
        function: F,
    ) -> ServerPrompt
    where
        P: ParameterTuple,
        F: Fn(P, Context) -> Out + Send + Sync + 'static,
        Out: IntoPromptReply,
    {
        self.on_blocking(move |strings: &NamedStrings| strings::decode_parameters(strings, names), function)
    }

    fn on_async<A, F, Out>(self, decode: impl DecodeStrings<A>, call: F) -> ServerPrompt
    where
        A: Send + 'static,
        F: Fn(A, Context) -> Out + Send + Sync + 'static,
        Out: Future + Send + 'static,
        Out::Output: IntoPromptReply,
    {
        let shared = Arc::new((self.checks(), decode, call));
        self.finish(move |arguments, ctx| {
            let shared = Arc::clone(&shared);
            HandlerJob::Future(Box::pin(async move {
                let (checks, decode, call) = &*shared;
                let value = match checks.decode(decode, &arguments) {
                    Ok(value) => value,
                    Err(error) => return ServerHandlerOutput::Prompt(Err(error)),
                };
                // Free the text of the message before the call runs.
                drop(arguments);
                ServerHandlerOutput::Prompt(checks.complete(call(value, ctx).await))
            }))
        })
    }

    fn on_blocking<A, F, Out>(self, decode: impl DecodeStrings<A>, call: F) -> ServerPrompt
    where
        A: Send + 'static,
        F: Fn(A, Context) -> Out + Send + Sync + 'static,
        Out: IntoPromptReply,
    {
        let shared = Arc::new((self.checks(), decode, call));
        self.finish(move |arguments, ctx| {
            let shared = Arc::clone(&shared);
            HandlerJob::Blocking(Box::new(move || {
                let (checks, decode, call) = &*shared;
                let value = match checks.decode(decode, &arguments) {
                    Ok(value) => value,
                    Err(error) => return ServerHandlerOutput::Prompt(Err(error)),
                };
                drop(arguments);
                ServerHandlerOutput::Prompt(checks.complete(call(value, ctx)))
            }))
        })
    }

    fn finish(
        self,
        start: impl Fn(RawArguments, Context) -> HandlerJob<ServerHandlerOutput> + Send + Sync + 'static,
    ) -> ServerPrompt {
        let problem = self.problem();
        let Self { definition, completers, cooperative, needs } = self;
        let start = Box::new(start);
        ServerPrompt {
            inner: Arc::new(ServerPromptInner {
                definition,
                completers,
                cooperative,
                history: Arc::default(),
                needs,
                problem,
                start,
            }),
        }
    }

    fn checks(&self) -> PromptArgumentChecks {
        let required = self.definition.arguments.iter().filter(|argument| argument.required == Some(true));
        PromptArgumentChecks {
            required: required.map(|argument| argument.name.clone()).collect(),
            description: self.definition.description.clone(),
            problem: self.problem(),
        }
    }

    fn problem(&self) -> Option<String> {
        if self.definition.name.is_empty() {
            return Some("the name of the prompt is empty".to_owned());
        }
        let names: Vec<&str> = self.definition.arguments.iter().map(|argument| argument.name.as_str()).collect();
        let twice = names.iter().enumerate().find(|(position, name)| names.iter().take(*position).any(|n| n == *name));
        if let Some((_, name)) = twice {
            return Some(format!("the prompt has two arguments named `{name}`"));
        }
        if let Some(unknown) = self.completers.names().find(|completed| !names.contains(completed)) {
            return Some(format!("the prompt completes `{unknown}`, which is not one of its arguments"));
        }
        problem_of_meta(self.definition.meta.as_ref())
    }
}

/// Decodes the arguments of a prompt, which are strings, into the value that its handler takes.
trait DecodeStrings<A>: Fn(&NamedStrings) -> Result<A, Error> + Send + Sync + 'static {}

impl<A, F: Fn(&NamedStrings) -> Result<A, Error> + Send + Sync + 'static> DecodeStrings<A> for F {}

/// What is checked before the handler of a prompt runs, and the description that is added to its result.
struct PromptArgumentChecks {
    required: Vec<String>,
    description: Option<String>,
    problem: Option<String>,
}

impl PromptArgumentChecks {
    /// Decodes the arguments into the value that the handler takes.
    fn decode<A>(&self, decode: &impl DecodeStrings<A>, arguments: &RawArguments) -> Result<A, ToolError> {
        Ok(decode(&self.strings(arguments)?)?)
    }

    fn strings(&self, arguments: &RawArguments) -> Result<NamedStrings, Error> {
        if let Some(problem) = &self.problem {
            return Err(Error::internal(format!("the prompt cannot be used: {problem}")));
        }
        let strings: NamedStrings = arguments.decode().map_err(|error| Error::invalid_params(error.to_string()))?;
        match self.required.iter().find(|name| !strings.contains_key(*name)) {
            Some(name) => Err(strings::missing(name)),
            None => Ok(strings),
        }
    }

    /// A prompt's result without a description gets the description of the prompt.
    fn complete(&self, answer: impl IntoPromptReply) -> PromptReply {
        let mut result = answer.into_prompt_reply()?;
        if result.description.is_none() {
            result.description.clone_from(&self.description);
        }
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use steadfast_model::{PromptMessage, code};

    use super::*;

    fn greeting() -> ServerPrompt {
        ServerPrompt::new("greet")
            .description("Greets.")
            .required_argument("name", "Whom")
            .optional_argument("times", "")
            .handler(|arguments: NamedStrings| async move {
                format!("{} x{}", arguments["name"], arguments.get("times").map_or("1", String::as_str))
            })
    }

    #[tokio::test]
    async fn arguments_are_strings() {
        let result = greeting().fill(json!({ "name": "Ada", "times": "3" })).await.unwrap();
        assert_eq!(result.messages, [PromptMessage::user("Ada x3")]);
        assert_eq!(result.description.as_deref(), Some("Greets."));
    }

    #[tokio::test]
    async fn a_required_argument_that_is_missing_is_named() {
        for arguments in [json!({}), json!(null), json!({ "times": "3" })] {
            let error = greeting().fill(arguments).await.unwrap_err();
            assert_eq!(error.object().code, code::INVALID_PARAMS);
            assert_eq!(error.object().message, "Bad arguments: `name` is missing");
        }
    }

    #[tokio::test]
    async fn arguments_that_are_not_strings_are_refused() {
        let error = greeting().fill(json!({ "name": 7 })).await.unwrap_err();
        assert_eq!(error.object().code, code::INVALID_PARAMS);
        assert_eq!(error.object().message, "Bad argument `name`: it must be a string, and is 7");
    }

    #[tokio::test]
    async fn a_handler_may_take_nothing_and_may_block() {
        let prompt = ServerPrompt::new("plain").blocking_handler(|_ctx: Context| "Hello");
        assert_eq!(prompt.fill(()).await.unwrap().messages, [PromptMessage::user("Hello")]);
    }

    #[test]
    fn mistakes_are_problems() {
        let twins =
            ServerPrompt::new("p").required_argument("a", "").optional_argument("a", "").handler(|| async { "" });
        assert_eq!(twins.problem(), Some("the prompt has two arguments named `a`"));
        let unknown = ServerPrompt::new("p").complete("a", ["x"]).handler(|| async { "" });
        assert_eq!(unknown.problem(), Some("the prompt completes `a`, which is not one of its arguments"));
        assert_eq!(ServerPrompt::new("").handler(|| async { "" }).problem(), Some("the name of the prompt is empty"));
        assert_eq!(greeting().problem(), None);
    }
}
