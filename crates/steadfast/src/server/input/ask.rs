//! Asking the client: its user, its model, its roots.
//!
//! Written once for both eras. Up to 2025-11-25 a question is a request to the client. Since 2026-07-28 clients are not called:
//! a question that has no answer yet stays pending, the request ends with it, and the handler runs again with the answer.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use steadfast_model::request::{self, Request};
use steadfast_model::{
    CreateMessageParams, CreateMessageResult, ElicitAction, ElicitParams, ElicitResult, ElicitUrlParams,
    ElicitationCompleteParams, EmptyParams, ErrorObject, InputRequest, ListRootsResult, Method, Revision, era,
};

use super::form::{self, Form};
use super::need::{self, Need};
use super::url;
use crate::error::{Error, Outcome};
use crate::runtime::{Execution, InputStatus, PendingNotifications};
use crate::server::context::{CALL_TIMEOUT, Context};
use crate::validation::conversation::check_tool_uses;
use crate::validation::form as form_check;

type Answering<A> = Pin<Box<dyn Future<Output = Result<A, Error>> + Send>>;

type StartAsk<A> = Box<dyn FnOnce(AskOptions) -> Answering<A> + Send>;

/// A question to the client: await it.
///
/// Several may be asked at the same time, with `join!` for example; a client of 2026-07-28 gets them together.
#[must_use = "nothing is asked until this is awaited"]
pub struct Ask<A> {
    options: AskOptions,
    begin: Option<StartAsk<A>>,
    running: Option<Answering<A>>,
}

/// How a question is asked.
struct AskOptions {
    key: Option<String>,
    timeout: Duration,
}

impl<A: 'static> Ask<A> {
    fn new<F, T>(begin: F) -> Self
    where
        F: FnOnce(AskOptions) -> T + Send + 'static,
        T: Future<Output = Result<A, Error>> + Send + 'static,
    {
        let options = AskOptions { key: None, timeout: CALL_TIMEOUT };
        Self { options, begin: Some(Box::new(move |options| Box::pin(begin(options)))), running: None }
    }

    /// The key that the question has in a result of 2026-07-28, and its answer in the next round. Unless told it is made of
    /// what is asked and of how many were asked before. Each question of a request needs one of its own.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.options.key = Some(key.into());
        self
    }

    /// How long the answer may take, where the client is called (up to 2025-11-25). Ten minutes unless told. Since
    /// 2026-07-28 nothing waits here: see [`StateKeys::lifetime`](crate::server::StateKeys::lifetime).
    pub fn within(mut self, timeout: Duration) -> Self {
        self.options.timeout = timeout;
        self
    }
}

impl<A> Future for Ask<A> {
    type Output = Result<A, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        if let Some(begin) = self.begin.take() {
            let timeout = self.options.timeout;
            let options = std::mem::replace(&mut self.options, AskOptions { key: None, timeout });
            self.running = Some(begin(options));
        }
        // Polled after its end, as no future should be: it stays pending, rather than panic.
        let Some(running) = &mut self.running else { return Poll::Pending };
        let answer = task::ready!(running.as_mut().poll(cx));
        self.running = None;
        Poll::Ready(answer)
    }
}

impl<A> fmt::Debug for Ask<A> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Ask").field("key", &self.options.key).finish_non_exhaustive()
    }
}

/// What a user did who was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elicited<T> {
    /// Answered.
    Accepted(T),
    /// Said no.
    Declined,
    /// Went away without an answer.
    Dismissed,
}

impl<T> Elicited<T> {
    /// The answer; an error that a model can read if there is none.
    pub fn accepted(self) -> Result<T, Error> {
        match self {
            Self::Accepted(value) => Ok(value),
            Self::Declined => Err(Error::declined()),
            Self::Dismissed => Err(Error::dismissed()),
        }
    }
}

/// A question to the user: await it for the answer, or for the [`outcome`](Elicit::outcome).
#[must_use = "nothing is asked until this is awaited"]
#[derive(Debug)]
pub struct Elicit<T>(Ask<Elicited<T>>);

impl<T: 'static> Elicit<T> {
    /// See [`Ask::key`].
    pub fn key(self, key: impl Into<String>) -> Self {
        Self(self.0.key(key))
    }

    /// See [`Ask::within`].
    pub fn within(self, timeout: Duration) -> Self {
        Self(self.0.within(timeout))
    }

    /// What the user did, where saying no is not an error.
    pub fn outcome(self) -> Ask<Elicited<T>> {
        self.0
    }
}

impl<T> Future for Elicit<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(|elicited| elicited.and_then(Elicited::accepted))
    }
}

/// Questions to the client, in every revision that can be asked.
///
/// # What happens in 2026-07-28
///
/// A client of that revision cannot be called. When a handler waits for nothing but answers, it is **dropped**, the client is
/// told what is asked, and when it comes back with the answers **the handler runs again from its beginning**, with the answers
/// that are known. So what comes before a question is done once for each round: let it be harmless, or remember it with
/// [`Context::once`]. A handler has to ask the same questions in the same order each time, or give them
/// [keys](Ask::key); one that asks something else under a key is answered with an error.
///
/// A handler that waits for something else as well goes on until that is done, or until nothing has happened for a quarter of a
/// second. Being dropped like this is no cancellation: [`Context::on_cancel`] is not run.
///
/// Only tools, prompts and resources can ask, and only from `async` handlers.
///
/// # Errors
///
/// All of these fail if the client has not declared that it can be asked (before anything is sent), if its answer does not
/// fit the question, and, where it is called, as [`Context::call`] does.
impl Context {
    /// Asks the user for a `T`: see [`Form`] for what it can be.
    ///
    /// Through `?` it is a `T`; a user who says no is an error that the model reads. Use [`Elicit::outcome`] where saying no
    /// is an answer. Never ask for secrets like this: what the user writes goes through the client.
    ///
    /// ```
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    /// use steadfast::prelude::*;
    /// use steadfast::server::Elicited;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// enum Unit { Celsius, Fahrenheit }
    ///
    /// #[tool]
    /// async fn forecast(city: String, ctx: Context) -> steadfast::Result<String> {
    ///     let unit: Unit = ctx.elicit("Celsius or Fahrenheit?").await?;
    ///     let save = ctx.elicit::<bool>(format!("Remember {city}?")).outcome().await?;
    ///     if let Elicited::Accepted(true) = save { /* .. */ }
    ///     Ok("fine".to_owned())
    /// }
    /// ```
    pub fn elicit<T: Form>(&self, message: impl Into<String>) -> Elicit<T> {
        let (ctx, message) = (self.clone(), message.into());
        Elicit(Ask::new(move |options| async move {
            let (form, shape) = form::of::<T>()?;
            let params = ElicitParams::form(message, form.clone());
            let told = put::<request::Elicit>(&ctx, Need::Elicitation, params, options).await?;
            let content = told.result.content.clone().unwrap_or_default();
            elicited(&told, || form::read(shape, &form, content))
        }))
    }

    /// Asks the user by a form that was made by hand, or to visit a URL. The answer to a form is checked against it.
    ///
    /// ```
    /// # use steadfast::{Context, ElicitParams, FormField, FormSchema};
    /// # async fn example(ctx: Context) -> steadfast::Result<()> {
    /// let form = FormSchema::new().with_required("name", FormField::string());
    /// let result = ctx.elicit_with(ElicitParams::form("Who are you?", form)).key("user_name").await?;
    /// # Ok(()) }
    /// ```
    pub fn elicit_with(&self, params: ElicitParams) -> Ask<ElicitResult> {
        let ctx = self.clone();
        Ask::new(move |options| async move {
            let (params, need, form) = match params {
                ElicitParams::Form(params) => {
                    let form = Some(params.requested_schema.clone());
                    (ElicitParams::Form(params), Need::Elicitation, form)
                }
                ElicitParams::Url(params) => (ElicitParams::Url(visit(&ctx, params)?), Need::ElicitationUrl, None),
                other => (other, Need::ElicitationUrl, None),
            };
            let mut told = put::<request::Elicit>(&ctx, need, params, options).await?;
            if let (Some(form), ElicitAction::Accept) = (form, told.result.action) {
                let mut content = told.result.content.take().unwrap_or_default();
                form_check::check(&form, &mut content).map_err(|complaint| told.unfit(&complaint))?;
                told.result.content = Some(content);
            }
            Ok(told.result)
        })
    }

    /// Asks the user to visit a URL, for what must not go through the client: secrets, payments, logging in elsewhere.
    ///
    /// The user has agreed to visit it when this is done, and may not have done there what is to be done. The URL must not
    /// hold anything secret, and whoever comes there has to be checked to be the same user.
    pub fn elicit_url(&self, message: impl Into<String>, url: impl Into<String>) -> Elicit<()> {
        let (ctx, message, url) = (self.clone(), message.into(), url.into());
        Elicit(Ask::new(move |options| async move {
            let params = visit(&ctx, ElicitUrlParams::new(message, url))?;
            let told = put::<request::Elicit>(&ctx, Need::ElicitationUrl, ElicitParams::Url(params), options).await?;
            elicited(&told, || Ok(()))
        }))
    }

    /// Tells this client that the user has done what a URL asked for: the question of that
    /// [id](ElicitUrlParams::elicitation_id), asked with [`Context::elicit_with`] or named by [`Context::urls_required`].
    ///
    /// For 2025-11-25. Other revisions do not have it, and their clients are told nothing.
    pub fn elicitation_complete(&self, id: &str) {
        let Some(execution) = self.execution() else { return };
        let params = ElicitationCompleteParams::new(id);
        // An object with a text in it can be written.
        let text = era::params_text(execution.peer.revision, &params, &era::Decoration::none()).unwrap_or_default();
        PendingNotifications::new(&execution.mailbox, None).post(Method::ElicitationComplete, Some(text));
    }

    /// The error that has a client of 2025-11-25 show these URLs to its user, and try again when they were visited: return
    /// it. A URL without an id is given one.
    ///
    /// [`Context::elicit_url`] does the same within the request, and in every revision that can. A client of another
    /// revision, or one that has not declared that it shows URLs, gets an error that says so.
    pub fn urls_required(&self, message: impl Into<String>, urls: Vec<ElicitUrlParams>) -> Error {
        let Some(execution) = self.execution() else { return Error::closed(Outcome::NotSent) };
        let revision = execution.peer.revision;
        if revision != Revision::V2025_11_25 {
            return Error::unsupported("only clients of 2025-11-25 can be told which URLs to visit first");
        }
        if !Need::ElicitationUrl.is_met(&execution.peer.client_capabilities) {
            return Error::unsupported("this needs a client that has declared elicitation by a URL");
        }
        let urls: Result<Vec<_>, Error> = urls.into_iter().map(|url| visit(self, url)).collect();
        match urls {
            Ok(urls) => ErrorObject::url_elicitation_required(message.into(), urls).into(),
            Err(error) => error,
        }
    }

    /// Asks the client's model: a sentence, or a whole conversation with what it may use.
    ///
    /// ```
    /// # use steadfast::{Context, CreateMessageParams, SamplingMessage};
    /// # async fn example(ctx: Context) -> steadfast::Result<()> {
    /// let capital = ctx.sample("What is the capital of France?").await?;
    /// let haiku = CreateMessageParams::new(vec![SamplingMessage::user("A haiku, please.")], 100).with_temperature(1.0);
    /// let haiku = ctx.sample(haiku).await?;
    /// # Ok(()) }
    /// ```
    pub fn sample(&self, params: impl Into<CreateMessageParams>) -> Ask<CreateMessageResult> {
        let (ctx, params) = (self.clone(), params.into());
        Ask::new(move |options| async move {
            check_tool_uses(&params.messages)?;
            let tools = !params.tools.is_empty() || params.tool_choice.is_some();
            let need = if tools { Need::SamplingTools } else { Need::Sampling };
            Ok(put::<request::CreateMessage>(&ctx, need, params, options).await?.result)
        })
    }

    /// Asks for the folders that the client works in.
    pub fn roots(&self) -> Ask<ListRootsResult> {
        let ctx = self.clone();
        Ask::new(move |options| async move {
            Ok(put::<request::ListRoots>(&ctx, Need::Roots, EmptyParams::default(), options).await?.result)
        })
    }
}

/// An answer, and where it came from.
struct InputAnswer<R: Request> {
    result: R::Result,
    /// The key in `inputResponses`; `None`: it is the answer to a call.
    key: Option<String>,
}

impl<R: Request> InputAnswer<R> {
    /// The answer does not fit the question.
    fn unfit(&self, complaint: &str) -> Error {
        match &self.key {
            Some(key) => unfit(key, complaint),
            None => Error::decode(R::METHOD, complaint.to_owned()),
        }
    }
}

fn unfit(key: &str, complaint: &str) -> Error {
    Error::invalid_params(format!("the answer in params.inputResponses under `{key}` does not fit: {complaint}"))
}

/// A request that may be put to a client in either era.
trait ClientRequest: Request {
    /// What its key begins with.
    const KIND: &'static str;
    fn input(params: Self::Params) -> InputRequest;
}

impl ClientRequest for request::Elicit {
    const KIND: &'static str = "elicit";
    fn input(params: ElicitParams) -> InputRequest {
        InputRequest::Elicit(params)
    }
}

impl ClientRequest for request::CreateMessage {
    const KIND: &'static str = "sample";
    fn input(params: CreateMessageParams) -> InputRequest {
        InputRequest::CreateMessage(params)
    }
}

impl ClientRequest for request::ListRoots {
    const KIND: &'static str = "roots";
    fn input(_: EmptyParams) -> InputRequest {
        InputRequest::ListRoots(None)
    }
}

/// Puts a question to the client, in the way of its revision.
async fn put<R: ClientRequest>(
    ctx: &Context,
    need: Need,
    params: R::Params,
    options: AskOptions,
) -> Result<InputAnswer<R>, Error> {
    let Some(execution) = ctx.execution() else { return Err(Error::closed(Outcome::NotSent)) };
    let peer = &execution.peer;
    need::check(&[need], peer)?;
    if !peer.revision.is_modern() {
        let result = ctx.call_within::<R>(params, options.timeout).await?;
        return Ok(InputAnswer { result, key: None });
    }
    if execution.input_rounds().is_none() {
        return Err(Error::unsupported("only tools, prompts and resources can ask a client of 2026-07-28"));
    }
    let question = Question {
        execution: Arc::clone(execution),
        key: options.key,
        kind: R::KIND,
        request: R::input(params),
        waiting: false,
    };
    let (key, value) = question.await?;
    let result = serde_json::from_value(value).map_err(|error| unfit(&key, &error.to_string()))?;
    Ok(InputAnswer { result, key: Some(key) })
}

/// A question of 2026-07-28.
struct Question {
    execution: Arc<Execution>,
    /// Set from the beginning, or when it is asked.
    key: Option<String>,
    kind: &'static str,
    request: InputRequest,
    waiting: bool,
}

impl Future for Question {
    type Output = Result<(String, Value), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        let question = &mut *self;
        let Some(input_rounds) = question.execution.input_rounds() else { return Poll::Pending };
        if let (true, Some(key)) = (question.waiting, &question.key) {
            return input_rounds.wait(key, cx.waker()).map_or_else(|error| Poll::Ready(Err(error)), |()| Poll::Pending);
        }
        match input_rounds.ask(question.key.as_deref(), question.kind, &question.request, cx.waker()) {
            Ok(InputStatus::Answered(key, value)) => Poll::Ready(Ok((key, value))),
            Ok(InputStatus::Waiting(key)) => {
                (question.key, question.waiting) = (Some(key), true);
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        if let (true, Some(input_rounds), Some(key)) = (self.waiting, self.execution.input_rounds(), &self.key) {
            input_rounds.withdraw(key);
        }
    }
}

/// What the user did, with the answer read if there is one.
fn elicited<T>(
    told: &InputAnswer<request::Elicit>,
    read: impl FnOnce() -> Result<T, String>,
) -> Result<Elicited<T>, Error> {
    Ok(match told.result.action {
        ElicitAction::Accept => Elicited::Accepted(read().map_err(|complaint| told.unfit(&complaint))?),
        ElicitAction::Decline => Elicited::Declined,
        ElicitAction::Cancel => Elicited::Dismissed,
    })
}

/// A question that names a URL, as the revision of the client wants it.
fn visit(ctx: &Context, mut params: ElicitUrlParams) -> Result<ElicitUrlParams, Error> {
    url::check(&params.url)?;
    if !ctx.client().revision().is_modern() && params.elicitation_id.is_none() {
        params.elicitation_id = Some(fresh_id()?);
    }
    Ok(params)
}

/// A name for a question that 2025-11-25 wants named.
fn fresh_id() -> Result<String, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Error::internal("there are no random numbers").with_source(error))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn without_a_client_nobody_is_asked() {
        let ctx = Context::detached();
        assert!(ctx.elicit::<bool>("?").await.is_err());
        assert!(ctx.roots().await.is_err());
    }

    #[test]
    fn saying_no_is_a_typed_error() {
        use crate::error::ErrorKind;
        assert_eq!(Elicited::<()>::Declined.accepted().unwrap_err().kind(), ErrorKind::Declined);
        assert_eq!(Elicited::<()>::Dismissed.accepted().unwrap_err().kind(), ErrorKind::Dismissed);
        assert_eq!(Elicited::Accepted(7).accepted().unwrap(), 7);
    }
}
