//! Builds prompts: the definition, and what checks and decodes arguments before the handler runs.

use std::sync::Arc;

use schemars::JsonSchema;
use steadfast_model as model;
use steadfast_model::PromptArgument;

use super::reply::{IntoPromptReply, PromptReply};
use super::{ServerPrompt, ServerPromptInner};
use crate::error::Error;
use crate::runtime::HandlerJob;
use crate::server::completion::{Completer, Completers};
use crate::server::context::Context;
use crate::server::decode::strings;
use crate::server::decode::strings::NamedStrings;
use crate::server::dispatch::encode::ServerHandlerOutput;
use crate::server::input::need::RequiredClientCapability;
use crate::server::registry::description::{description_setters, needs_setter};
use crate::server::registry::names::problem_of_meta;
use crate::server::tool::arguments::RawArguments;
use crate::server::tool::error::ToolError;
use crate::server::tool::handler::{BlockingHandler, Handler};
use crate::server::tool::parameters::ParameterTuple;
use crate::server::tool::schema;

/// Builds a [`ServerPrompt`]: see [`ServerPrompt::new`].
#[derive(Debug)]
#[must_use = "call `handler` to get the prompt"]
pub struct ServerPromptBuilder {
    pub(super) definition: model::Prompt,
    pub(super) completers: Completers,
    pub(super) cooperative: bool,
    pub(super) needs: Vec<RequiredClientCapability>,
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
