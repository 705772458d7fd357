//! A call that goes on as a task (2026-07-28, the tasks extension): followed to its end, so that the caller has its result as if
//! it had been answered at once.
//!
//! The server is asked at the pace that it sets. What the task asks for is answered by the client's handlers. A caller that
//! gives the call up has the task cancelled.

use std::collections::BTreeSet;
use std::time::Duration;

use steadfast_model::{
    DetailedTask, InputRequests, JsonObject, Method, TASKS_EXTENSION, Task, TaskParams, TaskStatus, UpdateTaskParams,
    request,
};
use steadfast_proto::mutant;

use super::Client;
use super::link::is_closed;
use super::questions::Questions;
use crate::error::{Error, Outcome};
use crate::runtime::waiting::{sleep, unless};

/// How long to wait before asking, if the server does not say, and whatever it says.
const PACE: Duration = Duration::from_secs(1);
const PACES: std::ops::RangeInclusive<Duration> = Duration::from_millis(20)..=Duration::from_secs(60);

/// How long the server may take to hear that a task is not wanted any more.
const CANCELLING: Duration = Duration::from_secs(10);

/// Whether the client has said that it takes tasks for results.
pub(super) fn are_taken(client: &Client) -> bool {
    client.inner.line.opener.capabilities.has_extension(TASKS_EXTENSION)
}

/// Follows a task to its end. Dropping this has it cancelled.
pub(super) async fn follow(client: Client, method: Method, task: Task) -> Result<JsonObject, Error> {
    Following { client, method, task, answered: BTreeSet::new(), over: false }.until_the_end().await
}

/// Has a task cancelled that nobody waits for.
pub(super) fn cancel(client: &Client, task_id: &str) {
    let call = client.call::<request::CancelTask>(TaskParams::new(task_id));
    let cancel = call.timeout(CANCELLING).total_timeout(CANCELLING).start();
    // Nobody is left to be told how it went.
    client.inner.runtime().spawn(Box::pin(async move { drop(cancel.await) }));
}

struct Following {
    client: Client,
    method: Method,
    task: Task,
    /// The keys of what it asked for and was told.
    answered: BTreeSet<String>,
    /// The task has ended.
    over: bool,
}

impl Following {
    async fn until_the_end(&mut self) -> Result<JsonObject, Error> {
        loop {
            self.pause().await;
            let params = TaskParams::new(&self.task.task_id);
            let asked = self.client.call::<request::GetTask>(params).await;
            // Whatever went wrong with asking says nothing about the task.
            let DetailedTask { task, input_requests, result, error, .. } =
                asked.map_err(Error::with_outcome_unknown)?;
            self.task.poll_interval_ms = task.poll_interval_ms.or(self.task.poll_interval_ms);
            self.over = task.status.is_final();
            match task.status {
                TaskStatus::Working => {}
                TaskStatus::InputRequired => self.answer(input_requests.unwrap_or_default()).await?,
                TaskStatus::Completed => {
                    return result.ok_or_else(|| Error::decode(self.method, "the task is completed and has no result"));
                }
                TaskStatus::Failed => {
                    let unsaid = || steadfast_model::ErrorObject::internal("the task failed, and nobody said why");
                    return Err(Error::refused(self.method, error.unwrap_or_else(unsaid)));
                }
                TaskStatus::Cancelled => return Err(Error::cancelled(Outcome::Answered)),
            }
        }
    }

    /// Answers what was not answered before: the server may show a question for a while after it was.
    async fn answer(&mut self, requests: InputRequests) -> Result<(), Error> {
        let new: InputRequests =
            requests.into_iter().filter(|(key, _)| !self.answered.contains(key) || mutant!(AnswerTasksAgain)).collect();
        if new.is_empty() {
            return Ok(());
        }
        self.answered.extend(new.keys().cloned());
        let responses = Questions::put(&self.client.inner.line.opener.handlers, new)?.await?;
        let params = UpdateTaskParams::new(&self.task.task_id, responses);
        self.client.call::<request::UpdateTask>(params).await.map(drop).map_err(Error::with_outcome_unknown)
    }

    /// Waits until it is time to ask, or until there is nobody to be asked: that is found out then, not a minute later.
    async fn pause(&self) {
        let pace = self.task.poll_interval_ms.map_or(PACE, Duration::from_millis);
        let closed = self.client.inner.line.link().closed();
        let lost = async move {
            if mutant!(SleepOn) {
                return std::future::pending().await;
            }
            is_closed(closed).await;
        };
        unless(lost, sleep(&**self.client.inner.runtime(), pace.clamp(*PACES.start(), *PACES.end()))).await;
    }
}

/// Has the task cancelled when nobody waits for it any more.
impl Drop for Following {
    fn drop(&mut self) {
        if self.over || mutant!(KeepDroppedTasks) {
            return;
        }
        cancel(&self.client, &self.task.task_id);
    }
}
