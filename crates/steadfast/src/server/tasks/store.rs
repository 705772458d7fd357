//! Where tasks are kept: a trait made for durable stores, and one in memory.
//!
//! A record is everything that is needed to show a task to a client and to run it again in another process. It is changed
//! by replacing it, and only if nobody else has meanwhile: each record has a version that grows by one with each change.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use steadfast_model::{ClientCapabilities, DetailedTask, InputResponses, JsonObject};

/// What a store gives back when it is done.
pub type Stored<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A task as it is kept.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskRecord {
    /// What clients see of it.
    pub shown: DetailedTask,
    /// Who made it; only they may see it.
    pub owner: Option<String>,
    /// The tool that it runs.
    pub tool: String,
    /// With these arguments.
    pub arguments: Option<JsonObject>,
    /// What its client can do.
    pub client: ClientCapabilities,
    /// Answers that came for what it asks now; it goes on when there is one for each.
    pub answers: InputResponses,
    /// What it keeps from one run to the next, sealed.
    pub state: Option<String>,
    /// When it may be forgotten.
    pub expires: Option<SystemTime>,
    /// How often it was changed.
    pub version: u64,
}

impl TaskRecord {
    /// The name of the task.
    pub fn id(&self) -> &str {
        &self.shown.task.task_id
    }

    /// Whether it may be forgotten by now.
    pub fn is_expired(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

/// Keeps tasks.
///
/// Implement it to keep them somewhere durable. Every method may be called from several tasks and processes at once.
pub trait TaskStore: Send + Sync + 'static {
    /// Keeps a new task. When this is done, [`TaskStore::load`] finds it, from every process.
    ///
    /// # Errors
    ///
    /// [`StoreError::Full`] if there are as many as there may be.
    fn insert(&self, record: TaskRecord) -> Stored<'_, ()>;

    /// The task of that name, if there is one and it has not expired.
    fn load<'a>(&'a self, id: &'a str) -> Stored<'a, Option<TaskRecord>>;

    /// Puts a record in the place of the one before it: the one with the version that is one less.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if there is none of that version: somebody was faster, or it has expired. Load it again.
    fn replace(&self, record: TaskRecord) -> Stored<'_, ()>;
}

/// Why a store could not do it.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// There are as many tasks as there may be.
    Full,
    /// The record was changed, or is gone.
    Conflict,
    /// The store does not work.
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

impl fmt::Display for StoreError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => {
                formatter.write_str("there are as many tasks as there may be; try again when one has expired")
            }
            Self::Conflict => formatter.write_str("the task was changed meanwhile, or is gone"),
            Self::Failed(error) => write!(formatter, "the store of tasks does not work: {error}"),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Failed(error) => Some(&**error),
            Self::Full | Self::Conflict => None,
        }
    }
}

/// Tasks in memory: gone with the process.
#[derive(Debug)]
pub struct MemoryTasks {
    most: usize,
    records: Mutex<HashMap<String, TaskRecord>>,
}

impl Default for MemoryTasks {
    fn default() -> Self {
        Self::new(10_000)
    }
}

impl MemoryTasks {
    /// Room for that many tasks. Those that have expired make room for others.
    pub fn new(most: usize) -> Self {
        Self { most, records: Mutex::default() }
    }

    fn records(&self) -> MutexGuard<'_, HashMap<String, TaskRecord>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn insert_now(&self, record: TaskRecord) -> Result<(), StoreError> {
        let mut records = self.records();
        if records.len() >= self.most {
            let now = SystemTime::now();
            records.retain(|_, kept| !kept.is_expired(now));
        }
        if records.len() >= self.most {
            return Err(StoreError::Full);
        }
        match records.entry(record.id().to_owned()) {
            std::collections::hash_map::Entry::Occupied(_) => Err(StoreError::Conflict),
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

    fn replace_now(&self, record: TaskRecord) -> Result<(), StoreError> {
        let mut records = self.records();
        let kept = records.get_mut(record.id()).filter(|kept| kept.version + 1 == record.version);
        let kept = kept.filter(|kept| !kept.is_expired(SystemTime::now())).ok_or(StoreError::Conflict)?;
        *kept = record;
        Ok(())
    }
}

impl TaskStore for MemoryTasks {
    fn insert(&self, record: TaskRecord) -> Stored<'_, ()> {
        Box::pin(std::future::ready(self.insert_now(record)))
    }

    fn load<'a>(&'a self, id: &'a str) -> Stored<'a, Option<TaskRecord>> {
        Box::pin(std::future::ready(Ok(self.load_now(id))))
    }

    fn replace(&self, record: TaskRecord) -> Stored<'_, ()> {
        Box::pin(std::future::ready(self.replace_now(record)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use steadfast_model::{Task, TaskStatus};

    use super::*;

    fn record(id: &str) -> TaskRecord {
        TaskRecord {
            shown: DetailedTask::new(Task::new(id, TaskStatus::Working, "2026-07-28T00:00:00Z")),
            owner: None,
            tool: "tool".to_owned(),
            arguments: None,
            client: ClientCapabilities::new(),
            answers: InputResponses::default(),
            state: None,
            expires: None,
            version: 0,
        }
    }

    #[test]
    fn of_two_changes_to_one_version_the_second_is_refused() {
        let tasks = MemoryTasks::default();
        tasks.insert_now(record("a")).unwrap();
        let next = TaskRecord { version: 1, ..tasks.load_now("a").unwrap() };
        tasks.replace_now(next.clone()).unwrap();
        assert!(matches!(tasks.replace_now(next), Err(StoreError::Conflict)));
    }

    #[test]
    fn a_name_is_given_once() {
        let tasks = MemoryTasks::default();
        tasks.insert_now(record("a")).unwrap();
        assert!(matches!(tasks.insert_now(record("a")), Err(StoreError::Conflict)));
    }

    #[test]
    fn what_has_expired_is_gone_and_makes_room() {
        let tasks = MemoryTasks::new(1);
        let past = SystemTime::now() - Duration::from_secs(1);
        tasks.insert_now(TaskRecord { expires: Some(past), ..record("a") }).unwrap();
        let late = TaskRecord { version: 1, ..record("a") };
        assert!(matches!(tasks.replace_now(late), Err(StoreError::Conflict)));
        tasks.insert_now(record("b")).unwrap();
        assert!(tasks.load_now("a").is_none() && tasks.load_now("b").is_some());
        assert!(matches!(tasks.insert_now(record("c")), Err(StoreError::Full)));
    }
}
