//! Stores of MCP tasks: a trait for durable stores, and a store in memory.
//!
//! The record of an MCP task has everything that is needed to show the task to a client and to run it again in another
//! process. A record is changed by replacing it, with optimistic concurrency: each record has a version that grows by
//! one with each change.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use steadfast_model::{ClientCapabilities, DetailedTask, Implementation, InputResponses, JsonObject, Revision};

/// The future that the methods of a task store return.
pub type TaskStoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, TaskStoreError>> + Send + 'a>>;

/// The record of an MCP task in a store. A store in another crate can build records, and serialise them with serde:
///
/// ```
/// use steadfast::model::{DetailedTask, Task, TaskStatus};
/// use steadfast::server::tasks::TaskRecord;
///
/// let task = Task::new("t-1", TaskStatus::Working, "2026-07-28T00:00:00Z");
/// let mut record = TaskRecord::new(DetailedTask::new(task), "index");
/// record.owner = Some("ann".to_owned());
/// let json = steadfast::serde_json::to_string(&record)?;
/// let loaded: TaskRecord = steadfast::serde_json::from_str(&json)?;
/// assert_eq!((loaded.id(), loaded.tool.as_str(), loaded.owner.as_deref()), ("t-1", "index", Some("ann")));
/// # Ok::<_, steadfast::serde_json::Error>(())
/// ```
///
/// Members of a record that this version of the library does not know are ignored, and missing members have their
/// defaults: two versions of a server may share a store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskRecord {
    /// The MCP task as clients see it.
    pub task: DetailedTask,
    /// The principal that created the MCP task; only this principal may see the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The name of the tool that the MCP task runs.
    pub tool: String,
    /// The arguments of the `tools/call` that created the MCP task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<JsonObject>,
    /// The protocol revision of the `tools/call` that created the MCP task.
    #[serde(default = "first_revision")]
    pub revision: Revision,
    /// The name and version of the client, which are not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_info: Option<Implementation>,
    /// The capabilities of the client that created the MCP task.
    #[serde(default)]
    pub client_capabilities: ClientCapabilities,
    /// The client's answers to the task's current input requests. The handler runs again when all input requests are
    /// answered.
    #[serde(default)]
    pub input_responses: InputResponses,
    /// The state between two runs of the handler, as JSON text: the answers of the user so far, among other things. The
    /// state of an MCP task never leaves the server, so it is not sealed and does not expire; a reader of the store can
    /// read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// When the record expires, and may be deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<SystemTime>,
    /// The number of changes of the record so far.
    #[serde(default)]
    pub version: u64,
}

impl TaskRecord {
    /// Creates a record of an MCP task that runs this tool, without an owner, without arguments and without an expiry
    /// time.
    pub fn new(task: DetailedTask, tool: impl Into<String>) -> Self {
        Self {
            task,
            owner: None,
            tool: tool.into(),
            arguments: None,
            revision: first_revision(),
            client_info: None,
            client_capabilities: ClientCapabilities::default(),
            input_responses: InputResponses::default(),
            state: None,
            expires_at: None,
            version: 0,
        }
    }

    /// The id of the MCP task.
    pub fn id(&self) -> &str {
        &self.task.task.task_id
    }

    /// Whether the record has expired, and may be deleted.
    pub fn is_expired(&self, now: SystemTime) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }
}

/// The revision of records that have none: the first revision that had tasks as an extension.
fn first_revision() -> Revision {
    Revision::V2026_07_28
}

/// A store for the MCP tasks of a server.
///
/// Implement `TaskStore` to keep MCP tasks in a durable store, such as a database. Every method may be called from
/// several tokio tasks and processes at once.
pub trait TaskStore: Send + Sync + 'static {
    /// Adds a new MCP task to the store. After the returned future completes, [`TaskStore::load`] finds the task,
    /// from every process.
    ///
    /// # Errors
    ///
    /// [`TaskStoreError::Full`] if the maximum number of tasks in the store is reached.
    fn insert(&self, record: TaskRecord) -> TaskStoreFuture<'_, ()>;

    /// Returns the MCP task with that id, if there is one and it has not expired.
    fn load<'a>(&'a self, id: &'a str) -> TaskStoreFuture<'a, Option<TaskRecord>>;

    /// Replaces the record of the same MCP task, if its version is one less than the version of the new record.
    ///
    /// # Errors
    ///
    /// [`TaskStoreError::Conflict`] if the store has no record of the MCP task with the preceding version: another
    /// writer was faster, or the record has expired. After a conflict, load the record again.
    fn replace(&self, record: TaskRecord) -> TaskStoreFuture<'_, ()>;
}

impl<T: TaskStore + ?Sized> TaskStore for Arc<T> {
    fn insert(&self, record: TaskRecord) -> TaskStoreFuture<'_, ()> {
        (**self).insert(record)
    }

    fn load<'a>(&'a self, id: &'a str) -> TaskStoreFuture<'a, Option<TaskRecord>> {
        (**self).load(id)
    }

    fn replace(&self, record: TaskRecord) -> TaskStoreFuture<'_, ()> {
        (**self).replace(record)
    }
}

/// Why an operation of a task store failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum TaskStoreError {
    /// The maximum number of tasks in the store is reached.
    Full,
    /// The record of the task was changed or deleted since it was loaded.
    Conflict,
    /// The store failed.
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

impl fmt::Display for TaskStoreError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => formatter.write_str("task limit reached: try again when a task has expired"),
            Self::Conflict => formatter.write_str("the task was changed or deleted since it was read"),
            Self::Failed(error) => write!(formatter, "task store failed: {error}"),
        }
    }
}

impl std::error::Error for TaskStoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Failed(error) => Some(&**error),
            Self::Full | Self::Conflict => None,
        }
    }
}

/// A task store in memory, which is lost with the process.
#[derive(Debug)]
pub struct MemoryTaskStore {
    max_tasks: usize,
    records: Mutex<HashMap<String, TaskRecord>>,
}

impl Default for MemoryTaskStore {
    fn default() -> Self {
        Self::new(10_000)
    }
}

impl MemoryTaskStore {
    /// Creates a store for at most `max_tasks` tasks. Expired tasks are deleted when the store is full.
    pub fn new(max_tasks: usize) -> Self {
        Self { max_tasks, records: Mutex::default() }
    }

    fn records(&self) -> MutexGuard<'_, HashMap<String, TaskRecord>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn insert_now(&self, record: TaskRecord) -> Result<(), TaskStoreError> {
        let mut records = self.records();
        if records.len() >= self.max_tasks {
            let now = SystemTime::now();
            records.retain(|_, record| !record.is_expired(now));
        }
        if records.len() >= self.max_tasks {
            return Err(TaskStoreError::Full);
        }
        match records.entry(record.id().to_owned()) {
            std::collections::hash_map::Entry::Occupied(_) => Err(TaskStoreError::Conflict),
            std::collections::hash_map::Entry::Vacant(vacant) => {
                vacant.insert(record);
                Ok(())
            }
        }
    }

    fn load_now(&self, id: &str) -> Option<TaskRecord> {
        let mut records = self.records();
        if records.get(id)?.is_expired(SystemTime::now()) {
            records.remove(id);
        }
        records.get(id).cloned()
    }

    fn replace_now(&self, record: TaskRecord) -> Result<(), TaskStoreError> {
        let mut records = self.records();
        let stored = records.get_mut(record.id()).filter(|stored| stored.version + 1 == record.version);
        let stored = stored.filter(|stored| !stored.is_expired(SystemTime::now())).ok_or(TaskStoreError::Conflict)?;
        *stored = record;
        Ok(())
    }
}

impl TaskStore for MemoryTaskStore {
    fn insert(&self, record: TaskRecord) -> TaskStoreFuture<'_, ()> {
        Box::pin(std::future::ready(self.insert_now(record)))
    }

    fn load<'a>(&'a self, id: &'a str) -> TaskStoreFuture<'a, Option<TaskRecord>> {
        Box::pin(std::future::ready(Ok(self.load_now(id))))
    }

    fn replace(&self, record: TaskRecord) -> TaskStoreFuture<'_, ()> {
        Box::pin(std::future::ready(self.replace_now(record)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use steadfast_model::{Task, TaskStatus};

    use super::*;

    fn record(id: &str) -> TaskRecord {
        TaskRecord::new(DetailedTask::new(Task::new(id, TaskStatus::Working, "2026-07-28T00:00:00Z")), "tool")
    }

    #[test]
    fn a_record_is_the_same_after_it_was_stored_as_json() {
        let mut full = record("a");
        full.owner = Some("ann".to_owned());
        full.arguments = serde_json::from_str(r#"{"a":[1,null,"x"]}"#).unwrap();
        full.client_capabilities = serde_json::from_str(r#"{"elicitation":{"form":{}}}"#).unwrap();
        full.input_responses = serde_json::from_str(r#"{"elicit-1":{"action":"accept","content":{"b":2}}}"#).unwrap();
        full.revision = Revision::V2025_11_25;
        full.client_info = Some(Implementation::new("c", "1"));
        full.state = Some("{}".to_owned());
        full.expires_at = Some(SystemTime::UNIX_EPOCH + Duration::new(7, 8));
        full.version = 9;
        full.task.result = serde_json::from_str(r#"{"content":[]}"#).unwrap();
        for record in [record("a"), full] {
            let json = serde_json::to_string(&record).unwrap();
            assert_eq!(serde_json::from_str::<TaskRecord>(&json).unwrap(), record, "{json}");
        }
        let least =
            r#"{"task":{"taskId":"a","status":"working","createdAt":"x","lastUpdatedAt":"x"},"tool":"t","new":1}"#;
        assert_eq!(serde_json::from_str::<TaskRecord>(least).unwrap().id(), "a");
    }

    #[test]
    fn the_second_change_of_one_version_is_a_conflict() {
        let tasks = MemoryTaskStore::default();
        tasks.insert_now(record("a")).unwrap();
        let next = TaskRecord { version: 1, ..tasks.load_now("a").unwrap() };
        tasks.replace_now(next.clone()).unwrap();
        assert!(matches!(tasks.replace_now(next), Err(TaskStoreError::Conflict)));
    }

    #[test]
    fn an_id_can_be_inserted_once() {
        let tasks = MemoryTaskStore::default();
        tasks.insert_now(record("a")).unwrap();
        assert!(matches!(tasks.insert_now(record("a")), Err(TaskStoreError::Conflict)));
    }

    #[test]
    fn expired_tasks_are_deleted_when_the_store_is_full() {
        let tasks = MemoryTaskStore::new(1);
        let past = SystemTime::now() - Duration::from_secs(1);
        tasks.insert_now(TaskRecord { expires_at: Some(past), ..record("a") }).unwrap();
        let late = TaskRecord { version: 1, ..record("a") };
        assert!(matches!(tasks.replace_now(late), Err(TaskStoreError::Conflict)));
        tasks.insert_now(record("b")).unwrap();
        assert!(tasks.load_now("a").is_none() && tasks.load_now("b").is_some());
        assert!(matches!(tasks.insert_now(record("c")), Err(TaskStoreError::Full)));
    }
}
