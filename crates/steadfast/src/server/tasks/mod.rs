//! Tasks: calls of tools that go on after their answer (the extension `io.modelcontextprotocol/tasks`, 2026-07-28).
//!
//! ```text
//!   working --+--> input_required --> working ...      the handler asks, the client answers with `tasks/update`
//!             +--> completed, failed                   the handler's result, or its protocol error
//!             +--> cancelled                           `tasks/cancel`; or it expired
//! ```
//!
//! A task belongs to its store, not to the connection that made it. The handler runs as it does for any call, in an exchange
//! of its own: when it asks for input its run ends, and it is run again when all answers are there.

mod first_input;
mod notifications;
mod run;
mod serve;
mod store;
mod timestamp;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use steadfast_model::{ClientCapabilities, DetailedTask, ErrorObject, InputResponses, JsonObject, Task, TaskStatus};

pub use store::{MemoryTasks, StoreError, Stored, TaskRecord, TaskStore};

pub(super) use first_input::AskFirst;
pub(super) use notifications::TaskListener;
pub(super) use serve::{TaskDecision, begin, serve, task_decision, without_tasks};

use run::run;
use timestamp::timestamp;

use super::subscriptions::watch::{Change, Watchers};

/// Whether calls of a tool run as tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum TaskSupport {
    /// Never.
    #[default]
    Never,
    /// If the client knows tasks; else the call is answered when it is done.
    Optional,
    /// Always: clients that do not know tasks are refused.
    Required,
}

/// How a server keeps its tasks.
///
/// ```
/// use std::time::Duration;
/// use steadfast::Server;
/// use steadfast::server::tasks::{MemoryTasks, TaskSettings};
///
/// let settings = TaskSettings::new(MemoryTasks::new(500)).time_to_live(Duration::from_secs(600));
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
        Self::new(MemoryTasks::default())
    }
}

impl TaskSettings {
    /// In that store, for an hour, with clients asking once a second.
    pub fn new(store: impl TaskStore) -> Self {
        let (time_to_live, poll_interval) = (Some(Duration::from_secs(60 * 60)), Duration::from_secs(1));
        Self { store: Arc::new(store), time_to_live, poll_interval }
    }

    /// How long a task is kept after it was made; then it is stopped if it still runs, and forgotten.
    pub fn time_to_live(mut self, time: Duration) -> Self {
        self.time_to_live = Some(time);
        self
    }

    /// Tasks are kept for good: for stores that are cleared in another way.
    pub fn for_good(mut self) -> Self {
        self.time_to_live = None;
        self
    }

    /// How often clients are told to ask.
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

/// How often a change is tried again when somebody else was faster.
const TRIES: usize = 32;

/// The tasks of a server.
pub(crate) struct Tasks {
    store: Arc<dyn TaskStore>,
    time_to_live: Option<Duration>,
    poll_interval: Duration,
    /// Those who want to know of changes.
    watchers: Arc<Watchers>,
    /// Those that run in this process.
    running: Mutex<HashMap<String, Arc<Control>>>,
}

/// The hand on a task that runs in this process.
#[derive(Default)]
pub(super) struct Control {
    changed: tokio::sync::Notify,
}

/// What is asked of a new task.
pub(crate) struct NewTask {
    pub(crate) tool: String,
    pub(crate) arguments: Option<JsonObject>,
    pub(crate) client: ClientCapabilities,
    pub(crate) owner: Option<String>,
    /// Answers that came with the call.
    pub(crate) answers: InputResponses,
    pub(crate) state: Option<String>,
}

impl Tasks {
    pub(super) fn new(settings: TaskSettings, watchers: Arc<Watchers>) -> Self {
        let TaskSettings { store, time_to_live, poll_interval } = settings;
        Self { store, time_to_live, poll_interval, watchers, running: Mutex::default() }
    }

    /// Makes a task. When this is done it can be asked for.
    pub(crate) async fn create(&self, new: NewTask) -> Result<TaskRecord, ErrorObject> {
        let now = SystemTime::now();
        let mut task = Task::new(new_id().map_err(ErrorObject::internal)?, TaskStatus::Working, timestamp(now));
        task.ttl_ms = self.time_to_live.and_then(milliseconds);
        task.poll_interval_ms = milliseconds(self.poll_interval);
        let record = TaskRecord {
            shown: DetailedTask::new(task),
            owner: new.owner,
            tool: new.tool,
            arguments: new.arguments,
            client: new.client,
            answers: new.answers,
            state: new.state,
            expires: self.time_to_live.and_then(|time| now.checked_add(time)),
            version: 0,
        };
        self.store.insert(record.clone()).await.map_err(|error| refusal(&error))?;
        Ok(record)
    }

    /// The task of that name, if this owner may see it.
    pub(crate) async fn find(&self, id: &str, owner: Option<&str>) -> Result<TaskRecord, ErrorObject> {
        self.find_if_any(id, owner).await?.ok_or_else(|| unknown(id))
    }

    /// The task of that name, if there is one that this owner may see.
    async fn find_if_any(&self, id: &str, owner: Option<&str>) -> Result<Option<TaskRecord>, ErrorObject> {
        let found = self.store.load(id).await.map_err(|error| refusal(&error))?;
        // Somebody else's is as good as none: nobody learns which names exist.
        Ok(found.filter(|record| record.owner.as_deref() == owner))
    }

    /// Takes answers for what the task asks. Those that nobody asked for are ignored.
    pub(crate) async fn answer(
        &self,
        id: &str,
        owner: Option<&str>,
        answers: InputResponses,
    ) -> Result<(), ErrorObject> {
        self.find(id, owner).await?;
        self.change(id, |record| {
            let Some(asked) = &mut record.shown.input_requests else { return false };
            let mut taken = false;
            // Null is no answer. Taken as one, it would be asked for again, under a key that must not be used twice.
            for (key, answer) in answers.0.iter().filter(|(_, answer)| !answer.is_null()) {
                if asked.remove(key).is_some() {
                    record.answers.0.insert(key.clone(), answer.clone());
                    taken = true;
                }
            }
            if asked.is_empty() {
                record.shown.input_requests = None;
                record.shown.task.status = TaskStatus::Working;
            }
            taken
        })
        .await?;
        self.nudge(id);
        Ok(())
    }

    /// Gives the task up, if it has not ended.
    pub(crate) async fn cancel(&self, id: &str, owner: Option<&str>) -> Result<(), ErrorObject> {
        self.find(id, owner).await?;
        self.change(id, |record| {
            record.shown.input_requests = None;
            record.shown.task.status = TaskStatus::Cancelled;
            true
        })
        .await?;
        self.nudge(id);
        Ok(())
    }

    /// Changes a task that has not ended, if `change` says that it did. Gives what is kept then.
    pub(super) async fn change(
        &self,
        id: &str,
        mut change: impl FnMut(&mut TaskRecord) -> bool,
    ) -> Result<Option<TaskRecord>, ErrorObject> {
        for _ in 0..TRIES {
            let Some(mut record) = self.store.load(id).await.map_err(|error| refusal(&error))? else { return Ok(None) };
            if record.shown.task.status.is_final() || !change(&mut record) {
                return Ok(Some(record));
            }
            record.version += 1;
            record.shown.task.last_updated_at = timestamp(SystemTime::now());
            match self.store.replace(record.clone()).await {
                Ok(()) => {
                    self.watchers.tell(&Change::Task(&record));
                    return Ok(Some(record));
                }
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(refusal(&error)),
            }
        }
        Err(refusal(&StoreError::Conflict))
    }

    /// A task begins to run in this process.
    pub(super) fn enter(&self, id: &str) -> Arc<Control> {
        Arc::clone(self.running().entry(id.to_owned()).or_default())
    }

    /// It runs no more.
    pub(super) fn leave(&self, id: &str) {
        self.running().remove(id);
    }

    fn nudge(&self, id: &str) {
        if let Some(control) = self.running().get(id) {
            control.changed.notify_one();
        }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, Arc<Control>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A name that nobody can guess.
fn new_id() -> Result<String, String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| format!("the system gives no random numbers: {error}"))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

fn milliseconds(time: Duration) -> Option<u64> {
    u64::try_from(time.as_millis()).ok()
}

fn unknown(id: &str) -> ErrorObject {
    let id = steadfast_model::error::excerpt(id);
    ErrorObject::invalid_params(format!("there is no task `{id}`; it may have expired"))
}

fn refusal(error: &StoreError) -> ErrorObject {
    if let StoreError::Failed(cause) = error {
        tracing::error!(%cause, "the store of tasks does not work");
        // What it says may hold anything.
        return ErrorObject::internal("the store of tasks does not work");
    }
    ErrorObject::internal(error.to_string())
}
