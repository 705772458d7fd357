//! A call that goes on as a task: followed to its end, so that the caller has its result as if it had been answered at once.
//!
//! The server is asked at the pace that it sets. What the task asks for is answered by the client's handlers. A caller that
//! gives the call up has the task cancelled.

pub(crate) mod cancel;
pub(crate) mod registry;

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use steadfast_model::request::{Request, Subject};
use steadfast_model::{
    AnyResult, CreateTaskResult, DetailedTask, ErrorObject, InputRequests, JsonObject, Method, TASKS_EXTENSION, Task,
    TaskParams, TaskStatus, TaskSupport, UpdateTaskParams, request,
};
use steadfast_proto::connection::Peer;
use steadfast_proto::mutant;

use super::Client;
use super::call::rounds::with_members;
use super::connection::live::{wait_until_calls_are_refused, wait_until_closed};
use super::handlers::questions::Questions;
use crate::error::{Error, Outcome};
use crate::runtime::timeout::{sleep, unless_stopped};
use registry::TaskEntry;

/// How long to wait before asking, if the server does not say, and whatever it says.
const PACE: Duration = Duration::from_secs(1);
const PACES: std::ops::RangeInclusive<Duration> = Duration::from_millis(20)..=Duration::from_secs(60);

/// How many questions of one task are answered, and how many bytes of their keys are remembered: a task that asks more goes on
/// for ever.
const MOST: usize = 1_000;
const KEY_BYTES: usize = 1 << 20;

/// Which tasks a request may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tasks {
    /// Those of the extension of 2026-07-28: the server decides, and the task shows what it asks for and its result.
    Extension,
    /// Those of 2025-11-25: the client decides. The result is fetched, and whoever waits for it is asked over the wire.
    Experiment,
}

impl Tasks {
    /// What this request may become, or has to. The error is that of a caller who wants a task where there is none.
    pub(crate) fn of<R: Request>(client: &Client, peer: &Peer, params: &R::Params) -> Result<Option<Self>, Error> {
        if R::METHOD.may_ask_back_in(peer.revision) {
            return Ok(are_taken(client).then_some(Self::Extension));
        }
        let Subject::Tool { name, as_task } = R::subject(params) else { return Ok(None) };
        if !are_fetched(peer) {
            return Ok(None);
        }
        let runs = peer.server_capabilities.tasks.as_ref().is_some_and(|tasks| tasks.covers("tools", "call"));
        match client.inner.cache().tool(name).map(|tool| tool.task_support()) {
            Some(TaskSupport::Required) if runs => Ok(Some(Self::Experiment)),
            Some(TaskSupport::Optional) | None if runs && as_task => Ok(Some(Self::Experiment)),
            _ if as_task => Err(Error::unsupported(format!("the server does not run the tool `{name}` as a task"))),
            _ => Ok(None),
        }
    }

    /// The text of parameters that say so, where the client decides.
    pub(crate) fn ask_for<R: Request>(self, text: Box<str>, params: &R::Params) -> Result<Box<str>, Error> {
        match R::subject(params) {
            Subject::Tool { as_task: false, .. } if self == Self::Experiment => {
                let task = JsonObject::from_iter([("task".to_owned(), Value::Object(JsonObject::new()))]);
                with_members(&text, task)
            }
            _ => Ok(text),
        }
    }

    /// The task that this answer begins, if it does.
    pub(crate) fn begun_by(self, text: &str) -> Option<Task> {
        match self {
            Self::Extension => match AnyResult::<JsonObject>::from_json(text) {
                Ok(AnyResult::Task(created)) => Some(created.task),
                _ => None,
            },
            // One that has its result at once gives that.
            Self::Experiment => serde_json::from_str(text).ok().map(|created: CreateTaskResult| created.task),
        }
    }
}

/// Whether the client has said that it takes tasks for results.
fn are_taken(client: &Client) -> bool {
    client.inner.connection.opener.capabilities.has_extension(TASKS_EXTENSION)
}

/// Whether the results of tasks are fetched there, if there are tasks.
pub(crate) fn are_fetched(peer: &Peer) -> bool {
    Method::GetTaskPayload.from_client_in(peer.revision)
}

/// Follows a task to its end. Dropping this has it cancelled, whether it has been polled or not.
pub(crate) fn follow(
    client: Client,
    tasks: Tasks,
    method: Method,
    task: Task,
    timeout: Option<Duration>,
) -> impl Future<Output = Result<JsonObject, Error>> {
    let entry = client.inner.connection.opener.followed.enter(&task.task_id);
    let answered = AnsweredKeys::default();
    let mut following = TaskFollower { client, tasks, method, task, timeout, entry, answered, over: false };
    async move { following.until_the_end().await }
}

struct TaskFollower {
    client: Client,
    tasks: Tasks,
    method: Method,
    task: Task,
    /// How long to wait for each answer.
    timeout: Option<Duration>,
    entry: TaskEntry,
    answered: AnsweredKeys,
    /// The task has ended.
    over: bool,
}

impl TaskFollower {
    async fn until_the_end(&mut self) -> Result<JsonObject, Error> {
        loop {
            // One that was over when it began can be asked at once.
            if !self.task.status.is_final() {
                self.pause().await;
            }
            let params = TaskParams::new(&self.task.task_id);
            let asked = self.client.call::<request::GetTask>(params).timeout(self.timeout).await;
            // Whatever went wrong with asking says nothing about the task.
            let DetailedTask { task, input_requests, result, error, .. } =
                asked.map_err(Error::with_outcome_unknown)?;
            if task.task_id != self.task.task_id {
                let other =
                    format!("asked of the task {:?}, the server speaks of {:?}", self.task.task_id, task.task_id);
                return Err(Error::unreadable(Method::GetTask, other));
            }
            self.task.poll_interval_ms = task.poll_interval_ms.or(self.task.poll_interval_ms);
            self.over = task.status.is_final();
            if self.over {
                drop(self.entry.leave());
            }
            match (self.tasks, task.status) {
                (_, TaskStatus::Working) => {}
                (Tasks::Extension, TaskStatus::InputRequired) => {
                    let answered = self.answer(input_requests.unwrap_or_default()).await;
                    answered.map_err(Error::with_outcome_unknown)?;
                }
                // It asks whoever waits for its result. If that is refused, it says once more how it is doing.
                (Tasks::Experiment, TaskStatus::InputRequired) => match self.fetch().await {
                    Err(error) if error.refusal().is_some() => {}
                    fetched => return fetched,
                },
                (Tasks::Extension, TaskStatus::Completed) => {
                    return result.ok_or_else(|| Error::decode(self.method, "the task is completed and has no result"));
                }
                (Tasks::Extension, TaskStatus::Failed) => {
                    let unsaid = || ErrorObject::internal("the task failed, and nobody said why");
                    return Err(Error::refused(self.method, error.unwrap_or_else(unsaid)));
                }
                (Tasks::Experiment, TaskStatus::Completed) => return self.fetch().await,
                (Tasks::Experiment, TaskStatus::Failed) => {
                    let method = self.method;
                    return self.fetch().await.map_err(|error| match error.refusal() {
                        Some(refusal) => Error::refused(method, refusal.clone()),
                        None => error,
                    });
                }
                // How far it had come the server does not say.
                (_, TaskStatus::Cancelled) => return Err(Error::cancelled(Outcome::Unknown)),
            }
        }
    }

    /// The result, when there is one: the server answers when the task has ended.
    async fn fetch(&mut self) -> Result<JsonObject, Error> {
        let fetching = self.client.call::<request::GetTaskPayload>(TaskParams::new(&self.task.task_id)).timeout(None);
        let fetched = fetching.await;
        self.over |= fetched.is_ok();
        // That it cannot be had says nothing about what was done.
        fetched.map_err(Error::with_outcome_unknown)
    }

    /// Answers what was not answered before: the server may show a question for a while after it was.
    async fn answer(&mut self, requests: InputRequests) -> Result<(), Error> {
        let known = |key: &String| self.answered.keys.contains(key) && !mutant!(AnswerTasksAgain);
        let new: InputRequests = requests.into_iter().filter(|(key, _)| !known(key)).collect();
        if new.is_empty() {
            return Ok(());
        }
        self.answered.note(new.keys())?;
        let responses = Questions::put(&self.client.inner.connection.opener.handlers, new)?.await?;
        let params = UpdateTaskParams::new(&self.task.task_id, responses);
        self.client.call::<request::UpdateTask>(params).timeout(self.timeout).await.map(drop)
    }

    /// Waits until it is time to ask, or until the server cannot be asked: that is noticed at once, not a minute later. A connection
    /// takes no more calls before it is closed, if the server does not read the last of what it was told.
    async fn pause(&self) {
        let pace = self.task.poll_interval_ms.map_or(PACE, Duration::from_millis);
        let live = self.client.inner.connection.live();
        let (refuses_calls, closed) = (live.refuses_calls(), live.closed());
        let lost = async move {
            if mutant!(SleepOn) {
                return std::future::pending().await;
            }
            if mutant!(PauseUntilClosed) {
                return wait_until_closed(closed).await;
            }
            wait_until_calls_are_refused(refuses_calls).await;
        };
        unless_stopped(lost, sleep(&**self.client.inner.runtime(), pace.clamp(*PACES.start(), *PACES.end()))).await;
    }
}

/// The keys of what a task asked for and was told.
#[derive(Default)]
struct AnsweredKeys {
    keys: BTreeSet<String>,
    bytes: usize,
}

impl AnsweredKeys {
    /// Takes note of more of them; an error if they are too many.
    fn note<'a>(&mut self, keys: impl Iterator<Item = &'a String>) -> Result<(), Error> {
        for key in keys {
            self.bytes = self.bytes.saturating_add(key.len());
            self.keys.insert(key.clone());
        }
        if self.keys.len() > MOST {
            return Err(Error::unanswerable(format!("the task has asked {MOST} questions, and asks again")));
        }
        if self.bytes > KEY_BYTES {
            return Err(Error::unanswerable(format!(
                "the keys of the task's questions are longer than {KEY_BYTES} bytes"
            )));
        }
        Ok(())
    }
}

/// Has the task cancelled when nobody waits for it any more.
impl Drop for TaskFollower {
    fn drop(&mut self) {
        if let Some(cancelling) = self.entry.leave()
            && !self.over
            && !mutant!(KeepDroppedTasks)
        {
            cancel::cancel(&self.client, &self.task.task_id, cancelling);
        }
    }
}
