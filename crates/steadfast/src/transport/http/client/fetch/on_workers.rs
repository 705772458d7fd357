//! Runs the program's [`TransportFetch`] on the worker threads, like handlers: if it blocks its thread, it must delay
//! only its own request (law L6).

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Response;
use tokio::sync::mpsc;

use super::{TransportFetch, TransportFetchBody, TransportFetchError, TransportFetchFuture, TransportFetchRequest};
use crate::runtime::timeout::unless_stopped;
use crate::runtime::{Runtime, on_workers, poll_as_handler};

/// A [`TransportFetch`] that runs another [`TransportFetch`] on the worker threads.
pub(crate) struct TransportFetchOnWorkerThreads {
    pub(crate) fetch: Arc<dyn TransportFetch>,
    pub(crate) runtime: Arc<dyn Runtime>,
}

impl TransportFetch for TransportFetchOnWorkerThreads {
    fn fetch(&self, request: TransportFetchRequest) -> TransportFetchFuture {
        let (fetch, runtime) = (Arc::clone(&self.fetch), Arc::clone(&self.runtime));
        Box::pin(async move {
            let fetched = on_workers(&runtime, async move { fetch.fetch(request).await }).await;
            let (parts, body) = fetched.unwrap_or_else(|| Err(failed()))?.into_parts();
            let body: Box<dyn TransportFetchBody> = Box::new(WorkerFetchBody::read(&runtime, body));
            Ok(Response::from_parts(parts, body))
        })
    }
}

/// The error of a [`TransportFetch`] that panicked: the server may have seen the request.
fn failed() -> TransportFetchError {
    TransportFetchError::interrupted("the HTTP client panicked, or its runtime shut down")
}

/// The body of an HTTP response that is read on the worker threads. A piece of the body is read only when it is
/// requested: the pieces after it stay with the server.
enum WorkerFetchBody {
    Reading {
        /// Requests one piece of the body.
        requests: mpsc::Sender<()>,
        /// A piece of the body was requested and has not arrived yet.
        requested: bool,
        /// The pieces of the body, then `None` for its end. A channel that is closed without `None` means that reading
        /// the body failed.
        pieces: mpsc::Receiver<Option<BodyChunkResult>>,
    },
    Ended,
}

type BodyChunkResult = Result<Bytes, TransportFetchError>;

impl WorkerFetchBody {
    fn read(runtime: &Arc<dyn Runtime>, mut body: Box<dyn TransportFetchBody>) -> Self {
        let (requests, mut requested) = mpsc::channel(1);
        let (sender, pieces) = mpsc::channel(1);
        let workers = Arc::clone(runtime);
        runtime.spawn(Box::pin(async move {
            // When this ends, it drops the body, which aborts the rest of it.
            while let Some(()) = requested.recv().await {
                let piece = poll_as_handler(&*workers, std::future::poll_fn(|cx| body.poll_chunk(cx)));
                let Some(piece) = unless_stopped(sender.closed(), piece).await else { return };
                if sender.send(piece.unwrap_or_else(|| Some(Err(failed())))).await.is_err() {
                    return;
                }
            }
        }));
        Self::Reading { requests, requested: false, pieces }
    }
}

impl TransportFetchBody for WorkerFetchBody {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<BodyChunkResult>> {
        let Self::Reading { requests, requested, pieces } = self else { return Poll::Ready(None) };
        if !std::mem::replace(requested, true) {
            // The channel has room for one; a reader that is gone is noticed below.
            let _ = requests.try_send(());
        }
        let piece = std::task::ready!(pieces.poll_recv(cx)).unwrap_or_else(|| Some(Err(failed())));
        *requested = false;
        if !matches!(piece, Some(Ok(_))) {
            *self = Self::Ended;
        }
        Poll::Ready(piece)
    }
}
