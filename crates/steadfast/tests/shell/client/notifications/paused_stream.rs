//! A change stream that pauses after its connection was lost.

use std::task::{Context as Polling, Poll};

use steadfast::client::{NegotiationMode, ReconnectPolicy};
use steadfast::runtime::{Runtime, RuntimeTask, Timer, TokioRuntime};
use steadfast::{ErrorKind, Moment, SubscriptionFilter};

use crate::http::client::{events, modern, raw};
use crate::*;

/// Reports when a timer is set for longer than anything takes here.
struct WatchedRuntime {
    tokio: TokioRuntime,
    waits: Signal,
}

impl Runtime for WatchedRuntime {
    fn now(&self) -> Moment {
        self.tokio.now()
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(WatchedTimer {
            timer: self.tokio.timer(),
            far: false,
            late: self.now() + LONG / 3,
            waits: self.waits.clone(),
        })
    }

    fn spawn(&self, task: RuntimeTask) {
        self.tokio.spawn(task);
    }

    fn spawn_thread(&self, job: Box<dyn FnOnce() + Send>) {
        self.tokio.spawn_thread(job);
    }
}

struct WatchedTimer {
    timer: Box<dyn Timer>,
    late: Moment,
    far: bool,
    waits: Signal,
}

impl Timer for WatchedTimer {
    fn reset(&mut self, when: Option<Moment>) {
        self.far = when.is_some_and(|when| when > self.late);
        self.timer.reset(when);
    }

    fn poll(&mut self, cx: &mut Polling<'_>) -> Poll<()> {
        if std::mem::take(&mut self.far) {
            self.waits.set();
        }
        self.timer.poll(cx)
    }
}

const LONG: Duration = Duration::from_secs(200);

/// L5: a stream of changes that waits before it asks again ends with its client, and not when it has waited.
#[tokio::test]
async fn a_change_stream_that_pauses_ends_with_its_client() {
    let (url, _) = raw(|_, request| modern(request, || events(""))).await;
    let policy = ReconnectPolicy::default().first_pause(LONG).longest_pause(LONG);
    let runtime = Arc::new(WatchedRuntime { tokio: TokioRuntime::current().unwrap(), waits: Signal::default() });
    let pauses = runtime.waits.clone();
    let connecting = Client::connect(&*url).negotiation(NegotiationMode::Stateless).reconnect(policy).runtime(runtime);
    let client = soon(connecting.into_future()).await.unwrap();
    let mut changes = client.changes(SubscriptionFilter::new().with_tools_list_changed(true));
    let heard = tokio::spawn(async move { changes.next().await });
    soon(pauses.wait()).await;
    soon(client.close()).await;
    let ended = soon(heard).await.unwrap();
    assert!(matches!(&ended, Some(Err(error)) if error.kind() == ErrorKind::Closed), "{ended:?}");
}
