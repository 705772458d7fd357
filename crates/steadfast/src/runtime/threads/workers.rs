//! Runs user code on the workers on behalf of tasks on an I/O loop. On the loop, code that blocks would delay every connection of
//! the process (L6).

#[cfg(feature = "http-client")]
use std::sync::Arc;
use std::task::Poll;

#[cfg(feature = "http-client")]
use tokio::sync::oneshot;

use crate::runtime::handler::catch_panic::{drop_catching_panics, poll_catching_panics};
#[cfg(feature = "http-client")]
use crate::runtime::timeout::unless_stopped;
use crate::runtime::{Runtime, TokioRuntime};

/// Runs a future on the workers and returns its output; `None` if it panics or its runtime shuts down. Dropping the
/// call of `on_workers` also drops the future that runs on the workers. If that future has not been polled by then,
/// it is never polled.
#[cfg(feature = "http-client")]
pub(crate) async fn on_workers<T: Send + 'static>(
    runtime: &Arc<dyn Runtime>,
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    let (mut sender, output) = oneshot::channel();
    let workers = Arc::clone(runtime);
    runtime.spawn(Box::pin(async move {
        if sender.is_closed() {
            return drop_catching_panics(work);
        }
        if let Some(Some(done)) = unless_stopped(sender.closed(), poll_as_handler(&*workers, work)).await {
            // The send fails if the caller was dropped meanwhile; then the output is dropped here.
            drop_catching_panics(sender.send(done));
        }
    }));
    output.await.ok()
}

/// Polls user code as a handler is polled: if it blocks its worker, the watchdog has another worker take over timers
/// and I/O. Returns `None` if the user code panics.
pub(crate) async fn poll_as_handler<T>(runtime: &dyn Runtime, work: impl Future<Output = T> + Send) -> Option<T> {
    let mut work = Box::pin(work);
    let done = std::future::poll_fn(|cx| {
        let _guard = runtime.as_tokio().map(TokioRuntime::watch_poll);
        match poll_catching_panics(work.as_mut(), cx) {
            Ok(poll) => poll.map(Some),
            Err(_) => Poll::Ready(None),
        }
    })
    .await;
    drop_catching_panics(work);
    done
}
