//! Observers of changes in a server: its connections and its notification streams.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::server::tasks::TaskRecord;

/// A change of a server's tools, prompts, resources or MCP tasks.
#[derive(Debug, Clone)]
pub(crate) enum ServerChange<'a> {
    /// The list of tools has changed.
    Tools,
    /// The list of prompts has changed.
    Prompts,
    /// The list of resources or of resource templates has changed.
    Resources,
    /// The contents of the resource at this URI have changed.
    Updated(&'a str),
    /// The MCP task of this record has changed.
    Task(&'a TaskRecord),
}

/// A callback that is called after each change of a list, resource or MCP task of the server. A callback for changes
/// of the server must not block.
pub(crate) type ServerChangeCallback = dyn Fn(&ServerChange<'_>) + Send + Sync;

/// Up to this many watchers, dropped ones are not looked for.
const MIN_PRUNED_WATCHERS: usize = 16;

/// All callbacks that are called after changes of a server's lists, resources and MCP tasks.
#[derive(Default)]
pub(crate) struct ServerChangeWatchers(Mutex<WatcherList>);

#[derive(Default)]
struct WatcherList {
    watchers: Vec<Weak<ServerChangeCallback>>,
    /// The number of watchers that were left when dropped watchers were last removed.
    left_by_last_prune: usize,
}

impl ServerChangeWatchers {
    /// Calls `watcher` after each change of the server, until the last `Arc` of the watcher is dropped.
    pub(crate) fn add(&self, watcher: &Arc<ServerChangeCallback>) {
        let mut list = self.lock();
        // Dropped watchers are removed when the list has doubled: an addition takes constant time on average, however many
        // connections there are, and at most half of the list are dropped watchers.
        if list.watchers.len() >= MIN_PRUNED_WATCHERS.max(2 * list.left_by_last_prune) {
            list.watchers.retain(|watcher| watcher.strong_count() > 0);
            list.left_by_last_prune = list.watchers.len();
        }
        list.watchers.push(Arc::downgrade(watcher));
    }

    /// Calls all watchers.
    pub(crate) fn notify(&self, change: &ServerChange<'_>) {
        // Called without the lock, because a watcher may call methods of the server.
        let watchers: Vec<_> = self.lock().watchers.iter().filter_map(Weak::upgrade).collect();
        for watcher in watchers {
            watcher(change);
        }
    }

    /// The number of watchers, including dropped ones that were not removed yet.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.lock().watchers.len()
    }

    fn lock(&self) -> MutexGuard<'_, WatcherList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_watchers_are_removed_when_the_list_has_doubled() {
        let watchers = ServerChangeWatchers::default();
        let watcher = || -> Arc<ServerChangeCallback> { Arc::new(|_: &ServerChange<'_>| {}) };
        let live: Vec<_> = (0..100).map(|_| watcher()).collect();
        for watcher in &live {
            watchers.add(watcher);
        }
        for _ in 0..10_000 {
            watchers.add(&watcher());
            assert!(watchers.len() <= 2 * live.len() + MIN_PRUNED_WATCHERS, "{}", watchers.len());
        }
        let notified = Arc::new(Mutex::new(0));
        let count = Arc::clone(&notified);
        let last: Arc<ServerChangeCallback> = Arc::new(move |_: &ServerChange<'_>| *count.lock().unwrap() += 1);
        watchers.add(&last);
        watchers.notify(&ServerChange::Tools);
        assert_eq!(*notified.lock().unwrap(), 1);
    }
}
