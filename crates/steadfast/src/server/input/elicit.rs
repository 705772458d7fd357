//! Elicitation, which asks the user of the client: with a form derived from a type, with a form made by hand, or by a
//! URL to visit.

use std::pin::Pin;
use std::task::{self, Poll};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use steadfast_model::{
    ElicitAction, ElicitParams, ElicitResult, ElicitUrlParams, ElicitationCompleteParams, ErrorObject, Method, request,
    wire,
};

use super::ask::{Ask, InputAnswer, request_input};
use super::form::{self, Form};
use super::need::RequiredClientCapability;
use super::url;
use crate::error::{Error, Outcome};
use crate::runtime::OutboundNotifications;
use crate::server::context::Context;
use crate::validation::form as form_check;

/// What the user did with an elicitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElicitOutcome<T> {
    /// The user answered.
    Accepted(T),
    /// The user declined.
    Declined,
    /// The user dismissed the question without answering.
    Dismissed,
}

impl<T> ElicitOutcome<T> {
    /// Returns the user's answer, or an error that a model can read if the user declined or dismissed the request.
    pub fn into_result(self) -> Result<T, Error> {
        match self {
            Self::Accepted(value) => Ok(value),
            Self::Declined => Err(Error::declined()),
            Self::Dismissed => Err(Error::dismissed()),
        }
    }
}

/// A question to the user: await it for the answer, or await its [`outcome`](Elicit::outcome).
#[must_use = "nothing is asked until this is awaited"]
#[derive(Debug)]
pub struct Elicit<T>(Ask<ElicitOutcome<T>>);

impl<T: 'static> Elicit<T> {
    /// See [`Ask::key`].
    pub fn key(self, key: impl Into<String>) -> Self {
        Self(self.0.key(key))
    }

    /// See [`Ask::timeout`].
    pub fn timeout(self, timeout: Duration) -> Self {
        Self(self.0.timeout(timeout))
    }

    /// Returns what the user did with the elicitation; declining it is not an error here.
    pub fn outcome(self) -> Ask<ElicitOutcome<T>> {
        self.0
    }
}

impl<T> Future for Elicit<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(|outcome| outcome.and_then(ElicitOutcome::into_result))
    }
}

/// Input from the client, in every revision that supports input requests.
///
/// # What happens in 2026-07-28
///
/// A server cannot send requests to a client of revision 2026-07-28. When a handler waits for nothing but input, it is
/// **dropped** and the request ends with the input requests; when the client sends the request again with the answers,
/// **the handler runs again from its beginning**, with the answers that are known. So all code of a handler before an
/// input request runs once per round: make that code idempotent, or remember its value with [`Context::once`]. A
/// handler has to ask the same questions in the same order each time, or give them [keys](Ask::key); a handler that
/// asks something else under a known key ends with an error.
///
/// A handler that waits for input and also for something else goes on until that is done, or until nothing has happened
/// for a quarter of a second. A handler that is dropped to wait for input is not cancelled: its [`Context::on_cancel`]
/// cleanups do not run.
///
/// Only tools, prompts and resources can request input, and only from `async` handlers.
///
/// # Errors
///
/// All requests for input fail if the client has not declared the capability (before anything is sent), if the client's
/// answer does not match the question, and, in revisions where the server sends requests to the client, for the same
/// reasons as [`Context::call`].
impl Context {
    /// Asks the user for a `T` with a form: see [`Form`] for what `T` can be.
    ///
    /// With `?` the user's answer is a `T`; if the user declines, the model reads the error. Use [`Elicit::outcome`] if
    /// declining is a valid answer. Never ask for secrets with a form: the user's answer goes through the client.
    ///
    /// ```
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    /// use steadfast::prelude::*;
    /// use steadfast::server::ElicitOutcome;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// enum Unit { Celsius, Fahrenheit }
    ///
    /// #[tool]
    /// async fn forecast(city: String, ctx: Context) -> steadfast::ToolResult<String> {
    ///     let unit: Unit = ctx.elicit("Celsius or Fahrenheit?").await?;
    ///     let save = ctx.elicit::<bool>(format!("Remember {city}?")).outcome().await?;
    ///     if let ElicitOutcome::Accepted(true) = save { /* .. */ }
    ///     Ok("fine".to_owned())
    /// }
    /// ```
    pub fn elicit<T: Form>(&self, message: impl Into<String>) -> Elicit<T> {
        let (ctx, message) = (self.clone(), message.into());
        Elicit(Ask::new(move |options| async move {
            let (form, shape) = form::of::<T>()?;
            let params = ElicitParams::form(message, form.clone());
            let answer =
                request_input::<request::Elicit>(&ctx, RequiredClientCapability::Elicitation, params, options).await?;
            let content = answer.result.content.clone().unwrap_or_default();
            outcome_of(&answer, || form::read(shape, &form, content))
        }))
    }

    /// Asks the user with a form made by hand, or to visit a URL. The answer to a form is checked against the form.
    ///
    /// ```
    /// # use steadfast::{Context, ElicitParams, FormField, FormSchema};
    /// # async fn example(ctx: Context) -> steadfast::ToolResult<()> {
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
                    (ElicitParams::Form(params), RequiredClientCapability::Elicitation, form)
                }
                ElicitParams::Url(params) => {
                    (ElicitParams::Url(prepare_url(&ctx, params)?), RequiredClientCapability::ElicitationUrl, None)
                }
                other => (other, RequiredClientCapability::ElicitationUrl, None),
            };
            let mut answer = request_input::<request::Elicit>(&ctx, need, params, options).await?;
            if let (Some(form), ElicitAction::Accept) = (form, answer.result.action) {
                let mut content = answer.result.content.take().unwrap_or_default();
                form_check::check(&form, &mut content).map_err(|complaint| answer.invalid(&complaint))?;
                answer.result.content = Some(content);
            }
            Ok(answer.result)
        })
    }

    /// Asks the user to visit a URL, for what must not go through the client: secrets, payments, logging in elsewhere.
    ///
    /// When the returned future completes, the user has agreed to visit the URL, but may not have finished there. The
    /// URL must not contain secrets, and the page has to check that its visitor is the same user.
    pub fn elicit_url(&self, message: impl Into<String>, url: impl Into<String>) -> Elicit<()> {
        let (ctx, message, url) = (self.clone(), message.into(), url.into());
        Elicit(Ask::new(move |options| async move {
            let params = ElicitParams::Url(prepare_url(&ctx, ElicitUrlParams::new(message, url))?);
            let answer =
                request_input::<request::Elicit>(&ctx, RequiredClientCapability::ElicitationUrl, params, options)
                    .await?;
            outcome_of(&answer, || Ok(()))
        }))
    }

    /// Notifies the client that the user has finished at the URL of an elicitation: the one with this
    /// [id](ElicitUrlParams::elicitation_id), sent by [`Context::elicit_with`] or [`Context::urls_required`].
    ///
    /// Only revision 2025-11-25 has this notification of a finished elicitation. Clients of other revisions are not
    /// notified.
    pub fn elicitation_complete(&self, id: &str) {
        let Some(execution) = self.execution() else { return };
        let params = ElicitationCompleteParams::new(id);
        // An object with one string can always be encoded.
        let text =
            wire::params_text(execution.peer.revision, &params, &wire::PerMessageMembers::none()).unwrap_or_default();
        OutboundNotifications::new(&execution.mailbox, None).post(Method::ElicitationComplete, Some(text));
    }

    /// Creates an error that makes a client of 2025-11-25 show these URLs to its user, and retry the request after the
    /// user has visited them. Return the error from the handler. A URL without an elicitation id gets one.
    ///
    /// [`Context::elicit_url`] asks the user to visit a URL within the request, and in every revision that supports
    /// URLs. A client of another revision, or one that has not declared URL elicitation, gets an error that says so.
    pub fn urls_required(&self, message: impl Into<String>, urls: Vec<ElicitUrlParams>) -> Error {
        let Some(execution) = self.execution() else { return Error::closed(Outcome::NotSent) };
        let revision = execution.peer.revision;
        if !revision.has_url_elicitation_error() {
            return Error::unsupported("only clients of 2025-11-25 support the error that requires URLs to be visited");
        }
        if !RequiredClientCapability::ElicitationUrl.is_met(&execution.peer.client_capabilities) {
            return Error::unsupported("this error needs a client that has declared elicitation by a URL");
        }
        let urls: Result<Vec<_>, Error> = urls.into_iter().map(|url| prepare_url(self, url)).collect();
        match urls {
            Ok(urls) => ErrorObject::url_elicitation_required(message.into(), urls).into(),
            Err(error) => error,
        }
    }
}

/// Returns what the user did with an elicitation, with the answer decoded if there is one.
fn outcome_of<T>(
    answer: &InputAnswer<request::Elicit>,
    decode: impl FnOnce() -> Result<T, String>,
) -> Result<ElicitOutcome<T>, Error> {
    Ok(match answer.result.action {
        ElicitAction::Accept => ElicitOutcome::Accepted(decode().map_err(|complaint| answer.invalid(&complaint))?),
        ElicitAction::Decline => ElicitOutcome::Declined,
        _ => ElicitOutcome::Dismissed,
    })
}

/// Checks the URL of an elicitation, and adds the elicitation id that revisions before 2026-07-28 require.
fn prepare_url(ctx: &Context, mut params: ElicitUrlParams) -> Result<ElicitUrlParams, Error> {
    url::check(&params.url)?;
    if !ctx.client().revision().is_stateless() && params.elicitation_id.is_none() {
        params.elicitation_id = Some(random_id()?);
    }
    Ok(params)
}

fn random_id() -> Result<String, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::internal("the system's random number generator failed").with_source(error))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn eliciting_without_a_client_fails() {
        let ctx = Context::detached();
        assert!(ctx.elicit::<bool>("?").await.is_err());
        assert!(ctx.roots().await.is_err());
    }

    #[test]
    fn declining_is_a_typed_error() {
        use crate::error::ErrorKind;
        assert_eq!(ElicitOutcome::<()>::Declined.into_result().unwrap_err().kind(), ErrorKind::Declined);
        assert_eq!(ElicitOutcome::<()>::Dismissed.into_result().unwrap_err().kind(), ErrorKind::Dismissed);
        assert_eq!(ElicitOutcome::Accepted(7).into_result().unwrap(), 7);
    }
}
