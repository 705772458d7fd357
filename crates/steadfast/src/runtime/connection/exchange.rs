//! An exchange: one request of revision 2026-07-28 that is served on its own, not on a byte stream, as for HTTP and MCP
//! tasks.
//!
//! An exchange takes one message, and yields notifications and one response, in order. An exchange is a connection of
//! its own that exists as long as the request, so all guarantees for connections hold for an exchange too. Dropping an
//! exchange before its response counts as a hangup of the client: the handler is cancelled, as when a connection
//! closes. The shields and cleanups of a handler that are left after the response or the hangup go on in a spawned
//! task, until they have ended or the drain deadline has passed.

use std::pin::Pin;
use std::task::{Context, Poll};

#[cfg(feature = "http")]
use steadfast_proto::envelope::Message;
use steadfast_proto::mutant;

use super::engine::{ConnectionEngine, InboundDispatcher};

/// Serves one request on a connection of its own, until its response.
pub(crate) struct RequestExchange<S: InboundDispatcher, G: RequestExchangeGuard = ()> {
    /// The engine that serves the request, and the guard; `None` when the exchange has yielded its last message.
    engine: Option<(ConnectionEngine<S>, G)>,
}

/// A value that is dropped when an exchange has ended completely, including the shields and cleanups that go on after
/// its response.
pub(crate) trait RequestExchangeGuard: Send + 'static {
    /// Called with the number of handlers that had not ended when the drain deadline passed.
    fn abandoned(&mut self, _count: usize) {}
}

impl RequestExchangeGuard for () {}

impl<S: InboundDispatcher, G: RequestExchangeGuard> RequestExchange<S, G> {
    /// Starts an exchange: gives a new engine the one message that it is to handle.
    pub(crate) fn begin(mut engine: ConnectionEngine<S>, message: &[u8], guard: G) -> Self {
        engine.connection.serve_single_request();
        engine.connection.handle_message(engine.runtime.now(), message);
        engine.process_events();
        Self { engine: Some((engine, guard)) }
    }

    /// Starts an exchange: gives a new engine the one message that it is to handle, which is already decoded.
    #[cfg(feature = "http")]
    pub(crate) fn begin_decoded(mut engine: ConnectionEngine<S>, message: Message<'_>, guard: G) -> Self {
        engine.connection.serve_single_request();
        engine.connection.handle_read(engine.runtime.now(), message);
        engine.process_events();
        Self { engine: Some((engine, guard)) }
    }

    /// Returns the next message to the peer, or `None` after the last message, which is the response if there is one.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        let Some((engine, _)) = &mut self.engine else { return Poll::Ready(None) };
        loop {
            let progressed = engine.run_commands_and_timer(cx);
            engine.process_events();
            if let Some(transmit) = engine.connection.poll_transmit() {
                engine.connection.handle_flushed();
                return Poll::Ready(Some(transmit.body));
            }
            if engine.connection.open_requests() == 0 || engine.ended().is_some() {
                self.finish();
                return Poll::Ready(None);
            }
            if !engine.prepare_sleep(cx, 0, progressed) {
                return Poll::Pending;
            }
        }
    }

    /// Runs the exchange while its messages cannot be sent. Ready when the handler has ended and no message is left.
    #[cfg(feature = "http")]
    pub(crate) fn poll_without_sending(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some((engine, _)) = &mut self.engine else { return Poll::Ready(()) };
        loop {
            let progressed = engine.run_commands_and_timer(cx);
            engine.process_events();
            let nothing_left = engine.connection.open_requests() == 0 && engine.connection.waiting_bytes() == 0;
            if nothing_left || engine.ended().is_some() {
                self.finish();
                return Poll::Ready(());
            }
            if !engine.prepare_sleep(cx, 0, progressed) {
                return Poll::Pending;
            }
        }
    }

    /// Called when the server shuts down: the handler may still respond during the drain window, and is cancelled after
    /// that.
    #[cfg(feature = "http")]
    pub(crate) fn shut_down(&mut self) {
        if let Some((engine, _)) = &mut self.engine {
            engine.connection.shut_down(engine.runtime.now());
            engine.process_events();
        }
    }

    /// Ends the connection of the exchange: at once if no handler, shield or cleanup runs, otherwise in a spawned task.
    fn finish(&mut self) {
        let Some((mut engine, guard)) = self.engine.take() else { return };
        engine.connection.handle_write_failed(engine.runtime.now());
        engine.process_events();
        if engine.ended().is_none() {
            let runtime = std::sync::Arc::clone(&engine.runtime);
            runtime.spawn(Box::pin(HandlerDrainTask { engine, guard }));
        }
    }
}

impl<S: InboundDispatcher, G: RequestExchangeGuard> Drop for RequestExchange<S, G> {
    fn drop(&mut self) {
        if mutant!(IgnoreHangup)
            && let Some((engine, guard)) = self.engine.take()
        {
            let runtime = std::sync::Arc::clone(&engine.runtime);
            return runtime.spawn(Box::pin(HandlerDrainTask { engine, guard }));
        }
        self.finish();
    }
}

/// Runs what is left of an exchange after its end: shields, cleanups, handlers that have not stopped yet.
struct HandlerDrainTask<S, G> {
    engine: ConnectionEngine<S>,
    guard: G,
}

// Nothing in it is pinned in place.
impl<S, G> Unpin for HandlerDrainTask<S, G> {}

impl<S: InboundDispatcher, G: RequestExchangeGuard> Future for HandlerDrainTask<S, G> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { engine, guard } = &mut *self;
        loop {
            let progressed = engine.run_commands_and_timer(cx);
            engine.process_events();
            if let Some(ended) = engine.ended() {
                guard.abandoned(ended.abandoned);
                return Poll::Ready(());
            }
            if !engine.prepare_sleep(cx, 0, progressed) {
                return Poll::Pending;
            }
        }
    }
}
