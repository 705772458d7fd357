//! What a client's call does after each of its requests.
//!
//! Most calls are one request and its response. Some calls of a client take several requests, because the server asks
//! for input, makes an MCP task of the call or misses HTTP headers that the client does not know, or because the
//! connection is lost. Whatever the call waits for, its total timeout, its [`Canceller`] and the close of the client
//! end the wait at once, with an error that says what is known of the call by then (law L10).

use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;
use steadfast_model::request::Request;
use steadfast_model::{DeferrableResult, InputRequiredResult, JsonObject, ProgressToken, Task};
use steadfast_proto::connection::CallEnd;
use steadfast_proto::{Moment, mutant};

use super::canceller::Canceller;
use super::pending::SentCallRequest;
use super::retries::{CallRetries, HeaderMismatchRetry, list_tools};
use super::rounds::CallRounds;
use super::{Call, CallSettings};
use crate::client::Client;
use crate::client::cache::CacheTicket;
use crate::client::connection::live::ClientConnection;
use crate::client::connection::reconnecting::{CallLossReport, ReconnectingConnection};
use crate::client::dispatch::ClientRequestOrigin;
use crate::client::tasks;
use crate::client::tasks::TaskProtocol;
use crate::client::tasks::cancel::supports_task_cancel;
use crate::error::{Error, Outcome};
use crate::runtime::connection::call_result::{CallLoss, CallLossScope, complete, text_of};
use crate::runtime::timeout::{timeout_at, unless_stopped};
use crate::runtime::{OutboundCallOptions, Runtime};

/// The data of one call that outlive each of its requests.
pub(crate) struct CallFlow<R: Request> {
    /// A clone of the client, held so that its connection is not closed while the call waits.
    client: Client,
    /// The connection on which the last request of the call was sent.
    live: Arc<ClientConnection>,
    /// When the last request of the call was sent.
    sent_at: Moment,
    params: R::Params,
    settings: CallSettings,
    progress_token: Option<ProgressToken>,
    limits: CallWaitInterrupts,
    rounds: CallRounds,
    header_lookup: HeaderMismatchRetry,
    attempts: CallRetries,
    /// The kind of MCP task that the last request of the call may become, if any.
    task_kind: Option<TaskProtocol>,
    /// The cache ticket of the last request, with which its response is checked and cached.
    cache_ticket: Option<CacheTicket>,
    /// The length of the last response to this call, in bytes.
    response_bytes: usize,
}

/// What the end of a request means for the call.
pub(crate) enum CallControlFlow<R: Request> {
    /// The call of the client has ended with this result.
    End(Result<R::Result, Error>),
    /// The call needs another step, such as a reconnect or the answers to input requests of the server.
    Continue(CallStep),
}

/// What a call does between two requests, or before it ends.
pub(crate) enum CallStep {
    /// The request was lost and may be sent again: wait for another connection.
    Reconnect(CallLossReport),
    /// The server asks for input: let the client's handlers answer, then send the request again with the answers.
    AnswerInput(InputRequiredResult),
    /// The server misses an HTTP header: list the server's tools to learn which headers they need, then send the
    /// request again.
    ListTools,
    /// The server made an MCP task of the call: poll the task until it ends.
    FollowTask(Pin<Box<dyn Future<Output = Result<JsonObject, Error>> + Send>>),
    /// The call was lost together with its connection: wait a moment for the reason why the server exited, and add it
    /// to the error.
    AwaitExitReason(Error),
}

/// What a [`CallStep`] returns if it does not fail.
pub(crate) enum CallStepResult<R: Request> {
    RequestSent(SentCallRequest<R>),
    TaskResult(JsonObject),
}

impl<R: Request> CallFlow<R> {
    pub(crate) fn new(call: Call<R>, params: R::Params, progress_token: Option<ProgressToken>) -> Self {
        let Call { client, settings, .. } = call;
        let inner = &client.inner;
        let trusted = inner.trusts_annotations && inner.cache().is_idempotent_call::<R>(&params);
        let idempotent = settings.idempotent || trusted || R::METHOD.is_read_only();
        let runtime = Arc::clone(inner.runtime());
        let now = runtime.now();
        let deadline = settings.total_timeout.map(|total| now + total);
        Self {
            live: inner.connection.live(),
            attempts: CallRetries::new(inner.connection.policy().max_attempts(), idempotent),
            limits: CallWaitInterrupts {
                canceller: Canceller::new(),
                deadline,
                connection: Arc::clone(&inner.connection),
                runtime,
            },
            client,
            sent_at: now,
            params,
            settings,
            progress_token,
            rounds: CallRounds::default(),
            header_lookup: HeaderMismatchRetry::default(),
            task_kind: None,
            cache_ticket: None,
            response_bytes: 0,
        }
    }

    /// The handle that cancels the call.
    pub(crate) fn canceller(&self) -> Canceller {
        self.limits.canceller.clone()
    }

    /// Returns the cached response to the call, if it is fresh and the caller has not asked for a new response.
    pub(crate) fn cached_response(&mut self) -> Option<Arc<str>> {
        if self.settings.fresh {
            return None;
        }
        let (cache, revision) = (self.client.inner.cache(), self.live.peer.revision);
        let (ticket, text) = CacheTicket::find::<R>(cache, revision, &self.params, self.sent_at)?;
        self.cache_ticket = Some(ticket);
        Some(text)
    }

    /// Sends the first or the next request of the call.
    pub(crate) fn send_request(&mut self) -> Result<SentCallRequest<R>, Error> {
        self.task_kind = TaskProtocol::for_request::<R>(&self.client, &self.live.peer, &self.params)?;
        self.sent_at = self.limits.runtime.now();
        let inner = &self.client.inner;
        let wire = inner.wire_format(self.live.peer.revision);
        let mut ticket = CacheTicket::new::<R>(inner.cache(), wire, &self.params, self.sent_at)?;
        if self.rounds.is_later_round() {
            ticket.forbid_storing();
        }
        self.cache_ticket = Some(ticket);
        let options = OutboundCallOptions {
            timeout: self.settings.timeout,
            total_timeout: self.limits.deadline.map(|deadline| deadline.since(self.sent_at)),
            progress: self.progress_token.clone().zip(self.settings.on_progress.take()),
            expects_late_response: self.task_kind.is_some() && supports_task_cancel(&self.live.peer),
            // In 2025-11-25 a request that becomes a task is cancelled with `tasks/cancel`.
            uncancellable: self.task_kind == Some(TaskProtocol::Experimental),
            ..OutboundCallOptions::default()
        };
        let request = self
            .live
            .sender
            .send_edited::<R>(ClientRequestOrigin::Call, &self.params, options, |text| self.add_members(text))?;
        self.limits.canceller.track(&request);
        Ok(SentCallRequest::new(self.client.clone(), request, self.task_kind))
    }

    /// Adds to the parameters of the next request the answers to the server's input requests, and that the call may
    /// become an MCP task.
    fn add_members(&self, params: Box<str>) -> Result<Box<str>, Error> {
        let params = self.rounds.add_input_responses(params, self.live.peer.revision)?;
        match self.task_kind {
            Some(kind) => kind.add_task_member::<R>(params, &self.params),
            None => Ok(params),
        }
    }

    /// The length of the last response to this call, in bytes.
    pub(crate) fn response_bytes(&self) -> usize {
        self.response_bytes
    }

    /// Takes the progress callback out of a request that has ended, because the next request of the call needs the
    /// callback.
    pub(crate) fn restore_progress_callback(&mut self, request: &mut SentCallRequest<R>) {
        self.settings.on_progress = request.take_on_progress();
    }

    /// Decides how the call goes on after one of its requests has ended: a retry, another step, or the end of the call.
    pub(crate) fn handle_end(&mut self, end: CallEnd) -> CallControlFlow<R> {
        let loss = CallLoss::from_end(&end);
        if let Some(loss) = loss
            && self.attempts.allow_retry(loss)
        {
            let live = Arc::clone(&self.live);
            let resend_at_once = !loss.sent && self.attempts.is_first_retry();
            let lost = CallLossReport { live, call_sent_at: self.sent_at, kind: loss.kind, resend_at_once };
            return CallControlFlow::Continue(CallStep::Reconnect(lost));
        }
        match text_of(end, R::METHOD.name()) {
            Ok(text) => self.handle_response(&text),
            Err(error)
                if !self.rounds.is_later_round()
                    && self.header_lookup.should_retry(&self.client, R::METHOD, &error) =>
            {
                CallControlFlow::Continue(CallStep::ListTools)
            }
            Err(error) if loss.is_some_and(|loss| loss.kind == CallLossScope::Connection) => {
                CallControlFlow::Continue(CallStep::AwaitExitReason(error))
            }
            Err(error) => CallControlFlow::End(Err(self.with_known_outcome(error))),
        }
    }

    /// Decides how the call goes on after the response with this text.
    pub(crate) fn handle_response(&mut self, text: &str) -> CallControlFlow<R> {
        self.response_bytes = text.len();
        if let Some(kind) = self.task_kind.filter(|kind| *kind == TaskProtocol::Experimental)
            && let Some(task) = kind.created_task(text)
        {
            return self.follow_task(kind, task);
        }
        let may_ask = R::METHOD.is_deferrable_in(self.live.peer.revision);
        let result = DeferrableResult::from_json(text).map_err(|error| Error::decode(R::METHOD, error));
        match result {
            Ok(DeferrableResult::InputRequired(input)) if may_ask => {
                CallControlFlow::Continue(CallStep::AnswerInput(input))
            }
            Ok(DeferrableResult::Task(created)) if self.task_kind == Some(TaskProtocol::Extension) => {
                self.follow_task(TaskProtocol::Extension, created.task)
            }
            result => CallControlFlow::End(
                result.and_then(complete::<R>).and_then(|result| self.check_and_store(text, result)),
            ),
        }
    }

    /// Follows the MCP task that the server made of the call. The MCP task is registered here, whether or not the
    /// returned step is ever polled: if the step is dropped, the task is cancelled.
    fn follow_task(&self, kind: TaskProtocol, task: Task) -> CallControlFlow<R> {
        let follower = tasks::follow(self.client.clone(), kind, R::METHOD, task, self.settings.timeout);
        CallControlFlow::Continue(CallStep::FollowTask(Box::pin(follower)))
    }

    /// Checks the result of the call, and stores the response in the cache.
    fn check_and_store(&mut self, text: &str, result: R::Result) -> Result<R::Result, Error> {
        let ticket = self.cache_ticket.take();
        ticket.map_or(Ok(()), |mut ticket| ticket.check_and_store::<R>(text, &result)).map(|()| result)
    }

    /// Decodes and checks the result of an MCP task, which is never cached.
    pub(crate) fn decode_task_result(&self, result: JsonObject) -> Result<R::Result, Error> {
        let result = serde_json::from_value(Value::Object(result)).map_err(|error| Error::decode(R::METHOD, error))?;
        self.cache_ticket.as_ref().map_or(Ok(()), |ticket| ticket.check::<R>(&result)).map(|()| result)
    }

    /// Corrects the outcome of an error: the outcome is unknown if an earlier request of the same call was sent.
    fn with_known_outcome(&self, error: Error) -> Error {
        let sent_before = self.rounds.is_later_round() || self.attempts.outcome() == Outcome::Unknown;
        if error.outcome() == Outcome::NotSent && sent_before { error.with_outcome_unknown() } else { error }
    }

    /// Runs one step of the call, and sends the request that follows the step, if any.
    pub(crate) async fn run_step(&mut self, step: CallStep) -> Result<CallStepResult<R>, Error> {
        match step {
            CallStep::Reconnect(lost) => {
                let outcome = if self.rounds.is_later_round() { Outcome::Unknown } else { self.attempts.outcome() };
                let replacement = self.client.inner.connection.replace(lost);
                let replacement = self.limits.wait_for(replacement, outcome).await?;
                self.live = replacement.map_err(|error| error.with_outcome(outcome))?;
            }
            CallStep::AnswerInput(input) => {
                // The server may have started the work before it asked for input.
                let answer = self.rounds.answer(&self.client, input);
                let answered = self.limits.wait_for(answer, Outcome::Unknown).await?;
                answered.map_err(|error| self.with_known_outcome(error))?;
            }
            CallStep::ListTools => self.limits.wait_for(list_tools(self.client.clone()), Outcome::Refused).await?,
            CallStep::FollowTask(follower) => {
                let result = self.limits.wait_for(follower, Outcome::Unknown).await??;
                return Ok(CallStepResult::TaskResult(result));
            }
            CallStep::AwaitExitReason(error) => {
                let error = self.with_known_outcome(error);
                let exit_reason = self.client.inner.connection.exit_reason(&self.live);
                let exit_reason = self.limits.wait_for(exit_reason, error.outcome()).await.ok().flatten();
                return Err(error.with_exit_reason(exit_reason));
            }
        }
        let request = self.send_request().map_err(|error| self.with_known_outcome(error))?;
        Ok(CallStepResult::RequestSent(request))
    }

    /// Turns the flow back into its call, so that the call can be started again.
    pub(crate) fn into_call(self) -> Call<R> {
        let Self { client, params, settings, .. } = self;
        Call { client, params: Ok(params), settings }
    }
}

/// What ends a client's call while no request is in flight: cancellation, the total timeout, or closing the client.
struct CallWaitInterrupts {
    canceller: Canceller,
    /// When the total timeout of the call is over.
    deadline: Option<Moment>,
    connection: Arc<ReconnectingConnection>,
    runtime: Arc<dyn Runtime>,
}

impl CallWaitInterrupts {
    /// Waits for `work`, one step of a call, and returns its output. If the call is cancelled, times out or its
    /// client is closed first, returns an error with `outcome`: what is known of the call while `work` runs.
    async fn wait_for<T>(&self, work: impl Future<Output = T>, outcome: Outcome) -> Result<T, Error> {
        let timed_out = || Error::timed_out(outcome).with_message("the call exceeded its total timeout");
        // Work that is ready at once would not be timed out below.
        if !mutant!(ForgetTotal) && self.deadline.is_some_and(|deadline| deadline <= self.runtime.now()) {
            return Err(timed_out());
        }
        let until_deadline = timeout_at(&*self.runtime, self.deadline.filter(|_| !mutant!(ForgetTotal)), work);
        let until_close = unless_stopped(self.connection.wait_until_closing(), until_deadline);
        match unless_stopped(self.canceller.cancelled(), until_close).await {
            Some(Some(Some(done))) => Ok(done),
            Some(Some(None)) => Err(timed_out()),
            Some(None) => Err(Error::closed(outcome).with_message("the client was closed")),
            None => Err(Error::cancelled(outcome)),
        }
    }
}
