//! Somebody else's code, run where handlers run, for tasks beside the drivers: on their thread it would have every connection of
//! the process wait for it (L6).

use std::sync::Arc;
use std::task::Poll;

use tokio::sync::oneshot;

use crate::runtime::handler::task::{drop_quietly, poll_quietly};
use crate::runtime::timeout::unless;
use crate::runtime::{Runtime, TokioRuntime};

/// What the work comes to on the workers; `None` if it panics, or goes with its runtime. Dropping this drops the work, and work
/// that has not begun by then never does.
pub(crate) async fn on_workers<T: Send + 'static>(
    runtime: &Arc<dyn Runtime>,
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    let (mut told, result) = oneshot::channel();
    let workers = Arc::clone(runtime);
    runtime.spawn(Box::pin(async move {
        if told.is_closed() {
            return drop_quietly(work);
        }
        if let Some(Some(done)) = unless(told.closed(), watched(&*workers, work)).await {
            // If nobody waits for it any more, it was for nothing.
            drop_quietly(told.send(done));
        }
    }));
    result.await.ok()
}

/// Polls somebody else's code as a handler is polled: if it blocks its worker, another one takes over what the worker had to
/// look after. `None` if it panics.
pub(crate) async fn watched<T>(runtime: &dyn Runtime, work: impl Future<Output = T> + Send) -> Option<T> {
    let mut work = Box::pin(work);
    let done = std::future::poll_fn(|cx| {
        let _watch = runtime.as_tokio().map(TokioRuntime::watch);
        match poll_quietly(work.as_mut(), cx) {
            Ok(poll) => poll.map(Some),
            Err(_) => Poll::Ready(None),
        }
    })
    .await;
    drop_quietly(work);
    done
}
