//! Runs an MCP task: runs its handler, and runs it again with the input of the client, until the task ends.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use serde_json::json;
use steadfast_model::{ErrorObject, JsonObject, Method, Principal, TaskStatus, meta};
use steadfast_proto::envelope::{self, Message, ResultOrError};

use super::rounds::{ServerTaskRounds, ServerTaskSuspension};
use super::{ServerTaskChangeSignal, ServerTasks, TaskRecord};
use crate::runtime::{RequestExchange, Runtime, Timer};
use crate::server::Server;
use crate::server::dispatch::ServerDispatcher;

/// How often a change is tried that the store fails to make. With the pauses, that is about a quarter of an hour.
const STORE_ATTEMPTS: u32 = 36;

/// The pause after the first failure of the store. Each further pause is twice as long.
const FIRST_STORE_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause between two attempts.
const LONGEST_STORE_PAUSE: Duration = Duration::from_secs(30);

/// Runs the handler of one MCP task.
pub(super) struct ServerTaskRunner {
    pub(super) server: Server,
    pub(super) principal: Option<Principal>,
    pub(super) runtime: Arc<dyn Runtime>,
}

impl ServerTaskRunner {
    /// Runs an MCP task to its end.
    pub(super) async fn run(&self, id: &str) {
        let tasks = self.server.tasks();
        let waker = tasks.enter(id);
        // Also if the store panics.
        let _running = RunningTaskGuard { tasks, id };
        let (mut work, mut expired) = (pin!(self.work(tasks, id, &waker)), pin!(self.expiry(tasks, id)));
        std::future::poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(()),
            // The record has expired; dropping the run stops the handler.
            Poll::Pending => expired.as_mut().poll(cx),
        })
        .await;
    }

    async fn work(&self, tasks: &ServerTasks, id: &str, waker: &ServerTaskChangeSignal) {
        let mut run: Option<ServerTaskRun> = None;
        let mut status_message = StatusMessageThrottle::new(tasks.poll_interval, &self.runtime);
        loop {
            let Some(record) = self.change(tasks, id, |_| false).await else { return };
            match record.task.task.status {
                TaskStatus::Working if run.is_none() => run = Some(self.begin(&record)),
                TaskStatus::Working | TaskStatus::InputRequired => {}
                _ => return,
            }
            drop(record);
            let end = match next(run.as_mut(), waker, &mut status_message).await {
                ServerTaskRunEvent::RecordChanged => continue,
                ServerTaskRunEvent::StatusMessage => None,
                ServerTaskRunEvent::Response(response) => Some(ServerTaskRunEnd::read(run.take(), &response)),
            };
            let message = status_message.take(&*self.runtime);
            let store = |record: &mut TaskRecord| {
                if message.is_some() {
                    record.task.task.status_message.clone_from(&message);
                }
                if let Some(end) = &end {
                    end.store_in(record);
                }
                true
            };
            if end.is_some() {
                if self.change(tasks, id, store).await.is_none() {
                    return;
                }
            } else {
                // A status message that cannot be stored is lost, and nothing else: the log says why.
                let _ = tasks.change(id, store).await;
            }
        }
    }

    /// Changes the record of the MCP task. If the store fails, the change is tried again, with longer and longer pauses: what a
    /// handler has done must not be lost because its store restarts. `None` if there is no such record any more, or if the store
    /// has failed [`STORE_ATTEMPTS`] times. The log says why.
    async fn change(
        &self,
        tasks: &ServerTasks,
        id: &str,
        mut change: impl FnMut(&mut TaskRecord) -> bool,
    ) -> Option<TaskRecord> {
        let mut pause = FIRST_STORE_PAUSE;
        for _ in 1..STORE_ATTEMPTS {
            if let Ok(record) = tasks.change(id, &mut change).await {
                return record;
            }
            self.sleep(pause).await;
            pause = LONGEST_STORE_PAUSE.min(pause * 2);
        }
        tasks.change(id, change).await.ok().flatten()
    }

    async fn sleep(&self, duration: Duration) {
        let mut timer = self.runtime.timer();
        timer.reset(Some(self.runtime.now() + duration));
        std::future::poll_fn(|cx| timer.poll(cx)).await;
    }

    /// Starts one run of the MCP task's handler.
    fn begin(&self, record: &TaskRecord) -> ServerTaskRun {
        let rounds = ServerTaskRounds::new(record, self.server.state_keys().byte_limit());
        let principal = self.principal.as_ref();
        let call = call_of(record);
        let exchange =
            ServerDispatcher::exchange_for_task(&self.server, principal, &self.runtime, &call, Arc::clone(&rounds));
        ServerTaskRun { exchange, rounds }
    }

    /// Completes when the MCP task has expired; never completes if the task does not expire.
    async fn expiry(&self, tasks: &ServerTasks, id: &str) {
        loop {
            let record = match tasks.change(id, |_| false).await {
                Ok(Some(record)) => record,
                Ok(None) => return,
                // That the store fails does not mean that the task has expired.
                Err(_) => {
                    self.sleep(tasks.poll_interval.max(FIRST_STORE_PAUSE)).await;
                    continue;
                }
            };
            let Some(expires) = record.expires_at else { return std::future::pending().await };
            // A store whose clock is behind may still have a record that has expired by this clock, which decides.
            let Some(left) = expires.duration_since(SystemTime::now()).ok().filter(|left| !left.is_zero()) else {
                return;
            };
            self.sleep(left).await;
        }
    }
}

/// Removes an MCP task from the tasks that run in this process.
struct RunningTaskGuard<'a> {
    tasks: &'a ServerTasks,
    id: &'a str,
}

impl Drop for RunningTaskGuard<'_> {
    fn drop(&mut self) {
        self.tasks.leave(self.id);
    }
}

/// One run of the MCP task's handler.
struct ServerTaskRun {
    exchange: RequestExchange<ServerDispatcher>,
    rounds: Arc<ServerTaskRounds>,
}

/// The next event of an MCP task.
enum ServerTaskRunEvent {
    /// The response of the task's handler.
    Response(Vec<u8>),
    /// A status message of the task is due to be stored.
    StatusMessage,
    /// A request of the client has changed the stored record of the task.
    RecordChanged,
}

/// Waits for the next event of the MCP task.
async fn next(
    run: Option<&mut ServerTaskRun>,
    waker: &ServerTaskChangeSignal,
    status_message: &mut StatusMessageThrottle,
) -> ServerTaskRunEvent {
    let mut changed = pin!(waker.changed.notified());
    let mut run = run;
    std::future::poll_fn(|cx| {
        while let Some(ServerTaskRun { exchange, .. }) = run.as_mut() {
            match exchange.poll_next(cx) {
                Poll::Ready(Some(message)) => match envelope::read(&message, usize::MAX) {
                    Ok(Message::Notification { method, params }) => {
                        if method == Method::Progress.name()
                            && let Some(text) = params.get_string("message")
                        {
                            status_message.newest = Some(text.into_owned());
                        }
                    }
                    _ => return Poll::Ready(ServerTaskRunEvent::Response(message)),
                },
                Poll::Ready(None) => run = None,
                Poll::Pending => break,
            }
        }
        if status_message.poll(cx).is_ready() {
            return Poll::Ready(ServerTaskRunEvent::StatusMessage);
        }
        changed.as_mut().poll(cx).map(|()| ServerTaskRunEvent::RecordChanged)
    })
    .await
}

/// The status message of an MCP task, from the progress of its handler. A status message is stored at most once per
/// poll interval: clients do not see more of them, and a store may be slow.
struct StatusMessageThrottle {
    /// Not stored yet.
    newest: Option<String>,
    interval: Duration,
    timer: Box<dyn Timer>,
    /// The timer runs.
    too_early: bool,
}

impl StatusMessageThrottle {
    fn new(interval: Duration, runtime: &Arc<dyn Runtime>) -> Self {
        Self { newest: None, interval, timer: runtime.timer(), too_early: false }
    }

    /// Ready when a status message of the task is due to be written to the task store.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.newest.is_none() {
            return Poll::Pending;
        }
        if self.too_early && self.timer.poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.too_early = false;
        Poll::Ready(())
    }

    /// Takes the newest status message, which the caller stores now.
    fn take(&mut self, runtime: &dyn Runtime) -> Option<String> {
        let message = self.newest.take()?;
        self.timer.reset(Some(runtime.now() + self.interval));
        self.too_early = true;
        Some(message)
    }
}

/// How a run of the MCP task's handler ended.
enum ServerTaskRunEnd {
    /// The handler requested input from the client, and runs again with the answers.
    Suspended(ServerTaskSuspension),
    Completed(JsonObject),
    Failed(ErrorObject),
}

impl ServerTaskRunEnd {
    fn read(run: Option<ServerTaskRun>, response: &[u8]) -> Self {
        if let Some(suspended) = run.and_then(|run| run.rounds.take_suspended()) {
            return Self::Suspended(suspended);
        }
        let failed = || ErrorObject::internal("the task's handler ended without a valid response");
        match envelope::read(response, usize::MAX) {
            Ok(Message::Response { body: ResultOrError::Result(result), .. }) => {
                serde_json::from_str(result).map_or_else(|_| Self::Failed(failed()), Self::Completed)
            }
            Ok(Message::Response { body: ResultOrError::Error(error), .. }) => {
                Self::Failed(serde_json::from_str(error).unwrap_or_else(|_| failed()))
            }
            _ => Self::Failed(failed()),
        }
    }

    fn store_in(&self, record: &mut TaskRecord) {
        let shown = &mut record.task;
        match self {
            Self::Suspended(ServerTaskSuspension { requests, state }) => {
                shown.task.status = TaskStatus::InputRequired;
                shown.input_requests = Some(requests.clone());
                record.state.clone_from(state);
                record.input_responses.as_object_mut().clear();
            }
            Self::Completed(result) => {
                shown.task.status = TaskStatus::Completed;
                shown.result = Some(result.clone());
            }
            Self::Failed(error) => {
                shown.task.status = TaskStatus::Failed;
                shown.task.status_message = Some(error.message.clone().into_owned());
                shown.error = Some(error.clone());
            }
        }
    }
}

/// Encodes the `tools/call` request that a run of the MCP task's handler serves. The client's answers and the state of
/// earlier runs are not part of the request: see [`ServerTaskRounds`].
fn call_of(record: &TaskRecord) -> Vec<u8> {
    let mut params = json!({
        "name": record.tool,
        "_meta": {
            meta::key::PROTOCOL_VERSION: record.revision,
            meta::key::CLIENT_CAPABILITIES: record.client_capabilities,
            "progressToken": "task",
        },
    });
    if let Some(info) = &record.client_info {
        params["_meta"][meta::key::CLIENT_INFO] = json!(info);
    }
    if let Some(arguments) = &record.arguments {
        params["arguments"] = json!(arguments);
    }
    let call = json!({ "jsonrpc": "2.0", "id": "task", "method": Method::CallTool.name(), "params": params });
    call.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use steadfast_model::{DetailedTask, Revision, Task};

    use super::*;

    #[test]
    fn a_task_runs_in_the_revision_of_its_call() {
        let task = Task::new("a", TaskStatus::Working, "2026-07-28T00:00:00Z");
        let mut record = TaskRecord::new(DetailedTask::new(task), "tool");
        for revision in [Revision::V2026_07_28, Revision::V2025_11_25] {
            record.revision = revision;
            let call: serde_json::Value = serde_json::from_slice(&call_of(&record)).unwrap();
            assert_eq!(call["params"]["_meta"][meta::key::PROTOCOL_VERSION], json!(revision));
        }
    }
}
