//! Requests that are made by the program's own code, where handlers run: it may block its thread, and must have nobody wait for
//! that but its own request (L6).

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Response;
use tokio::sync::mpsc;

use super::{Fetch, FetchBody, FetchError, FetchRequest, Fetching};
use crate::runtime::timeout::unless_stopped;
use crate::runtime::{Runtime, on_workers, poll_as_handler};

/// Makes requests as the program does, on the workers.
pub(crate) struct FetchOnWorkers {
    pub(crate) fetch: Arc<dyn Fetch>,
    pub(crate) runtime: Arc<dyn Runtime>,
}

impl Fetch for FetchOnWorkers {
    fn fetch(&self, request: FetchRequest) -> Fetching {
        let (fetch, runtime) = (Arc::clone(&self.fetch), Arc::clone(&self.runtime));
        Box::pin(async move {
            let made = on_workers(&runtime, async move { fetch.fetch(request).await }).await;
            let (parts, body) = made.unwrap_or_else(|| Err(failed()))?.into_parts();
            let body: Box<dyn FetchBody> = Box::new(Pieces::read(&runtime, body));
            Ok(Response::from_parts(parts, body))
        })
    }
}

/// Nobody knows how far it had come.
fn failed() -> FetchError {
    FetchError::broken("what makes the requests failed unexpectedly")
}

/// A body that is read on the workers, piece by piece as they are asked for: what nobody wants yet is left with the server.
enum Pieces {
    Coming {
        wanted: mpsc::Sender<()>,
        /// One was asked for, and has not come.
        asked: bool,
        /// The end comes too: a reader that is gone is no end.
        coming: mpsc::Receiver<Option<Piece>>,
    },
    Over,
}

type Piece = Result<Bytes, FetchError>;

impl Pieces {
    fn read(runtime: &Arc<dyn Runtime>, mut body: Box<dyn FetchBody>) -> Self {
        let (wanted, mut wants) = mpsc::channel(1);
        let (pieces, coming) = mpsc::channel(1);
        let workers = Arc::clone(runtime);
        runtime.spawn(Box::pin(async move {
            // Dropping the body gives up the rest of it.
            while let Some(()) = wants.recv().await {
                let piece = poll_as_handler(&*workers, std::future::poll_fn(|cx| body.poll_piece(cx)));
                let Some(piece) = unless_stopped(pieces.closed(), piece).await else { return };
                if pieces.send(piece.unwrap_or_else(|| Some(Err(failed())))).await.is_err() {
                    return;
                }
            }
        }));
        Self::Coming { wanted, asked: false, coming }
    }
}

impl FetchBody for Pieces {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Piece>> {
        let Self::Coming { wanted, asked, coming } = self else { return Poll::Ready(None) };
        if !std::mem::replace(asked, true) {
            // There is room for one, and a reader that is gone is noticed below.
            let _ = wanted.try_send(());
        }
        let piece = std::task::ready!(coming.poll_recv(cx)).unwrap_or_else(|| Some(Err(failed())));
        *asked = false;
        if !matches!(piece, Some(Ok(_))) {
            *self = Self::Over;
        }
        Poll::Ready(piece)
    }
}
