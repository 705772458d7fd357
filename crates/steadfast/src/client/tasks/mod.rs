//! Calls that become MCP tasks: the client polls the task until it ends, and the caller gets the result of the task as
//! if the server had responded to the call with it.
//!
//! The client polls an MCP task at the interval that the server sets. The client's handlers answer the input requests
//! of the MCP task. When the caller drops the call, the client cancels the MCP task.

pub(crate) mod cancel;
pub(crate) mod registry;

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use steadfast_model::request::Request;
use steadfast_model::wire::RequestSubject;
use steadfast_model::{
    CreateTaskResult, DeferrableResult, DetailedTask, ErrorObject, InputRequests, JsonObject, Method, TASKS_EXTENSION,
    Task, TaskParams, TaskStatus, TaskSupport, UpdateTaskParams, request,
};
use steadfast_proto::connection::PeerInfo;
use steadfast_proto::mutant;

use super::Client;
use super::call::rounds::add_members;
use super::connection::live::{wait_until_calls_are_refused, wait_until_closed};
use super::handlers::input::InputHandlersFuture;
use crate::error::{Error, Outcome};
use crate::runtime::timeout::{sleep, unless_stopped};
use registry::FollowedTaskRegistration;

/// The interval at which the client polls an MCP task if the server sets none, and the bounds of the interval that the
/// server sets.
const DEFAULT_POLL_INTERVAL: Duration = Duration::from_secs(1);
const POLL_INTERVALS: std::ops::RangeInclusive<Duration> = Duration::from_millis(20)..=Duration::from_secs(60);

/// The maximum number of input requests of one MCP task that the client answers, and the maximum size of their keys, as
/// a protection against tasks that ask for input without end.
const MAX_INPUT_REQUESTS: usize = 1_000;
const MAX_KEY_BYTES: usize = 1 << 20;

/// The tasks protocol that applies if the server turns a request into an MCP task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskProtocol {
    /// MCP tasks of the 2026-07-28 extension: the server decides whether to create a task. `tasks/get` returns the
    /// input requests and the result of the task.
    Extension,
    /// Experimental MCP tasks of 2025-11-25: the client decides whether a call becomes a task. `tasks/result` returns
    /// the result of the task, and the server sends its input requests while that request waits.
    Experimental,
}

impl TaskProtocol {
    /// Returns the kind of MCP task that this request may or must become. Returns an error if the caller wants an MCP
    /// task and the server cannot run one for this request.
    pub(crate) fn for_request<R: Request>(
        client: &Client,
        peer: &PeerInfo,
        params: &R::Params,
    ) -> Result<Option<Self>, Error> {
        if R::METHOD.is_deferrable_in(peer.revision) {
            return Ok(accepts_tasks(client).then_some(Self::Extension));
        }
        let RequestSubject::Tool { name, as_task } = RequestSubject::of::<R>(params) else { return Ok(None) };
        if !has_result_request(peer) {
            return Ok(None);
        }
        let supported = peer.server_capabilities.tasks.as_ref().is_some_and(|tasks| tasks.covers("tools", "call"));
        match client.inner.cache().tool(name).map(|tool| tool.task_support()) {
            Some(TaskSupport::Required) if supported => Ok(Some(Self::Experimental)),
            Some(TaskSupport::Optional) | None if supported && as_task => Ok(Some(Self::Experimental)),
            _ if as_task => Err(Error::unsupported(format!("the server cannot run the tool `{name}` as a task"))),
            _ => Ok(None),
        }
    }

    /// Adds the `task` member to the encoded parameters of a call, if the client decides whether the call becomes an
    /// MCP task and the caller has not set the member.
    pub(crate) fn add_task_member<R: Request>(self, text: Box<str>, params: &R::Params) -> Result<Box<str>, Error> {
        match RequestSubject::of::<R>(params) {
            RequestSubject::Tool { as_task: false, .. } if self == Self::Experimental => {
                let task = JsonObject::from_iter([("task".to_owned(), Value::Object(JsonObject::new()))]);
                add_members(&text, task)
            }
            _ => Ok(text),
        }
    }

    /// Returns the MCP task that a response of the server creates, if it creates one.
    pub(crate) fn created_task(self, text: &str) -> Option<Task> {
        match self {
            Self::Extension => match DeferrableResult::<JsonObject>::from_json(text) {
                Ok(DeferrableResult::Task(created)) => Some(created.task),
                _ => None,
            },
            // A server that has the result at once may respond with that.
            Self::Experimental => serde_json::from_str(text).ok().map(|created: CreateTaskResult| created.task),
        }
    }
}

/// Whether the client has declared the tasks extension.
fn accepts_tasks(client: &Client) -> bool {
    client.inner.connection.opener.capabilities.has_extension(TASKS_EXTENSION)
}

/// Whether the revision of the server has `tasks/result`: then its MCP tasks are [`TaskProtocol::Experimental`].
pub(crate) fn has_result_request(peer: &PeerInfo) -> bool {
    Method::GetTaskPayload.from_client_in(peer.revision)
}

/// Polls an MCP task until it ends. Dropping the returned future cancels the MCP task, even if the future was never
/// polled.
pub(crate) fn follow(
    client: Client,
    kind: TaskProtocol,
    method: Method,
    task: Task,
    timeout: Option<Duration>,
) -> impl Future<Output = Result<JsonObject, Error>> {
    let entry = client.inner.connection.opener.task_registry.register_task(&task.task_id);
    let answered = AnsweredTaskInputs::default();
    let mut follower = TaskFollower { client, kind, method, task, timeout, entry, answered, ended: false };
    async move { follower.run().await }
}

struct TaskFollower {
    client: Client,
    kind: TaskProtocol,
    /// The method of the call that became the MCP task.
    method: Method,
    task: Task,
    /// The timeout of each request that the client sends about the MCP task.
    timeout: Option<Duration>,
    entry: FollowedTaskRegistration,
    answered: AnsweredTaskInputs,
    /// Whether the MCP task has ended, and need not be cancelled.
    ended: bool,
}

impl TaskFollower {
    async fn run(&mut self) -> Result<JsonObject, Error> {
        loop {
            // A task may have ended before the response that created it was sent.
            if !self.task.status.is_final() {
                self.wait_for_next_poll().await;
            }
            let params = TaskParams::new(&self.task.task_id);
            let polled = self.client.call::<request::GetTask>(params).timeout(self.timeout).await;
            // The outcome of this request says nothing about the task.
            let DetailedTask { task, input_requests, result, error, .. } =
                polled.map_err(Error::with_outcome_unknown)?;
            if task.task_id != self.task.task_id {
                let other =
                    format!("requested task {:?}, the server responded with {:?}", self.task.task_id, task.task_id);
                return Err(Error::unreadable(Method::GetTask, other));
            }
            self.task.poll_interval_ms = task.poll_interval_ms.or(self.task.poll_interval_ms);
            self.ended = task.status.is_final();
            if self.ended {
                drop(self.entry.remove());
            }
            match (self.kind, task.status) {
                (TaskProtocol::Extension, TaskStatus::InputRequired) => {
                    let answered = self.answer(input_requests.unwrap_or_default()).await;
                    answered.map_err(Error::with_outcome_unknown)?;
                }
                // The server sends its input requests while `tasks/result` waits. If it refuses that, it is polled again.
                (TaskProtocol::Experimental, TaskStatus::InputRequired) => match self.fetch_result().await {
                    Err(error) if error.refusal().is_some() => {}
                    fetched => return fetched,
                },
                (TaskProtocol::Extension, TaskStatus::Completed) => {
                    return result.ok_or_else(|| Error::decode(self.method, "the completed task has no result"));
                }
                (TaskProtocol::Extension, TaskStatus::Failed) => {
                    let missing = || ErrorObject::internal("the task failed without an error object");
                    return Err(Error::refused(self.method, error.unwrap_or_else(missing)));
                }
                (TaskProtocol::Experimental, TaskStatus::Completed) => return self.fetch_result().await,
                (TaskProtocol::Experimental, TaskStatus::Failed) => {
                    let method = self.method;
                    return self.fetch_result().await.map_err(|error| match error.refusal() {
                        Some(refusal) => Error::refused(method, refusal.clone()),
                        None => error,
                    });
                }
                // The server does not say how much of the work was done.
                (_, TaskStatus::Cancelled) => return Err(Error::cancelled(Outcome::Unknown)),
                // It works, or has a status of a newer revision: it is polled again until it has ended.
                _ => {}
            }
        }
    }

    /// Requests the result of the MCP task with `tasks/result`. The server responds to `tasks/result` when the task has
    /// ended, so the request has no timeout.
    async fn fetch_result(&mut self) -> Result<JsonObject, Error> {
        let params = TaskParams::new(&self.task.task_id);
        let fetched = self.client.call::<request::GetTaskPayload>(params).timeout(None).await;
        self.ended |= fetched.is_ok();
        // The outcome of this request says nothing about the task.
        fetched.map_err(Error::with_outcome_unknown)
    }

    /// Answers the input requests of the MCP task that are new. A server may repeat an input request for a while after
    /// the client has answered it.
    async fn answer(&mut self, requests: InputRequests) -> Result<(), Error> {
        let is_answered = |key: &String| self.answered.keys.contains(key) && !mutant!(AnswerTasksAgain);
        let new: InputRequests = requests.into_iter().filter(|(key, _)| !is_answered(key)).collect();
        if new.is_empty() {
            return Ok(());
        }
        self.answered.add(new.keys())?;
        let handlers = &self.client.inner.connection.opener.handlers;
        let responses = InputHandlersFuture::start(handlers, new, self.client.revision())?.await?;
        let params = UpdateTaskParams::new(&self.task.task_id, responses);
        self.client.call::<request::UpdateTask>(params).timeout(self.timeout).await.map(drop)
    }

    /// Waits until the MCP task is to be polled again, or until the connection refuses calls: then the next poll
    /// reconnects or fails at once, not up to a minute later. A connection may refuse calls before it is closed, if the
    /// server does not read the last messages.
    async fn wait_for_next_poll(&self) {
        let interval = self.task.poll_interval_ms.map_or(DEFAULT_POLL_INTERVAL, Duration::from_millis);
        let interval = interval.clamp(*POLL_INTERVALS.start(), *POLL_INTERVALS.end());
        let live = self.client.inner.connection.live();
        let (refuses_calls, closed) = (live.refuses_calls(), live.closed());
        let lost = async move {
            if mutant!(PollLostTasks) {
                return std::future::pending().await;
            }
            if mutant!(PauseUntilClosed) {
                return wait_until_closed(closed).await;
            }
            wait_until_calls_are_refused(refuses_calls).await;
        };
        unless_stopped(lost, sleep(&**self.client.inner.runtime(), interval)).await;
    }
}

/// The keys of the input requests of an MCP task that the client has answered.
#[derive(Default)]
struct AnsweredTaskInputs {
    keys: BTreeSet<String>,
    bytes: usize,
}

impl AnsweredTaskInputs {
    /// Adds the keys of input requests. Returns an error if an MCP task has too many input requests.
    fn add<'a>(&mut self, keys: impl Iterator<Item = &'a String>) -> Result<(), Error> {
        for key in keys {
            self.bytes = self.bytes.saturating_add(key.len());
            self.keys.insert(key.clone());
        }
        if self.keys.len() > MAX_INPUT_REQUESTS {
            return Err(Error::unanswerable(format!("the task has more than {MAX_INPUT_REQUESTS} input requests")));
        }
        if self.bytes > MAX_KEY_BYTES {
            return Err(Error::unanswerable(format!(
                "the keys of the task's input requests are longer than {MAX_KEY_BYTES} bytes"
            )));
        }
        Ok(())
    }
}

/// Cancels the MCP task when its follower is dropped, if the task has not ended.
impl Drop for TaskFollower {
    fn drop(&mut self) {
        if let Some(cancellation) = self.entry.remove()
            && !self.ended
            && !mutant!(KeepTasksOfDroppedCalls)
        {
            cancel::cancel(&self.client, &self.task.task_id, cancellation);
        }
    }
}
