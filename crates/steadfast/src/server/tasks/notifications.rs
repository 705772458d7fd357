//! What a stream of notifications is told of tasks: `notifications/tasks`, each with all that `tasks/get` would say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use steadfast_model::{ErrorObject, Method};

use super::{TaskRecord, Tasks};
use crate::runtime::PendingNotifications;

/// Tells one stream of the tasks that it named, as far as they are its client's.
pub(crate) struct TaskListener {
    named: Vec<String>,
    owner: Option<String>,
    notices: Arc<PendingNotifications>,
    write: Box<WriteParams>,
    /// The version of each task that was told last. Changes may be heard of in another order than they were made in.
    told: Mutex<BTreeMap<String, u64>>,
}

/// Writes the parameters of the notification.
type WriteParams = dyn Fn(&TaskRecord) -> Box<str> + Send + Sync;

impl TaskListener {
    /// For the stream that these notices belong to, of a client that names these tasks.
    pub(crate) fn new(
        named: Vec<String>,
        owner: Option<String>,
        notices: Arc<PendingNotifications>,
        write: impl Fn(&TaskRecord) -> Box<str> + Send + Sync + 'static,
    ) -> Self {
        let mut once = BTreeSet::new();
        let named = named.into_iter().filter(|id| once.insert(id.clone())).collect();
        Self { named, owner, notices, write: Box::new(write), told: Mutex::default() }
    }

    /// Those of the named tasks that there are, and that are the client's, as they are now.
    pub(crate) async fn find(&self, tasks: &Tasks) -> Result<Vec<TaskRecord>, ErrorObject> {
        let mut found = Vec::new();
        for id in &self.named {
            found.extend(tasks.find_if_any(id, self.owner.as_deref()).await?);
        }
        Ok(found)
    }

    /// Tells of a task, unless it is not one of those, or something newer was told.
    pub(crate) fn tell(&self, record: &TaskRecord) {
        if record.owner != self.owner || !self.named.iter().any(|id| id == record.id()) {
            return;
        }
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.get(record.id()).is_some_and(|version| *version >= record.version) {
            return;
        }
        told.insert(record.id().to_owned(), record.version);
        // With the lock held, so that it comes behind what is older.
        self.notices.post_newest(Method::TaskUpdated, record.id(), (self.write)(record));
    }
}
