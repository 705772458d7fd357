//! The body of a response, as the client reads it: in pieces, late, and not always to its end.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use steadfast::transport::http::{TransportFetchBody, TransportFetchError};

use super::streams::{Read, State};
use crate::client::journal::{Fault, Journal};
use crate::executor::{Executor, Sleep};
use crate::observation::message::Id;

pub(super) struct Body {
    executor: Executor,
    journal: Arc<Journal>,
    state: Arc<Mutex<State>>,
    stream: usize,
    /// The event, and the place in it.
    place: (usize, usize),
    /// So many bytes are left.
    cut: Option<usize>,
    clean: bool,
    waits: Option<Sleep>,
    gone: RequestGuard,
}

/// Held by the task that waits for the response to a request, until it is dropped.
pub(super) struct RequestGuard {
    journal: Arc<Journal>,
    pub(super) id: Option<Id>,
}

impl RequestGuard {
    pub(super) fn new(journal: &Arc<Journal>, id: Option<Id>) -> Self {
        journal.facts().requesting += 1;
        Self { journal: Arc::clone(journal), id }
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.journal.facts().requesting -= 1;
        if let Some(id) = &self.id {
            self.journal.given_up(id);
        }
    }
}

impl Body {
    pub(super) fn new(
        executor: Executor,
        journal: Arc<Journal>,
        state: Arc<Mutex<State>>,
        stream: usize,
        from: usize,
        gone: RequestGuard,
    ) -> Self {
        let (cut, clean) = lock(&state).cut(stream, from > 0);
        Self { executor, journal, state, stream, place: (from, 0), cut, clean, waits: None, gone }
    }

    fn end(&self) -> Poll<Option<Result<Bytes, TransportFetchError>>> {
        self.journal.fault(self.gone.id.as_ref(), Fault::Broken);
        Poll::Ready(if self.clean { None } else { Some(Err(TransportFetchError::interrupted("cut"))) })
    }
}

impl TransportFetchBody for Body {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, TransportFetchError>>> {
        if let Some(waits) = &mut self.waits {
            std::task::ready!(Pin::new(waits).poll(cx));
            self.waits = None;
        }
        if self.cut == Some(0) || lock(&self.state).down {
            return self.end();
        }
        let most = self.cut.unwrap_or(usize::MAX);
        let mut state = lock(&self.state);
        let read = state.read(&mut self.place, most, self.stream, cx);
        let nap = state.random.chance(20).then(|| state.random.delay(Duration::from_millis(30)));
        drop(state);
        match read {
            Read::Bytes(bytes) => {
                self.cut = self.cut.map(|cut| cut.saturating_sub(bytes.len()));
                self.waits = nap.map(|nap| self.executor.sleep(nap));
                Poll::Ready(Some(Ok(bytes.into())))
            }
            Read::Nothing => Poll::Pending,
            Read::End => Poll::Ready(None),
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
