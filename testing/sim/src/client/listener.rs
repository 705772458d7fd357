//! What the program does beside calling: it subscribes to changes, and reads resources that may be cached.

use std::sync::Arc;

use steadfast::client::Change;
use steadfast::{ResourceContents, SubscriptionFilter};

use super::caller::Caller;
use super::checks::changes::{StreamItem, own, shared};
use super::script::{Listening, Reading};

impl Caller {
    /// Listens, until the stream ends or the task is cancelled.
    pub(super) fn listen(self: &Arc<Self>, listening: &Listening) {
        let Some(client) = self.client() else { return };
        self.journal.listens(listening);
        let uris = vec![own(listening.number), shared(listening.resource)];
        let mut changes = client.changes(SubscriptionFilter::new().with_resource_subscriptions(uris));
        drop(client);
        let guard = ListenerGuard { caller: Arc::clone(self), number: listening.number };
        let listener = self.executor.spawn_harness_task(async move {
            while let Some(change) = changes.next().await {
                let item = match &change {
                    Ok(Change::Listening(_)) => StreamItem::Listening,
                    Ok(Change::Resource(uri)) => serial(uri).map_or(StreamItem::Other, StreamItem::Change),
                    _ => StreamItem::Other,
                };
                guard.caller.journal.received(guard.number, &item, &format!("{change:?}"));
            }
            // A listener that stops drops its client.
            drop(changes);
            drop(guard);
        });
        self.keep_listener(listener);
    }

    /// Reads a resource.
    pub(super) fn read(self: &Arc<Self>, reading: Reading) {
        let Some(client) = self.client() else { return };
        self.journal.reads(&reading);
        let mut call = client.read_resource(shared(reading.resource)).total_timeout(reading.total);
        if reading.fresh {
            call = call.fresh();
        }
        let pending = call.start();
        drop(client);
        let caller = Arc::clone(self);
        self.executor.spawn_harness_task(async move {
            let ended = pending.await.map_err(|error| (error.kind(), error.outcome()));
            let number = ended.map(|read| match read.contents.first() {
                Some(ResourceContents::Text(text)) => text.text.parse().ok(),
                _ => None,
            });
            caller.journal.read(reading.number, number);
            caller.left();
        });
    }
}

/// The number of a change, from its notification.
fn serial(uri: &str) -> Option<u64> {
    uri.rsplit('/').next()?.parse().ok()
}

/// Records when a listener stops, also if it is dropped.
struct ListenerGuard {
    caller: Arc<Caller>,
    number: u64,
}

impl Drop for ListenerGuard {
    fn drop(&mut self) {
        self.caller.journal.stopped_listening(self.number);
        self.caller.left();
    }
}
