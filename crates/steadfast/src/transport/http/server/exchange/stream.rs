//! The event stream of one request of 2026-07-28.
//!
//! A spawned task runs the request and hands its messages to the HTTP response, one at a time. So deadlines and a
//! shutdown of the server take effect even if the client does not read the response; unread messages stay queued in the
//! connection, within its limits. Dropping the HTTP response cancels the request.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use steadfast_proto::frame::sse;

use super::ServerHttpExchange;
use crate::runtime::{Runtime, spawn_off_workers};
use crate::transport::http::server::keep_alive::SseKeepAliveTimer;
use crate::transport::http::server::socket::SocketHangupWatcher;

/// The event stream in the HTTP response to one request of 2026-07-28.
pub(crate) struct ServerHttpExchangeStream {
    shared: Arc<SharedServerHttpExchange>,
    /// Messages that were queued before it was decided that the response is an event stream.
    ready: VecDeque<Vec<u8>>,
    runtime: Arc<dyn Runtime>,
    keep_alive_interval: Duration,
    keep_alive: SseKeepAliveTimer,
}

/// The spawned task that runs one request of 2026-07-28.
struct ServerHttpExchangeTask {
    shared: Arc<SharedServerHttpExchange>,
    /// Resolves when the client has disconnected. The HTTP server itself may notice a disconnect late: bytes that it
    /// has not read hide the end of the input, and there may be nothing to write for a long time.
    hangup: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// The state that the HTTP response and the task of the exchange share. The exchange is not dropped while the lock is
/// held, because stopping its handler may take the lock.
struct SharedServerHttpExchange(Mutex<ServerHttpExchangeState>);

struct ServerHttpExchangeState {
    /// The running request; `None` when it has ended, or the client has disconnected.
    running: Option<Box<ServerHttpExchange>>,
    /// The next message of the server, until the HTTP response takes it.
    message: Option<Vec<u8>>,
    /// Wakes the response.
    reader: Option<Waker>,
    /// Wakes the task.
    writer: Option<Waker>,
}

impl SharedServerHttpExchange {
    fn lock(&self) -> MutexGuard<'_, ServerHttpExchangeState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerHttpExchangeStream {
    pub(crate) fn begin(
        running: Box<ServerHttpExchange>,
        ready: VecDeque<Vec<u8>>,
        hangup: Option<SocketHangupWatcher>,
    ) -> Self {
        let (runtime, keep_alive_interval) = (Arc::clone(&running.runtime), running.shared.options.comment_interval);
        let state = ServerHttpExchangeState { running: Some(running), message: None, reader: None, writer: None };
        let shared = Arc::new(SharedServerHttpExchange(Mutex::new(state)));
        let hangup = hangup.map(|hangup| -> Pin<Box<dyn Future<Output = ()> + Send>> { Box::pin(hangup.wait()) });
        let task = ServerHttpExchangeTask { shared: Arc::clone(&shared), hangup };
        spawn_off_workers(&*runtime, task);
        Self { shared, ready, runtime, keep_alive_interval, keep_alive: SseKeepAliveTimer::default() }
    }

    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Poll::Ready(message) = self.poll_message(cx) {
            self.keep_alive.reset();
            return Poll::Ready(message.map(|message| {
                let mut out = Vec::new();
                sse::SseEvent { data: Some(&message), ..sse::SseEvent::default() }.write(&mut out);
                out.into()
            }));
        }
        self.keep_alive.poll(&*self.runtime, self.keep_alive_interval, cx).map(Some)
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        if let Some(message) = self.ready.pop_front() {
            return Poll::Ready(Some(message));
        }
        let mut state = self.shared.lock();
        let message = state.message.take();
        if message.is_none() && state.running.is_some() {
            state.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let writer = state.writer.take();
        drop(state);
        writer.into_iter().for_each(Waker::wake);
        Poll::Ready(message)
    }
}

impl Drop for ServerHttpExchangeStream {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let (running, writer) = (state.running.take(), state.writer.take());
        drop(state);
        drop(running);
        writer.into_iter().for_each(Waker::wake);
    }
}

impl Future for ServerHttpExchangeTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { shared, hangup } = &mut *self;
        let hung_up = hangup.as_mut().is_some_and(|hangup| hangup.as_mut().poll(cx).is_ready());
        let mut guard = shared.lock();
        let state = &mut *guard;
        if hung_up {
            let running = state.running.take();
            state.reader.take().into_iter().for_each(Waker::wake);
            drop(guard);
            // After the lock is released: stopping the handler may take it.
            drop(running);
            return Poll::Ready(());
        }
        loop {
            let Some(running) = &mut state.running else { return Poll::Ready(()) };
            // Woken when the message was taken, or the response was dropped.
            state.writer = Some(cx.waker().clone());
            let full = state.message.is_some();
            let next = if full { running.poll_unread(cx).map(|()| None) } else { running.poll_message(cx) };
            let next = std::task::ready!(next);
            let over = if next.is_none() { state.running.take() } else { None };
            state.message = next.or(state.message.take());
            state.reader.take().into_iter().for_each(Waker::wake);
            if over.is_some() {
                drop(guard);
                drop(over);
                return Poll::Ready(());
            }
        }
    }
}
