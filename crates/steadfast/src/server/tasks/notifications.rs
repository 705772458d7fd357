//! The notifications about MCP tasks on one subscription stream: `notifications/tasks`, each with the same content as a
//! `tasks/get` result.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use steadfast_model::{ErrorObject, Method};

use super::{ServerTasks, TaskRecord};
use crate::runtime::OutboundNotifications;

/// Notifies one subscription stream of changes of the MCP tasks that the subscription named, if the tasks belong to its
/// client.
pub(crate) struct TaskChangeNotifier {
    named: Vec<String>,
    owner: Option<String>,
    notifications: Arc<OutboundNotifications>,
    write: Box<TaskNotificationEncoder>,
    /// The last version of each MCP task that was sent. Changes of a task may be observed in another order than they
    /// were made.
    sent_versions: Mutex<BTreeMap<String, u64>>,
}

/// Encodes the parameters of a notification about an MCP task.
type TaskNotificationEncoder = dyn Fn(&TaskRecord) -> Box<str> + Send + Sync;

impl TaskChangeNotifier {
    /// Creates a notifier for one client, about the MCP tasks that the client named when it opened its subscription
    /// stream.
    pub(crate) fn new(
        named: Vec<String>,
        owner: Option<String>,
        notifications: Arc<OutboundNotifications>,
        write: impl Fn(&TaskRecord) -> Box<str> + Send + Sync + 'static,
    ) -> Self {
        let mut seen = BTreeSet::new();
        let named = named.into_iter().filter(|id| seen.insert(id.clone())).collect();
        Self { named, owner, notifications, write: Box::new(write), sent_versions: Mutex::default() }
    }

    /// Returns the current records of the named MCP tasks that exist and belong to the client.
    pub(crate) async fn find(&self, tasks: &ServerTasks) -> Result<Vec<TaskRecord>, ErrorObject> {
        let mut found = Vec::new();
        for id in &self.named {
            found.extend(tasks.load_for_owner(id, self.owner.as_deref()).await?);
        }
        Ok(found)
    }

    /// Queues a notification about an MCP task, unless the subscription did not name the task, the task belongs to
    /// another owner, or the same or a newer version was sent.
    pub(crate) fn notify(&self, record: &TaskRecord) {
        if record.owner != self.owner || !self.named.iter().any(|id| id == record.id()) {
            return;
        }
        let mut sent_versions = self.sent_versions.lock().unwrap_or_else(PoisonError::into_inner);
        if sent_versions.get(record.id()).is_some_and(|version| *version >= record.version) {
            return;
        }
        sent_versions.insert(record.id().to_owned(), record.version);
        // The notification is queued while `sent_versions` is locked, so that notifications about older versions of the task are
        // queued before it.
        self.notifications.post_newest(Method::TaskUpdated, record.id(), (self.write)(record));
    }
}
