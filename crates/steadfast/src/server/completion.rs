//! Completing what a user types: the arguments of prompts and the variables of resource templates.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use steadfast_model::{CompleteContext, Completion};

use super::context::Context;
use super::tool::error::ToolError;

/// The result of completing an argument: the suggested values, or a failure.
pub type CompletionReply = Result<Completion, ToolError>;

/// A running completion.
pub type CompletionFuture = Pin<Box<dyn Future<Output = CompletionReply> + Send>>;

/// A completer of an argument: an `async` function of the text typed so far and, optionally, of the other arguments
/// that are filled in; or a list of all values, of which those that start with the typed text, ignoring case, are
/// offered.
///
/// A completer function may take the [`Context`] of the request as its third parameter, because the values may depend
/// on the user: do not offer values that the user must not see.
///
/// ```
/// use steadfast::{CompleteContext, ServerPrompt};
///
/// let prompt = ServerPrompt::new("trip")
///     .required_argument("country", "Where to")
///     .optional_argument("city", "Which city")
///     .complete("country", ["Chile", "China", "Norway"])
///     .complete("city", |typed: String, context: CompleteContext| async move {
///         let cities: &[&str] = match context.argument("country") {
///             Some("Norway") => &["Bergen", "Oslo"],
///             _ => &[],
///         };
///         cities.iter().filter(|city| city.starts_with(&typed)).map(ToString::to_string).collect::<Vec<_>>()
///     })
///     .handler(|| async { "Plan a trip." });
/// ```
#[diagnostic::on_unimplemented(
    message = "this does not complete an argument",
    label = "not a completer",
    note = "a completer is a list of values, or looks like this: `|typed: String, filled: CompleteContext, ctx: Context| async move {{ .. }}`; the last, or the last two, may be left out",
    note = "a completer returns a `Vec` or array of strings, a `Completion`, or a `Result` of these"
)]
pub trait Completer<Marker>: sealed::Sealed<Marker> + Send + Sync + 'static {
    /// Completes the text typed so far.
    fn complete(&self, typed: String, filled: CompleteContext, ctx: Context) -> CompletionFuture;
}

/// A type that the completer of a prompt argument or template variable may return. At most a hundred values are sent
/// to the client; the total that is sent includes the other values.
#[diagnostic::on_unimplemented(
    message = "a completer cannot return `{Self}`",
    label = "not something that a completer can return",
    note = "a completer returns a `Vec` or array of strings, a `Completion`, or a `Result` of these"
)]
pub trait IntoCompletionReply {
    /// Converts the return value of a completer into a completion.
    fn into_completion_reply(self) -> CompletionReply;
}

impl IntoCompletionReply for Completion {
    fn into_completion_reply(mut self) -> CompletionReply {
        let given = self.values.len();
        if given > Self::MAX_VALUES {
            self.values.truncate(Self::MAX_VALUES);
            self.has_more = Some(true);
            self.total = self.total.max(u64::try_from(given).ok());
        }
        Ok(self)
    }
}

impl<S: Into<String>> IntoCompletionReply for Vec<S> {
    fn into_completion_reply(self) -> CompletionReply {
        Ok(Completion::new(self.into_iter().map(Into::into).collect()))
    }
}

impl<S: Into<String>, const N: usize> IntoCompletionReply for [S; N] {
    fn into_completion_reply(self) -> CompletionReply {
        Vec::from(self).into_completion_reply()
    }
}

impl<T: IntoCompletionReply, E: Into<ToolError>> IntoCompletionReply for Result<T, E> {
    fn into_completion_reply(self) -> CompletionReply {
        match self {
            Ok(value) => value.into_completion_reply(),
            Err(error) => Err(error.into()),
        }
    }
}

mod sealed {
    pub trait Sealed<Marker> {}
}

/// Marks a completer that takes the typed text.
#[derive(Debug)]
pub struct CompleterTakesText;
/// Marks a completer that takes the typed text and the other arguments.
#[derive(Debug)]
pub struct CompleterTakesArguments;
/// Marks a completer that takes the typed text, the other arguments and the context of the request.
#[derive(Debug)]
pub struct CompleterTakesRequest;
/// Marks a completer that is a list of values.
#[derive(Debug)]
pub struct PrefixCompletionMarker<S>(PhantomData<S>);

impl<Function, Out> sealed::Sealed<CompleterTakesText> for Function where Function: Fn(String) -> Out {}

impl<Function, Out> Completer<CompleterTakesText> for Function
where
    Function: Fn(String) -> Out + Send + Sync + 'static,
    Out: Future + Send + 'static,
    Out::Output: IntoCompletionReply,
{
    fn complete(&self, typed: String, _: CompleteContext, _: Context) -> CompletionFuture {
        let answer = self(typed);
        Box::pin(async move { answer.await.into_completion_reply() })
    }
}

impl<Function, Out> sealed::Sealed<CompleterTakesArguments> for Function where
    Function: Fn(String, CompleteContext) -> Out
{
}

impl<Function, Out> Completer<CompleterTakesArguments> for Function
where
    Function: Fn(String, CompleteContext) -> Out + Send + Sync + 'static,
    Out: Future + Send + 'static,
    Out::Output: IntoCompletionReply,
{
    fn complete(&self, typed: String, filled: CompleteContext, _: Context) -> CompletionFuture {
        let answer = self(typed, filled);
        Box::pin(async move { answer.await.into_completion_reply() })
    }
}

impl<Function, Out> sealed::Sealed<CompleterTakesRequest> for Function where
    Function: Fn(String, CompleteContext, Context) -> Out
{
}

impl<Function, Out> Completer<CompleterTakesRequest> for Function
where
    Function: Fn(String, CompleteContext, Context) -> Out + Send + Sync + 'static,
    Out: Future + Send + 'static,
    Out::Output: IntoCompletionReply,
{
    fn complete(&self, typed: String, filled: CompleteContext, ctx: Context) -> CompletionFuture {
        let answer = self(typed, filled, ctx);
        Box::pin(async move { answer.await.into_completion_reply() })
    }
}

impl<S> sealed::Sealed<PrefixCompletionMarker<S>> for Vec<S> {}

impl<S: AsRef<str> + Send + Sync + 'static> Completer<PrefixCompletionMarker<S>> for Vec<S> {
    fn complete(&self, typed: String, _: CompleteContext, _: Context) -> CompletionFuture {
        Box::pin(std::future::ready(by_prefix(self, &typed).into_completion_reply()))
    }
}

impl<S, const N: usize> sealed::Sealed<PrefixCompletionMarker<S>> for [S; N] {}

impl<S: AsRef<str> + Send + Sync + 'static, const N: usize> Completer<PrefixCompletionMarker<S>> for [S; N] {
    fn complete(&self, typed: String, _: CompleteContext, _: Context) -> CompletionFuture {
        Box::pin(std::future::ready(by_prefix(self, &typed).into_completion_reply()))
    }
}

impl<S> sealed::Sealed<PrefixCompletionMarker<S>> for &'static [S] {}

impl<S: AsRef<str> + Send + Sync + 'static> Completer<PrefixCompletionMarker<S>> for &'static [S] {
    fn complete(&self, typed: String, _: CompleteContext, _: Context) -> CompletionFuture {
        Box::pin(std::future::ready(by_prefix(self, &typed).into_completion_reply()))
    }
}

/// The values that start with the typed text, ignoring case.
fn by_prefix<S: AsRef<str>>(values: &[S], typed: &str) -> Vec<String> {
    let typed = typed.to_lowercase();
    let begins = |value: &&str| value.to_lowercase().starts_with(&typed);
    values.iter().map(AsRef::as_ref).filter(begins).map(str::to_owned).collect()
}

/// A type-erased completer.
type ErasedCompleter = dyn Fn(String, CompleteContext, Context) -> CompletionFuture + Send + Sync;

/// The completers of one prompt or template, by the name of the argument or variable.
#[derive(Clone, Default)]
pub(crate) struct Completers(Vec<(String, Arc<ErasedCompleter>)>);

impl Completers {
    /// Adds the completer of an argument or variable, and replaces an earlier completer for the same name.
    pub(super) fn add<M: 'static>(&mut self, name: String, completer: impl Completer<M>) {
        self.0.retain(|(other, _)| *other != name);
        self.0.push((name, Arc::new(move |typed, filled, ctx| completer.complete(typed, filled, ctx))));
    }

    /// Whether the prompt or template has no completers.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of the arguments or variables that have a completer.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// Prepares to complete the text that the user has typed so far.
    pub(crate) fn complete(&self, name: &str, typed: String, filled: CompleteContext) -> PreparedCompletion {
        let found = self.0.iter().find(|(other, _)| other == name).map(|(_, completer)| Arc::clone(completer));
        PreparedCompletion { completer: found, typed, filled }
    }
}

/// A completion that has not run yet.
pub(crate) struct PreparedCompletion {
    completer: Option<Arc<ErasedCompleter>>,
    typed: String,
    filled: CompleteContext,
}

impl PreparedCompletion {
    /// Runs the completer. If the argument or variable has no completer, no values are returned.
    pub(crate) async fn run(self, ctx: Context) -> CompletionReply {
        match self.completer {
            Some(completer) => completer(self.typed, self.filled, ctx).await,
            None => Ok(Completion::new(Vec::new())),
        }
    }
}

impl fmt::Debug for Completers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn values<M: 'static>(completer: impl Completer<M>, typed: &str) -> Completion {
        let mut completers = Completers::default();
        completers.add("x".to_owned(), completer);
        completers.complete("x", typed.to_owned(), CompleteContext::default()).run(Context::detached()).await.unwrap()
    }

    #[tokio::test]
    async fn values_of_a_list_that_start_with_the_typed_text_are_offered() {
        assert_eq!(values(["Bergen", "Bern", "Oslo"], "be").await.values, ["Bergen", "Bern"]);
        assert_eq!(values(vec!["Bergen".to_owned(), "Oslo".to_owned()], "").await.values, ["Bergen", "Oslo"]);
        const FEW: &[&str] = &["Ålesund", "Oslo"];
        assert_eq!(values(FEW, "å").await.values, ["Ålesund"]);
    }

    #[tokio::test]
    async fn at_most_a_hundred_values_are_sent_and_all_are_counted() {
        let many = (0..250).map(|number| number.to_string()).collect::<Vec<_>>();
        let completion = values(many.clone(), "").await;
        assert_eq!((completion.values.len(), completion.total, completion.has_more), (100, Some(250), Some(true)));
        let by_hand = move |_typed: String| {
            let mut completion = Completion::default().with_total(1_000_u64);
            completion.values.clone_from(&many);
            async move { completion }
        };
        let completion = values(by_hand, "").await;
        assert_eq!((completion.values.len(), completion.total, completion.has_more), (100, Some(1_000), Some(true)));
    }

    #[tokio::test]
    async fn a_name_without_a_completer_has_no_values() {
        let complete = Completers::default().complete("x", "a".to_owned(), CompleteContext::default());
        let completion = complete.run(Context::detached()).await.unwrap();
        assert_eq!((completion.values.len(), completion.total, completion.has_more), (0, Some(0), Some(false)));
    }

    #[tokio::test]
    async fn any_error_becomes_a_json_rpc_error() {
        let mut completers = Completers::default();
        completers.add("x".to_owned(), |_typed: String| async { Err::<Vec<String>, _>(std::io::Error::other("disk")) });
        let complete = completers.complete("x", String::new(), CompleteContext::default());
        let failure = complete.run(Context::detached()).await.unwrap_err();
        assert_eq!(failure.into_error().object().message, "disk");
    }
}
