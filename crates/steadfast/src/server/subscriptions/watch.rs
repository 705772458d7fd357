//! Those who want to know what changes in a server: its connections.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::server::tasks::TaskRecord;

/// What has changed.
#[derive(Debug, Clone)]
pub(crate) enum Change<'a> {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The lists of resources and of their templates.
    Resources,
    /// What the resource at this URI holds.
    Updated(&'a str),
    /// A task, into this.
    Task(&'a TaskRecord),
}

/// Called after each change. It must not block.
pub(crate) type Watcher = dyn Fn(&Change<'_>) + Send + Sync;

/// Everyone who wants to know.
#[derive(Default)]
pub(crate) struct Watchers(Mutex<Vec<Weak<Watcher>>>);

impl Watchers {
    /// Has `watcher` called after each change, for as long as it lives.
    pub(crate) fn add(&self, watcher: &Arc<Watcher>) {
        let mut watchers = self.lock();
        watchers.retain(|watcher| watcher.strong_count() > 0);
        watchers.push(Arc::downgrade(watcher));
    }

    /// Tells them all.
    pub(crate) fn tell(&self, change: &Change<'_>) {
        // Called without the lock, so that a watcher may come back to the server.
        let watchers: Vec<_> = self.lock().iter().filter_map(Weak::upgrade).collect();
        for watcher in watchers {
            watcher(change);
        }
    }

    /// How many there are, dead ones that were not noticed included.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Watcher>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
