//! An exchange: one request of 2026-07-28 without a stream of bytes around it, as HTTP and tasks have them.
//!
//! One message goes in; notifications and one answer come out, in order. The exchange is a connection of its own that lives
//! as long as the request does, so every law holds of it. Who drops it before the answer has hung up: the handler is stopped
//! as when any connection closes. What is left of a handler then, or behind its answer (shields, cleanups), goes on as a
//! task until it has ended or the drain deadline has come.

use std::pin::Pin;
use std::task::{Context, Poll};

#[cfg(feature = "http")]
use steadfast_proto::envelope::Message;
use steadfast_proto::mutant;

use super::engine::{Engine, Service};

/// One request, until its answer.
pub(crate) struct Exchange<S: Service, K: ExchangeGuard = ()> {
    /// Gone when it is over.
    engine: Option<(Engine<S>, K)>,
}

/// What is kept until all of an exchange has ended, also what goes on behind its answer.
pub(crate) trait ExchangeGuard: Send + 'static {
    /// The deadline has come, and so many executions have not ended.
    fn abandoned(&mut self, _count: usize) {}
}

impl ExchangeGuard for () {}

impl<S: Service, K: ExchangeGuard> Exchange<S, K> {
    /// Gives a new engine its one message.
    pub(crate) fn begin(mut engine: Engine<S>, message: &[u8], kept: K) -> Self {
        engine.connection.serve_single_request();
        engine.connection.handle_message(engine.runtime.now(), message);
        engine.act();
        Self { engine: Some((engine, kept)) }
    }

    /// The same for a message that was read already.
    #[cfg(feature = "http")]
    pub(crate) fn begin_read(mut engine: Engine<S>, message: Message<'_>, kept: K) -> Self {
        engine.connection.serve_single_request();
        engine.connection.handle_read(engine.runtime.now(), message);
        engine.act();
        Self { engine: Some((engine, kept)) }
    }

    /// The next message to the peer; `None` when the answer, or whatever there was, is out.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        let Some((engine, _)) = &mut self.engine else { return Poll::Ready(None) };
        loop {
            let progressed = engine.turn(cx);
            engine.act();
            if let Some(transmit) = engine.connection.poll_transmit() {
                engine.connection.handle_flushed();
                return Poll::Ready(Some(transmit.body));
            }
            if engine.connection.open_requests() == 0 || engine.ended().is_some() {
                self.finish();
                return Poll::Ready(None);
            }
            if !engine.rest(cx, 0, progressed) {
                return Poll::Pending;
            }
        }
    }

    /// Goes on while what it has to say cannot be said. Ready when it has ended, or there is nothing left to say.
    #[cfg(feature = "http")]
    pub(crate) fn poll_unheard(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some((engine, _)) = &mut self.engine else { return Poll::Ready(()) };
        loop {
            let progressed = engine.turn(cx);
            engine.act();
            let said_all = engine.connection.open_requests() == 0 && engine.connection.waiting_bytes() == 0;
            if said_all || engine.ended().is_some() {
                self.finish();
                return Poll::Ready(());
            }
            if !engine.rest(cx, 0, progressed) {
                return Poll::Pending;
            }
        }
    }

    /// The server shuts down: the handler has the drain window to answer, and is answered for then.
    #[cfg(feature = "http")]
    pub(crate) fn shut_down(&mut self) {
        if let Some((engine, _)) = &mut self.engine {
            engine.connection.shut_down(engine.runtime.now());
            engine.act();
        }
    }

    /// Ends the connection: at once if nothing runs, else in a task of its own.
    fn finish(&mut self) {
        let Some((mut engine, kept)) = self.engine.take() else { return };
        engine.connection.handle_write_failed(engine.runtime.now());
        engine.act();
        if engine.ended().is_none() {
            let runtime = std::sync::Arc::clone(&engine.runtime);
            runtime.spawn(Box::pin(Remainder { engine, kept }));
        }
    }
}

impl<S: Service, K: ExchangeGuard> Drop for Exchange<S, K> {
    fn drop(&mut self) {
        if mutant!(IgnoreHangup)
            && let Some((engine, kept)) = self.engine.take()
        {
            let runtime = std::sync::Arc::clone(&engine.runtime);
            return runtime.spawn(Box::pin(Remainder { engine, kept }));
        }
        self.finish();
    }
}

/// What goes on behind an exchange.
struct Remainder<S, K> {
    engine: Engine<S>,
    kept: K,
}

// Nothing in it is pinned in place.
impl<S, K> Unpin for Remainder<S, K> {}

impl<S: Service, K: ExchangeGuard> Future for Remainder<S, K> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { engine, kept } = &mut *self;
        loop {
            let progressed = engine.turn(cx);
            engine.act();
            if let Some(ended) = engine.ended() {
                kept.abandoned(ended.abandoned);
                return Poll::Ready(());
            }
            if !engine.rest(cx, 0, progressed) {
                return Poll::Pending;
            }
        }
    }
}
