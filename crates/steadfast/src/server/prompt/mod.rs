//! A prompt: what clients are told about it, and the function that fills it in.

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
use super::decode::strings::Strings;
use super::input::need::Need;
use super::registry::description::{description_setters, needs_setter};
use super::registry::names::problem_of_meta;
use super::tool::arguments::Arguments;
use super::tool::error::Failure;
use super::tool::handler::{BlockingHandler, Handler};
use super::tool::parameters::Parameters;
use super::tool::schema;
use crate::error::Error;
use crate::runtime::Job;
use reply::{IntoPrompt, PromptReply};

/// A prompt of a server: messages that a user can start from. Cheap to clone.
///
/// `#[prompt]` makes one from a function; this makes one by hand, also at run time:
///
/// ```
/// use serde::Deserialize;
/// use steadfast::{Prompt, Server};
///
/// #[derive(Deserialize)]
/// struct Review {
///     code: String,
///     strictness: Option<u8>,
/// }
///
/// let review = Prompt::new("review")
///     .description("Reviews code.")
///     .argument("code", "The code to review", true)
///     .argument("strictness", "From 1 to 10", false)
///     .handler(|Review { code, strictness }: Review| async move {
///         format!("Review this, with strictness {}:\n{code}", strictness.unwrap_or(5))
///     });
///
/// let server = Server::builder("reviews", "1.0.0").prompt(review).build();
/// ```
#[derive(Clone)]
pub struct Prompt {
    inner: Arc<Inner>,
}

struct Inner {
    definition: model::Prompt,
    completers: Completers,
    cooperative: bool,
    needs: Vec<Need>,
    problem: Option<String>,
    begin: Box<StartPrompt>,
}

/// Makes one filling-in ready to run. Reading and checking the arguments is part of it.
type StartPrompt = dyn Fn(Arguments, Context) -> Job<PromptReply> + Send + Sync;

impl Prompt {
    /// Begins a prompt of that name. It is complete when it is given a handler.
    #[allow(clippy::new_ret_no_self, reason = "a prompt without a handler is not a prompt")]
    pub fn new(name: impl Into<String>) -> PromptBuilder {
        Self::from_definition(model::Prompt::new(name))
    }

    /// Begins a prompt with a description that exists already, for example the one of another server's prompt.
    pub fn from_definition(definition: model::Prompt) -> PromptBuilder {
        PromptBuilder { definition, completers: Completers::default(), cooperative: false, needs: Vec::new() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner.definition.name
    }

    /// What clients are told about it.
    pub fn definition(&self) -> &model::Prompt {
        &self.inner.definition
    }

    /// Whether its handler goes on after a cancellation, until it has seen it for itself.
    pub fn is_cooperative(&self) -> bool {
        self.inner.cooperative
    }

    /// What a client has to be able to do, or it is refused.
    pub fn needs(&self) -> &[Need] {
        &self.inner.needs
    }

    /// What is wrong with the prompt, if something is: two arguments of one name, for example. Such a prompt cannot be
    /// filled in, and [`ServerBuilder::build`](super::ServerBuilder::build) refuses it.
    pub fn problem(&self) -> Option<&str> {
        self.inner.problem.as_deref()
    }

    /// Fills the prompt in without a server around it, for tests. A blocking handler runs on this thread.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use std::collections::BTreeMap;
    ///
    /// use serde_json::json;
    /// use steadfast::{Prompt, PromptMessage};
    ///
    /// let prompt = Prompt::new("greet").argument("name", "Whom", true).handler(
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
        let reply = match self.start(Arguments::within(text, range), Context::detached()) {
            Job::Future(future) => future.await,
            Job::Blocking(function) => function(),
        };
        reply.map_err(Failure::into_error)
    }

    /// Makes one filling-in ready to run.
    pub(crate) fn start(&self, arguments: Arguments, ctx: Context) -> Job<PromptReply> {
        (self.inner.begin)(arguments, ctx)
    }

    /// Who completes its arguments.
    pub(crate) fn completers(&self) -> &Completers {
        &self.inner.completers
    }

    /// Whether it has an argument of that name.
    pub(crate) fn takes(&self, argument: &str) -> bool {
        self.inner.definition.arguments.iter().any(|known| known.name == argument)
    }
}

impl fmt::Debug for Prompt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Prompt").field("definition", &self.inner.definition).finish_non_exhaustive()
    }
}

/// A prompt in the making: see [`Prompt::new`].
#[derive(Debug)]
#[must_use = "a prompt is complete when it is given a handler"]
pub struct PromptBuilder {
    definition: model::Prompt,
    completers: Completers,
    cooperative: bool,
    needs: Vec<Need>,
}

impl PromptBuilder {
    description_setters!(description: "What the prompt is for.");
    needs_setter!();

    /// Adds an argument: what it means, and whether the prompt cannot do without it.
    pub fn argument(self, name: impl Into<String>, description: impl Into<String>, required: bool) -> Self {
        let description = description.into();
        let mut argument = PromptArgument::new(name).with_required(required);
        argument.description = Some(description).filter(|text| !text.is_empty());
        self.argument_of(argument)
    }

    /// Adds an argument with all that there is to say about it.
    pub fn argument_of(mut self, argument: PromptArgument) -> Self {
        self.definition.arguments.push(argument);
        self
    }

    /// Takes the arguments from a type, the one that the handler takes: its fields, with their doc comments as
    /// descriptions. Those that have a default or are an `Option` need not be given.
    ///
    /// On the wire all arguments are strings. Numbers, bools and the names of an enum are read from them.
    ///
    /// ```
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    /// use steadfast::Prompt;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Trip {
    ///     /// Where to
    ///     city: String,
    ///     days: Option<u8>,
    /// }
    ///
    /// let prompt = Prompt::new("trip").arguments::<Trip>().handler(|trip: Trip| async move {
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
            self = self.argument(name, text("description").unwrap_or_default(), is_required);
        }
        self
    }

    /// Has an argument completed while a user types it. See [`Completer`].
    pub fn complete<M: 'static>(mut self, argument: impl Into<String>, completer: impl Completer<M>) -> Self {
        self.completers.add(argument.into(), completer);
        self
    }

    /// Completes the prompt with an `async` handler, which runs on the workers. See [`Handler`] and [`IntoPrompt`].
    pub fn handler<M: 'static, H: Handler<M>>(self, handler: H) -> Prompt
    where
        H::Output: IntoPrompt,
    {
        self.on_workers(strings::decode, move |arguments, ctx| handler.call(arguments, ctx))
    }

    /// Completes the prompt with a plain handler, which runs on a thread that it may block. See [`BlockingHandler`].
    pub fn blocking_handler<M: 'static, H: BlockingHandler<M>>(self, handler: H) -> Prompt
    where
        H::Output: IntoPrompt,
    {
        self.on_threads(strings::decode, move |arguments, ctx| handler.call(arguments, ctx))
    }

    /// What `#[prompt]` makes of an `async fn`.
    pub(crate) fn parameters_handler<P, F, Answer>(self, names: &'static [&'static str], function: F) -> Prompt
    where
        P: Parameters,
        F: Fn(P, Context) -> Answer + Send + Sync + 'static,
        Answer: Future + Send + 'static,
        Answer::Output: IntoPrompt,
    {
        self.on_workers(move |strings: &Strings| strings::decode_parameters(strings, names), function)
    }

    /// What `#[prompt]` makes of a plain `fn`.
    pub(crate) fn blocking_parameters_handler<P, F, Answer>(self, names: &'static [&'static str], function: F) -> Prompt
    where
        P: Parameters,
        F: Fn(P, Context) -> Answer + Send + Sync + 'static,
        Answer: IntoPrompt,
    {
        self.on_threads(move |strings: &Strings| strings::decode_parameters(strings, names), function)
    }

    fn on_workers<A, F, Answer>(self, read: impl Read<A>, call: F) -> Prompt
    where
        A: Send + 'static,
        F: Fn(A, Context) -> Answer + Send + Sync + 'static,
        Answer: Future + Send + 'static,
        Answer::Output: IntoPrompt,
    {
        let shared = Arc::new((self.frame(), read, call));
        self.finish(move |arguments, ctx| {
            let shared = Arc::clone(&shared);
            Job::Future(Box::pin(async move {
                let (frame, read, call) = &*shared;
                let value = read(&frame.strings(&arguments)?)?;
                // The text of the message need not live as long as the call.
                drop(arguments);
                frame.complete(call(value, ctx).await)
            }))
        })
    }

    fn on_threads<A, F, Answer>(self, read: impl Read<A>, call: F) -> Prompt
    where
        A: Send + 'static,
        F: Fn(A, Context) -> Answer + Send + Sync + 'static,
        Answer: IntoPrompt,
    {
        let shared = Arc::new((self.frame(), read, call));
        self.finish(move |arguments, ctx| {
            let shared = Arc::clone(&shared);
            Job::Blocking(Box::new(move || {
                let (frame, read, call) = &*shared;
                let value = read(&frame.strings(&arguments)?)?;
                drop(arguments);
                frame.complete(call(value, ctx))
            }))
        })
    }

    fn finish(self, begin: impl Fn(Arguments, Context) -> Job<PromptReply> + Send + Sync + 'static) -> Prompt {
        let problem = self.problem();
        let Self { definition, completers, cooperative, needs } = self;
        let begin = Box::new(begin);
        Prompt { inner: Arc::new(Inner { definition, completers, cooperative, needs, problem, begin }) }
    }

    fn frame(&self) -> PromptChecks {
        let required = self.definition.arguments.iter().filter(|argument| argument.required == Some(true));
        PromptChecks {
            required: required.map(|argument| argument.name.clone()).collect(),
            description: self.definition.description.clone(),
            problem: self.problem(),
        }
    }

    fn problem(&self) -> Option<String> {
        if self.definition.name.is_empty() {
            return Some("its name is empty".to_owned());
        }
        let names: Vec<&str> = self.definition.arguments.iter().map(|argument| argument.name.as_str()).collect();
        let twice = names.iter().enumerate().find(|(position, name)| names.iter().take(*position).any(|n| n == *name));
        if let Some((_, name)) = twice {
            return Some(format!("it has two arguments named `{name}`"));
        }
        if let Some(unknown) = self.completers.names().find(|completed| !names.contains(completed)) {
            return Some(format!("it completes `{unknown}`, which is not one of its arguments"));
        }
        problem_of_meta(self.definition.meta.as_ref())
    }
}

/// How strings become what a handler takes.
trait Read<A>: Fn(&Strings) -> Result<A, Error> + Send + Sync + 'static {}

impl<A, F: Fn(&Strings) -> Result<A, Error> + Send + Sync + 'static> Read<A> for F {}

/// What is checked before a handler runs, and added after.
struct PromptChecks {
    required: Vec<String>,
    description: Option<String>,
    problem: Option<String>,
}

impl PromptChecks {
    fn strings(&self, arguments: &Arguments) -> Result<Strings, Error> {
        if let Some(problem) = &self.problem {
            return Err(Error::internal(format!("the prompt cannot be filled in: {problem}")));
        }
        let strings: Strings = arguments.decode().map_err(|error| Error::invalid_params(error.to_string()))?;
        match self.required.iter().find(|name| !strings.contains_key(*name)) {
            Some(name) => Err(strings::missing(name)),
            None => Ok(strings),
        }
    }

    /// A result that does not say what it is for says what the prompt is for.
    fn complete(&self, answer: impl IntoPrompt) -> PromptReply {
        let mut result = answer.into_prompt()?;
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

    fn greeting() -> Prompt {
        Prompt::new("greet").description("Greets.").argument("name", "Whom", true).argument("times", "", false).handler(
            |arguments: Strings| async move {
                format!("{} x{}", arguments["name"], arguments.get("times").map_or("1", String::as_str))
            },
        )
    }

    #[tokio::test]
    async fn it_is_filled_in_with_strings() {
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
        let prompt = Prompt::new("plain").blocking_handler(|_ctx: Context| "Hello");
        assert_eq!(prompt.fill(()).await.unwrap().messages, [PromptMessage::user("Hello")]);
    }

    #[test]
    fn mistakes_are_problems() {
        let twins = Prompt::new("p").argument("a", "", true).argument("a", "", false).handler(|| async { "" });
        assert_eq!(twins.problem(), Some("it has two arguments named `a`"));
        let unknown = Prompt::new("p").complete("a", ["x"]).handler(|| async { "" });
        assert_eq!(unknown.problem(), Some("it completes `a`, which is not one of its arguments"));
        assert_eq!(Prompt::new("").handler(|| async { "" }).problem(), Some("its name is empty"));
        assert_eq!(greeting().problem(), None);
    }
}
