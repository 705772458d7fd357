//! What the program does beside calling: it listens to changes, and reads what may be kept.

use std::sync::Arc;

use steadfast::client::Change;
use steadfast::{ResourceContents, SubscriptionFilter};

use super::caller::Caller;
use super::checks::changes::{Heard, own, shared};
use super::script::{Listening, Reading};

impl Caller {
    /// Listens, until the stream ends or the task is cancelled.
    pub(super) fn listen(self: &Arc<Self>, listening: &Listening) {
        let Some(client) = self.client() else { return };
        self.journal.listens(listening);
        let uris = vec![own(listening.number), shared(listening.resource)];
        let mut changes = client.changes(SubscriptionFilter::new().with_resource_subscriptions(uris));
        drop(client);
        let ear = Ear { caller: Arc::clone(self), number: listening.number };
        let listener = self.executor.spawn_scenery(async move {
            while let Some(change) = changes.next().await {
                let heard = match &change {
                    Ok(Change::Listening(_)) => Heard::Listening,
                    Ok(Change::Resource(uri)) => serial(uri).map_or(Heard::Other, Heard::Change),
                    _ => Heard::Other,
                };
                ear.caller.journal.heard(ear.number, &heard, &format!("{change:?}"));
            }
            // Whoever has stopped listening has no client any more.
            drop(changes);
            drop(ear);
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
        self.executor.spawn_scenery(async move {
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

/// The number of a change, from what it is told of.
fn serial(uri: &str) -> Option<u64> {
    uri.rsplit('/').next()?.parse().ok()
}

/// Says when somebody stops listening, also if it is dropped.
struct Ear {
    caller: Arc<Caller>,
    number: u64,
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.caller.journal.stopped_listening(self.number);
        self.caller.left();
    }
}
