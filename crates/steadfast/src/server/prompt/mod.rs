//! A prompt of a server: its definition, which clients list, and the function that makes its messages.

pub(crate) mod builder;
pub(crate) mod registry;
pub(crate) mod reply;

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use steadfast_model as model;
use steadfast_model::GetPromptResult;

use super::completion::Completers;
use super::context::Context;
use super::input::need::RequiredClientCapability;
use super::tool::arguments::RawArguments;
use super::tool::error::ToolError;
use crate::error::Error;
use crate::runtime::{FirstPollHistory, HandlerJob};
use crate::server::dispatch::encode::ServerHandlerOutput;
pub use builder::ServerPromptBuilder;
pub(crate) use builder::described_argument;

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

#[cfg(test)]
mod tests {
    use serde_json::json;
    use steadfast_model::{PromptMessage, code};

    use super::*;
    use crate::server::decode::strings::NamedStrings;

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
