//! The events of one request of 2026-07-28.
//!
//! A task serves the request, and the response takes from it what there is to say, one message at a time. So deadlines are
//! kept and a shutdown is heard although a client does not read; what waits for it is held by the connection, within its
//! limits. Dropping the response cancels the request.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use steadfast_proto::frame::sse;

use super::RunningExchange;
use crate::runtime::{Runtime, spawn_off_workers};
use crate::transport::http::server::keep_alive::KeepAlive;
use crate::transport::http::server::socket::Hangup;

/// The end of the response.
pub(crate) struct ExchangeStream {
    between: Arc<SharedExchange>,
    /// Messages from before there was a stream.
    ready: VecDeque<Vec<u8>>,
    runtime: Arc<dyn Runtime>,
    silence: Duration,
    keep_alive: KeepAlive,
}

/// The end of the request.
struct Serving {
    between: Arc<SharedExchange>,
    /// The client is gone, though whoever writes to it has not found out: bytes that nobody has read hide it, and there may be
    /// nothing to write for long.
    hangup: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// What both ends share. Nothing that is called with the lock held runs the other end.
struct SharedExchange(Mutex<CallSlot>);

struct CallSlot {
    /// Gone when it is over, or its client is.
    running: Option<Box<RunningExchange>>,
    message: Option<Vec<u8>>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl SharedExchange {
    fn lock(&self) -> MutexGuard<'_, CallSlot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ExchangeStream {
    pub(crate) fn begin(running: Box<RunningExchange>, ready: VecDeque<Vec<u8>>, hangup: Option<Hangup>) -> Self {
        let (runtime, silence) = (Arc::clone(&running.runtime), running.shared.options.keep_alive);
        let slot = CallSlot { running: Some(running), message: None, reader: None, writer: None };
        let between = Arc::new(SharedExchange(Mutex::new(slot)));
        let hangup = hangup.map(|hangup| -> Pin<Box<dyn Future<Output = ()> + Send>> { Box::pin(hangup.wait()) });
        let serving = Serving { between: Arc::clone(&between), hangup };
        spawn_off_workers(&*runtime, serving);
        Self { between, ready, runtime, silence, keep_alive: KeepAlive::default() }
    }

    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Poll::Ready(message) = self.poll_message(cx) {
            self.keep_alive.spoken();
            return Poll::Ready(message.map(|message| {
                let mut out = Vec::new();
                sse::Event { data: Some(&message), ..sse::Event::default() }.write(&mut out);
                out.into()
            }));
        }
        self.keep_alive.poll(&*self.runtime, self.silence, cx).map(Some)
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        if let Some(message) = self.ready.pop_front() {
            return Poll::Ready(Some(message));
        }
        let mut slot = self.between.lock();
        let message = slot.message.take();
        if message.is_none() && slot.running.is_some() {
            slot.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let writer = slot.writer.take();
        drop(slot);
        writer.into_iter().for_each(Waker::wake);
        Poll::Ready(message)
    }
}

impl Drop for ExchangeStream {
    fn drop(&mut self) {
        let mut slot = self.between.lock();
        let (running, writer) = (slot.running.take(), slot.writer.take());
        drop(slot);
        drop(running);
        writer.into_iter().for_each(Waker::wake);
    }
}

impl Future for Serving {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { between, hangup } = &mut *self;
        let hung_up = hangup.as_mut().is_some_and(|hangup| hangup.as_mut().poll(cx).is_ready());
        let mut guard = between.lock();
        let slot = &mut *guard;
        if hung_up {
            let running = slot.running.take();
            slot.reader.take().into_iter().for_each(Waker::wake);
            drop(guard);
            // Outside of the lock: what it ends may want it.
            drop(running);
            return Poll::Ready(());
        }
        loop {
            let Some(running) = &mut slot.running else { return Poll::Ready(()) };
            // Woken when there is room, or nobody to make any.
            slot.writer = Some(cx.waker().clone());
            let full = slot.message.is_some();
            let said = if full { running.poll_without_sending(cx).map(|()| None) } else { running.poll_message(cx) };
            let said = std::task::ready!(said);
            let over = if said.is_none() { slot.running.take() } else { None };
            slot.message = said.or(slot.message.take());
            slot.reader.take().into_iter().for_each(Waker::wake);
            if over.is_some() {
                drop(guard);
                drop(over);
                return Poll::Ready(());
            }
        }
    }
}
