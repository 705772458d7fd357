//! One call, before and while it is made.

use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use serde_json::Value;
use steadfast_model::era::{self, Decoration};
use steadfast_model::request::Request;
use steadfast_model::{JsonObject, Method, ProgressParams, ProgressToken, code};

use super::rounds::{Between, Rounds};
use super::{Client, answer_of, complete, tasks};
use crate::error::{Error, Outcome};
use crate::runtime::{CallEnding, CallOptions, OnProgress, PendingCall};

/// How long a call may take unless told: tools run for minutes.
const TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// How long a call may take in all unless told, however much progress is reported.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// A call about to be made: await it, or [`start`](Call::start) it.
#[must_use = "nothing is called until this is awaited or started"]
pub struct Call<R: Request> {
    client: Client,
    params: Result<R::Params, Error>,
    timeout: Option<Duration>,
    total_timeout: Option<Duration>,
    on_progress: Option<OnProgress>,
}

impl<R: Request> Call<R> {
    pub(super) fn new(client: Client, params: R::Params) -> Self {
        Self {
            client,
            params: Ok(params),
            timeout: Some(TIMEOUT),
            total_timeout: Some(TOTAL_TIMEOUT),
            on_progress: None,
        }
    }

    pub(super) fn failed(client: Client, error: Error) -> Self {
        Self { client, params: Err(error), timeout: None, total_timeout: None, on_progress: None }
    }

    /// How long to wait without an answer or progress. Five minutes unless told; with `None` only the
    /// total time ends it.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = timeout.into();
        self
    }

    /// How long to wait in all, whatever progress is reported. A day unless told; `None` for ever.
    pub fn total_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.total_timeout = timeout.into();
        self
    }

    /// Asks for progress, and has `callback` called with it where the call is awaited.
    pub fn on_progress(mut self, callback: impl FnMut(ProgressParams) + Send + 'static) -> Self {
        self.on_progress = Some(Box::new(callback));
        self
    }

    /// Makes the call. Dropping what this returns takes the call back.
    pub fn start(self) -> PendingResult<R> {
        let prepared = self.params.and_then(|params| {
            let mut decoration = self.client.inner.decoration.clone();
            let progress = self.on_progress.map(|callback| (self.client.inner.mailbox.next_token(), callback));
            if let Some((token, _)) = &progress {
                decoration = decoration.with_progress_token(token);
            }
            let text = params_text::<R>(&self.client, &params, &decoration)?;
            Ok((text, progress))
        });
        match prepared {
            Ok((text, progress)) => {
                let (timeout, total_timeout) = (self.timeout, self.total_timeout);
                let rounds = Rounds::of(&self.client, R::METHOD, &text, total_timeout);
                let token = progress.as_ref().map(|(token, _)| token.clone());
                let options = CallOptions { timeout, total_timeout, progress, ..CallOptions::default() };
                let call = PendingCall::new(&self.client.inner.mailbox, R::METHOD, Some(text), options);
                let client = Some(self.client);
                PendingResult { state: State::Waiting(call), rounds, timeout, token, client, request: PhantomData }
            }
            Err(error) => PendingResult::failed(error),
        }
    }
}

fn params_text<R: Request>(client: &Client, params: &R::Params, decoration: &Decoration) -> Result<Box<str>, Error> {
    let mut text = Vec::new();
    era::write_params(client.revision(), params, decoration, &mut text).map_err(Error::encode)?;
    String::from_utf8(text).map(String::into_boxed_str).map_err(Error::encode)
}

impl<R: Request> IntoFuture for Call<R> {
    type Output = Result<R::Result, Error>;
    type IntoFuture = PendingResult<R>;

    fn into_future(self) -> PendingResult<R> {
        self.start()
    }
}

/// A call that was made, and waits for its end.
#[must_use = "dropping this takes the call back"]
pub struct PendingResult<R> {
    state: State,
    /// Set if the server can ask back.
    rounds: Option<Box<Rounds>>,
    /// For the next round.
    timeout: Option<Duration>,
    token: Option<ProgressToken>,
    /// Keeps the connection open while the call waits.
    client: Option<Client>,
    request: PhantomData<fn() -> R>,
}

enum State {
    Waiting(PendingCall),
    /// The server has asked back, and is being answered.
    Asked(Between, Option<OnProgress>),
    /// What the server wants in the headers of the tool is being looked up.
    Listing(Pin<Box<dyn Future<Output = ()> + Send>>, Option<OnProgress>),
    /// The request goes on as a task.
    Task(Pin<Box<dyn Future<Output = Result<JsonObject, Error>> + Send>>),
    Failed(Error),
    Over,
}

impl<R> PendingResult<R> {
    fn failed(error: Error) -> Self {
        Self {
            state: State::Failed(error),
            rounds: None,
            timeout: None,
            token: None,
            client: None,
            request: PhantomData,
        }
    }
}

impl<R: Request> PendingResult<R> {
    /// What a round was answered with: the result, or what to wait for now.
    fn answered(&mut self, ending: CallEnding, on_progress: Option<OnProgress>) -> Result<Turn<R>, Error> {
        let later = self.rounds.as_ref().is_some_and(|rounds| rounds.is_later());
        let answer = match answer_of::<R>(ending) {
            Ok(answer) => answer,
            Err(error) => {
                if let Some(listing) = self.look_up(&error) {
                    return Ok(Turn::Goes(State::Listing(listing, on_progress)));
                }
                return Err(match error.outcome() {
                    // This round was not sent, but the call was: its handler ran up to the question.
                    Outcome::NotSent if later => error.with_outcome_unknown(),
                    _ => error,
                });
            }
        };
        match (answer, &mut self.rounds, &self.client) {
            (steadfast_model::Outcome::InputRequired(asked), Some(rounds), Some(client)) => {
                Ok(Turn::Goes(State::Asked(rounds.ask(client, asked)?, on_progress)))
            }
            (steadfast_model::Outcome::Task(created), Some(rounds), Some(client)) if tasks::are_taken(client) => {
                let followed = tasks::follow(client.clone(), R::METHOD, created.task, rounds.end());
                Ok(Turn::Goes(State::Task(Box::pin(followed))))
            }
            (answer, ..) => complete::<R>(answer).map(Turn::Over),
        }
    }

    /// A server that misses a header has changed its tool: its tools are listed, and the call, which was refused, is made again.
    /// Once, and only before the server has asked anything.
    fn look_up(&mut self, error: &Error) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        let mismatch = error.refusal().is_some_and(|refusal| refusal.code == code::HEADER_MISMATCH);
        let client = self.client.as_ref().filter(|client| client.inner.over_http && R::METHOD == Method::CallTool)?;
        let rounds = self.rounds.as_mut().filter(|rounds| mismatch && rounds.may_look_up())?;
        rounds.note_look_up();
        let client = client.clone();
        // If it cannot list them, the second try says what the first said.
        Some(Box::pin(async move { drop(client.list_tools().await) }))
    }

    /// Makes the call again, with the answers.
    fn next_round(&self, params: Box<str>, on_progress: Option<OnProgress>) -> State {
        let (Some(client), Some(rounds)) = (&self.client, &self.rounds) else { return State::Over };
        let options = CallOptions {
            timeout: self.timeout,
            total_timeout: rounds.left(client.inner.runtime.now()),
            progress: self.token.clone().zip(on_progress),
            ..CallOptions::default()
        };
        State::Waiting(PendingCall::new(&client.inner.mailbox, R::METHOD, Some(params), options))
    }
}

/// What became of a round.
enum Turn<R: Request> {
    Over(R::Result),
    Goes(State),
}

impl<R: Request> Future for PendingResult<R> {
    type Output = Result<R::Result, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let pending = &mut *self;
        let ended = loop {
            match &mut pending.state {
                State::Waiting(call) => {
                    let ending = std::task::ready!(Pin::new(&mut *call).poll(cx));
                    let on_progress = call.take_on_progress();
                    match pending.answered(ending, on_progress) {
                        Ok(Turn::Goes(state)) => pending.state = state,
                        Ok(Turn::Over(result)) => break Ok(result),
                        Err(error) => break Err(error),
                    }
                }
                State::Asked(between, on_progress) => {
                    let Some(rounds) = &mut pending.rounds else { return Poll::Pending };
                    let params = match std::task::ready!(rounds.poll(between, cx)) {
                        Ok(params) => params,
                        Err(error) => break Err(error),
                    };
                    let on_progress = on_progress.take();
                    pending.state = pending.next_round(params, on_progress);
                }
                State::Listing(listing, on_progress) => {
                    std::task::ready!(listing.as_mut().poll(cx));
                    let on_progress = on_progress.take();
                    let params = pending.rounds.as_ref().map(|rounds| rounds.first_params()).unwrap_or_default();
                    pending.state = pending.next_round(params, on_progress);
                }
                State::Task(task) => {
                    let result = std::task::ready!(task.as_mut().poll(cx));
                    let read = |result| serde_json::from_value(result).map_err(|error| Error::decode(R::METHOD, error));
                    break result.map(Value::Object).and_then(read);
                }
                State::Failed(_) => match std::mem::replace(&mut pending.state, State::Over) {
                    State::Failed(error) => break Err(error),
                    _ => return Poll::Pending,
                },
                // Polled after its end, as no future should be: it stays pending, rather than panic.
                State::Over => return Poll::Pending,
            }
        };
        pending.state = State::Over;
        pending.client = None;
        Poll::Ready(ended)
    }
}

impl<R: Request> std::fmt::Debug for Call<R> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Call").field("method", &R::METHOD).finish_non_exhaustive()
    }
}

impl<R: Request> std::fmt::Debug for PendingResult<R> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PendingResult").field("method", &R::METHOD).finish_non_exhaustive()
    }
}
