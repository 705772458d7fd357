//! What tasks ask of a store.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use steadfast::model::TaskStatus;
use steadfast::prelude::*;
use steadfast::server::tasks::{TaskMode, TaskRecord, TaskSettings, TaskStore, TaskStoreError, TaskStoreFuture};

use super::calls::Peer;
use crate::{Signal, soon};

/// A store for one task. Its clock stands still, so for it nothing expires.
#[derive(Clone, Default)]
struct OneTask {
    record: Arc<Mutex<Option<TaskRecord>>>,
    /// How often the task was stored while it worked.
    stored_working: Arc<AtomicUsize>,
    stored: Signal,
}

impl TaskStore for OneTask {
    fn insert(&self, record: TaskRecord) -> TaskStoreFuture<'_, ()> {
        *self.record.lock().unwrap() = Some(record);
        Box::pin(std::future::ready(Ok(())))
    }

    fn load<'a>(&'a self, _: &'a str) -> TaskStoreFuture<'a, Option<TaskRecord>> {
        let record = self.record.lock().unwrap().clone();
        Box::pin(std::future::ready(Ok(record)))
    }

    fn replace(&self, record: TaskRecord) -> TaskStoreFuture<'_, ()> {
        let mut stored = self.record.lock().unwrap();
        let result = if stored.as_ref().is_some_and(|stored| stored.version + 1 == record.version) {
            let working = record.task.task.status == TaskStatus::Working;
            self.stored_working.fetch_add(usize::from(working), Ordering::SeqCst);
            *stored = Some(record);
            self.stored.set();
            Ok(())
        } else {
            Err(TaskStoreError::Conflict)
        };
        Box::pin(std::future::ready(result))
    }
}

/// A store for one task that fails at chosen operations, counted from 1.
#[derive(Clone, Default)]
struct FailingStore {
    inner: OneTask,
    loads: Arc<AtomicUsize>,
    replaces: Arc<AtomicUsize>,
    failing_loads: &'static [usize],
    failing_replaces: &'static [usize],
}

impl TaskStore for FailingStore {
    fn insert(&self, record: TaskRecord) -> TaskStoreFuture<'_, ()> {
        self.inner.insert(record)
    }

    fn load<'a>(&'a self, id: &'a str) -> TaskStoreFuture<'a, Option<TaskRecord>> {
        if self.failing_loads.contains(&(self.loads.fetch_add(1, Ordering::SeqCst) + 1)) {
            return Box::pin(std::future::ready(Err(TaskStoreError::Failed("restarting".into()))));
        }
        self.inner.load(id)
    }

    fn replace(&self, record: TaskRecord) -> TaskStoreFuture<'_, ()> {
        if self.failing_replaces.contains(&(self.replaces.fetch_add(1, Ordering::SeqCst) + 1)) {
            return Box::pin(std::future::ready(Err(TaskStoreError::Failed("restarting".into()))));
        }
        self.inner.replace(record)
    }
}

fn serve(tool: ServerTool, settings: TaskSettings) -> Peer {
    Peer::of(Server::builder("test", "1").tool(tool).tasks(settings).build())
}

#[tokio::test]
async fn a_task_is_stopped_when_it_expires_although_its_store_still_has_it() {
    let dropped = Signal::default();
    let forever = {
        let dropped = dropped.clone();
        ServerTool::new("forever").task(TaskMode::Required).handler(move || {
            let dropped = dropped.on_drop();
            async move {
                let _dropped = dropped;
                std::future::pending::<()>().await;
            }
        })
    };
    let settings = TaskSettings::new(OneTask::default()).time_to_live(Duration::from_millis(50));
    serve(forever, settings).begin("forever", json!({})).await;
    soon(dropped.wait()).await;
}

#[tokio::test]
async fn progress_of_a_task_is_stored_once_per_poll_interval() {
    let store = OneTask::default();
    let reporting = {
        let stored = store.stored.clone();
        ServerTool::new("reporting").task(TaskMode::Required).handler(move |ctx: Context| {
            let stored = stored.clone();
            async move {
                ctx.progress(0.1, "the first");
                stored.wait().await;
                ctx.progress(0.2, "the second");
                // Longer than the core holds progress back.
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
    };
    let settings = TaskSettings::new(store.clone()).poll_interval(Duration::from_secs(3_600));
    let mut peer = serve(reporting, settings);
    let task = peer.begin("reporting", json!({})).await;
    let shown = peer.after(&task, "working").await;
    assert_eq!((&shown["status"], &shown["statusMessage"]), (&json!("completed"), &json!("the second")));
    assert_eq!(store.stored_working.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_store_that_fails_for_a_while_neither_stops_a_task_nor_loses_its_result() {
    for (failing_loads, failing_replaces) in
        [(&[1][..], &[][..]), (&[2], &[]), (&[3], &[]), (&[], &[1]), (&[], &[1, 2])]
    {
        let store = FailingStore { failing_loads, failing_replaces, ..FailingStore::default() };
        let release = Signal::default();
        let tool = {
            let release = release.clone();
            ServerTool::new("once").task(TaskMode::Required).handler(move || {
                let release = release.clone();
                async move { release.wait().await }
            })
        };
        // Its record is looked at directly: the client would load it too.
        let record = Arc::clone(&store.inner.record);
        let loads = Arc::clone(&store.loads);
        serve(tool, TaskSettings::new(store)).begin("once", json!({})).await;
        soon(async {
            while loads.load(Ordering::SeqCst) < 2 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        release.set();
        let is_completed =
            || record.lock().unwrap().as_ref().is_some_and(|record| record.task.task.status == TaskStatus::Completed);
        soon(async {
            while !is_completed() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }
}
