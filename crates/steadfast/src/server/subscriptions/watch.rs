//! Observers of changes in a server: its connections and its notification streams.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::server::tasks::TaskRecord;

/// A change in a server.
#[derive(Debug, Clone)]
pub(crate) enum ServerChange<'a> {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The lists of resources and of their templates.
    Resources,
    /// The contents of the resource at this URI.
    Updated(&'a str),
    /// The task of this record has changed.
    Task(&'a TaskRecord),
}

/// Called after each change of a list, resource or task of the server. It must not block.
pub(crate) type ServerChangeCallback = dyn Fn(&ServerChange<'_>) + Send + Sync;

/// All watchers of a server.
#[derive(Default)]
pub(crate) struct ServerChangeWatchers(Mutex<Vec<Weak<ServerChangeCallback>>>);

impl ServerChangeWatchers {
    /// Has `watcher` called after each change, until the last `Arc` of it is dropped.
    pub(crate) fn add(&self, watcher: &Arc<ServerChangeCallback>) {
        let mut watchers = self.lock();
        watchers.retain(|watcher| watcher.strong_count() > 0);
        watchers.push(Arc::downgrade(watcher));
    }

    /// Calls all watchers.
    pub(crate) fn notify(&self, change: &ServerChange<'_>) {
        // Called without the lock, because a watcher may call methods of the server.
        let watchers: Vec<_> = self.lock().iter().filter_map(Weak::upgrade).collect();
        for watcher in watchers {
            watcher(change);
        }
    }

    /// The number of watchers, including dropped ones that were not removed yet.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<ServerChangeCallback>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
