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

use super::engine::{Engine, Service};

/// One request, until its answer.
pub(crate) struct Exchange<S: Service> {
    /// Gone when it is over.
    engine: Option<Engine<S>>,
}

impl<S: Service> Exchange<S> {
    /// Gives a new engine its one message.
    pub(crate) fn begin(mut engine: Engine<S>, message: &[u8]) -> Self {
        engine.connection.carry_one_exchange();
        engine.connection.handle_message(engine.runtime.now(), message);
        engine.act();
        Self { engine: Some(engine) }
    }

    /// The same for a message that was read already.
    #[cfg(feature = "http")]
    pub(crate) fn begin_read(mut engine: Engine<S>, message: Message<'_>) -> Self {
        engine.connection.carry_one_exchange();
        engine.connection.handle_read(engine.runtime.now(), message);
        engine.act();
        Self { engine: Some(engine) }
    }

    /// The next message to the peer; `None` when the answer, or whatever there was, is out.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        let Some(engine) = &mut self.engine else { return Poll::Ready(None) };
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

    /// The server shuts down: the handler has the drain window to answer, and is answered for then.
    #[cfg(feature = "http")]
    pub(crate) fn shut_down(&mut self) {
        if let Some(engine) = &mut self.engine {
            engine.connection.shut_down(engine.runtime.now());
            engine.act();
        }
    }

    /// Ends the connection: at once if nothing runs, else in a task of its own.
    fn finish(&mut self) {
        let Some(mut engine) = self.engine.take() else { return };
        engine.connection.handle_write_failed(engine.runtime.now());
        engine.act();
        if engine.ended().is_none() {
            let runtime = std::sync::Arc::clone(&engine.runtime);
            runtime.spawn(Box::pin(Remainder { engine }));
        }
    }
}

impl<S: Service> Drop for Exchange<S> {
    fn drop(&mut self) {
        self.finish();
    }
}

/// What goes on behind an exchange.
struct Remainder<S> {
    engine: Engine<S>,
}

// Nothing in it is pinned in place.
impl<S> Unpin for Remainder<S> {}

impl<S: Service> Future for Remainder<S> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let engine = &mut self.engine;
        loop {
            let progressed = engine.turn(cx);
            engine.act();
            if engine.ended().is_some() {
                return Poll::Ready(());
            }
            if !engine.rest(cx, 0, progressed) {
                return Poll::Pending;
            }
        }
    }
}
