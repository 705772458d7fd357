//! MCP tasks: calls of tools that go on after their response (the extension `io.modelcontextprotocol/tasks`,
//! 2026-07-28).
//!
//! ```text
//!   working --+--> input_required --> working ...      the handler asks, the client answers with `tasks/update`
//!             +--> completed, failed                   the handler's result, or its protocol error
//!             +--> cancelled                           `tasks/cancel`; or it expired
//! ```
//!
//! An MCP task belongs to its store, not to the connection that created it. The handler of an MCP task runs as it does
//! for any call, in its own exchange: when the handler requests input its run ends, and the handler runs again when all
//! answers have arrived. The state that one run of the handler leaves to the next run is in the record of the task, and
//! exists as long as the task.

mod first_input;
mod notifications;
mod rounds;
mod routes;
mod run;
mod serve;
mod store;
mod timestamp;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use steadfast_model::{
    ClientCapabilities, DetailedTask, ErrorObject, Implementation, InputResponses, JsonObject, Revision, Task,
    TaskStatus,
};

pub use store::{MemoryTaskStore, TaskRecord, TaskStore, TaskStoreError, TaskStoreFuture};

pub(super) use first_input::PreTaskInputHandler;
pub(super) use notifications::TaskChangeNotifier;
pub(super) use rounds::ServerTaskRounds;
pub(super) use routes::{ServerTaskRequestRoutes, ServerTaskSetup, TASK_ROUTES};
pub(super) use serve::{TaskDecision, refuse_unknown_task, task_decision, without_tasks};

use timestamp::timestamp;

use super::subscriptions::watch::{ServerChange, ServerChangeWatchers};

/// Whether calls of a tool run as MCP tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum TaskMode {
    /// Never.
    #[default]
    Never,
    /// A call of the tool becomes an MCP task if the client supports tasks; otherwise the call is answered when it is
    /// done.
    Optional,
    /// A call of the tool always becomes an MCP task: clients without support for tasks are refused.
    Required,
}

/// Where and how long a server stores its MCP tasks.
///
/// ```
/// use std::time::Duration;
/// use steadfast::Server;
/// use steadfast::server::tasks::{MemoryTaskStore, TaskSettings};
///
/// let settings = TaskSettings::new(MemoryTaskStore::new(500)).time_to_live(Duration::from_secs(600));
/// let server = Server::builder("patient", "1.0.0").tasks(settings).build();
/// ```
#[derive(Clone)]
pub struct TaskSettings {
    store: Arc<dyn TaskStore>,
    time_to_live: Option<Duration>,
    poll_interval: Duration,
}

impl Default for TaskSettings {
    fn default() -> Self {
        Self::new(MemoryTaskStore::default())
    }
}

impl TaskSettings {
    /// Creates settings with which a server keeps its MCP tasks in `store`. By default MCP tasks expire after an
    /// hour, and clients are asked to poll once a second.
    pub fn new(store: impl TaskStore) -> Self {
        let (time_to_live, poll_interval) = (Some(Duration::from_secs(60 * 60)), Duration::from_secs(1));
        Self { store: Arc::new(store), time_to_live, poll_interval }
    }

    /// The lifetime of an MCP task after its creation. An expired task is stopped if it still runs, and deleted.
    pub fn time_to_live(mut self, time: Duration) -> Self {
        self.time_to_live = Some(time);
        self
    }

    /// Lets MCP tasks never expire, for stores that delete tasks in another way.
    pub fn never_expire(mut self) -> Self {
        self.time_to_live = None;
        self
    }

    /// The interval at which clients should poll MCP tasks.
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval = interval;
        self
    }
}

impl fmt::Debug for TaskSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("TaskSettings");
        debug
            .field("time_to_live", &self.time_to_live)
            .field("poll_interval", &self.poll_interval)
            .finish_non_exhaustive()
    }
}

/// The maximum number of attempts to change the record of an MCP task, if each attempt conflicts with another writer.
const MAX_CONFLICT_RETRIES: usize = 32;

/// The MCP tasks of a server: where they are stored, when they expire, and which of them run in this process.
pub(crate) struct ServerTasks {
    store: Arc<dyn TaskStore>,
    time_to_live: Option<Duration>,
    poll_interval: Duration,
    /// The watchers that are notified of changes of MCP tasks.
    watchers: Arc<ServerChangeWatchers>,
    /// The MCP tasks that run in this process.
    running: Mutex<HashMap<String, Arc<ServerTaskChangeSignal>>>,
}

/// Wakes an MCP task that runs in this process after its record was changed.
#[derive(Default)]
pub(super) struct ServerTaskChangeSignal {
    changed: tokio::sync::Notify,
}

/// What a server needs to create an MCP task for a `tools/call`: the tool and its arguments, the client, the owner, and the
/// input that came with the call.
pub(crate) struct NewTask {
    pub(crate) tool: String,
    pub(crate) arguments: Option<JsonObject>,
    pub(crate) revision: Revision,
    pub(crate) client_info: Option<Implementation>,
    pub(crate) client: ClientCapabilities,
    pub(crate) owner: Option<String>,
    /// The responses to input requests that the client sent with the call.
    pub(crate) answers: InputResponses,
    /// The request state that came with the client's call, as JSON text.
    pub(crate) state: Option<String>,
}

impl ServerTasks {
    pub(super) fn new(settings: TaskSettings, watchers: Arc<ServerChangeWatchers>) -> Self {
        let TaskSettings { store, time_to_live, poll_interval } = settings;
        Self { store, time_to_live, poll_interval, watchers, running: Mutex::default() }
    }

    /// Creates an MCP task for a `tools/call`, and adds the task to the store. When the returned future completes,
    /// clients can get the task.
    pub(crate) async fn create(&self, new: NewTask) -> Result<TaskRecord, ErrorObject> {
        let now = SystemTime::now();
        let mut task = Task::new(random_id().map_err(ErrorObject::internal)?, TaskStatus::Working, timestamp(now));
        task.ttl_ms = self.time_to_live.and_then(milliseconds);
        task.poll_interval_ms = milliseconds(self.poll_interval);
        let record = TaskRecord {
            task: DetailedTask::new(task),
            owner: new.owner,
            tool: new.tool,
            arguments: new.arguments,
            revision: new.revision,
            client_info: new.client_info,
            client_capabilities: new.client,
            input_responses: new.answers,
            state: new.state,
            expires_at: self.time_to_live.and_then(|time| now.checked_add(time)),
            version: 0,
        };
        self.store.insert(record.clone()).await.map_err(|error| store_error(&error))?;
        Ok(record)
    }

    /// Returns the MCP task with that id, or an error if there is no such task that this owner may see.
    pub(crate) async fn find(&self, id: &str, owner: Option<&str>) -> Result<TaskRecord, ErrorObject> {
        self.load_for_owner(id, owner).await?.ok_or_else(|| task_not_found(id))
    }

    /// Returns the MCP task with that id, if there is such a task that this owner may see.
    async fn load_for_owner(&self, id: &str, owner: Option<&str>) -> Result<Option<TaskRecord>, ErrorObject> {
        let found = self.store.load(id).await.map_err(|error| store_error(&error))?;
        // The task of another owner is treated as missing, so that ids cannot be probed.
        Ok(found.filter(|record| record.owner.as_deref() == owner))
    }

    /// Adds the client's answers to the input requests of an MCP task. Answers without an input request are ignored.
    pub(crate) async fn answer(
        &self,
        id: &str,
        owner: Option<&str>,
        answers: InputResponses,
    ) -> Result<(), ErrorObject> {
        self.find(id, owner).await?;
        self.change(id, |record| {
            let Some(pending) = &mut record.task.input_requests else { return false };
            let mut changed = false;
            // Null is not an answer. If it were accepted, the input would be requested again, under a key that must not
            // be used twice.
            for (key, answer) in answers.as_object().iter().filter(|(_, answer)| !answer.is_null()) {
                if pending.remove(key).is_some() {
                    record.input_responses.as_object_mut().insert(key.clone(), answer.clone());
                    changed = true;
                }
            }
            if pending.is_empty() {
                record.task.input_requests = None;
                record.task.task.status = TaskStatus::Working;
            }
            changed
        })
        .await?;
        self.wake(id);
        Ok(())
    }

    /// Cancels an MCP task, if it has not ended.
    pub(crate) async fn cancel(&self, id: &str, owner: Option<&str>) -> Result<(), ErrorObject> {
        self.find(id, owner).await?;
        self.change(id, |record| {
            record.task.input_requests = None;
            record.task.task.status = TaskStatus::Cancelled;
            true
        })
        .await?;
        self.wake(id);
        Ok(())
    }

    /// Changes the record of an MCP task that has not ended, if `change` returns true. Returns the record that is
    /// stored afterwards; `None` if there is no such task.
    pub(super) async fn change(
        &self,
        id: &str,
        mut change: impl FnMut(&mut TaskRecord) -> bool,
    ) -> Result<Option<TaskRecord>, ErrorObject> {
        for _ in 0..MAX_CONFLICT_RETRIES {
            let Some(mut record) = self.store.load(id).await.map_err(|error| store_error(&error))? else {
                return Ok(None);
            };
            if record.task.task.status.is_final() || !change(&mut record) {
                return Ok(Some(record));
            }
            record.version += 1;
            record.task.task.last_updated_at = timestamp(SystemTime::now());
            match self.store.replace(record.clone()).await {
                Ok(()) => {
                    self.watchers.notify(&ServerChange::Task(&record));
                    return Ok(Some(record));
                }
                Err(TaskStoreError::Conflict) => {}
                Err(error) => return Err(store_error(&error)),
            }
        }
        Err(store_error(&TaskStoreError::Conflict))
    }

    /// Registers an MCP task that starts to run in this process.
    pub(super) fn enter(&self, id: &str) -> Arc<ServerTaskChangeSignal> {
        Arc::clone(self.running().entry(id.to_owned()).or_default())
    }

    /// Removes an MCP task that no longer runs in this process.
    pub(super) fn leave(&self, id: &str) {
        self.running().remove(id);
    }

    fn wake(&self, id: &str) {
        if let Some(control) = self.running().get(id) {
            control.changed.notify_one();
        }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, Arc<ServerTaskChangeSignal>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates an id for an MCP task that cannot be guessed.
fn random_id() -> Result<String, String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| format!("random number generator failed: {error}"))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

fn milliseconds(time: Duration) -> Option<u64> {
    u64::try_from(time.as_millis()).ok()
}

fn task_not_found(id: &str) -> ErrorObject {
    let id = steadfast_model::error::excerpt(id);
    ErrorObject::invalid_params(format!("there is no task `{id}`; it may have expired"))
}

fn store_error(error: &TaskStoreError) -> ErrorObject {
    if let TaskStoreError::Failed(cause) = error {
        tracing::error!(%cause, "task store failed");
        // The cause may contain anything, so it is not sent to the client.
        return ErrorObject::internal("task store failed");
    }
    ErrorObject::internal(error.to_string())
}
