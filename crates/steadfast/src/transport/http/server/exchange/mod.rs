//! One request of 2026-07-28: its first messages decide whether the HTTP response is JSON or an event stream.

mod stream;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Response, StatusCode};
use steadfast_model::Principal;
use steadfast_proto::envelope::Message;
use steadfast_proto::http::status;
use tokio::sync::futures::OwnedNotified;

pub(crate) use stream::ServerHttpExchangeStream;

use super::body::HttpServiceBody;
use super::load::ServerLoadPermit;
use super::reply;
use super::service::HttpServiceState;
use super::socket::SocketHangupWatcher;
use crate::runtime::{ConnectionEngine, DriverMailbox, RequestExchange, Runtime, Timer};
use crate::server::ServerDispatcher;

/// Responds to a POST of 2026-07-28 with JSON if the JSON-RPC response is the only message, and with an event stream
/// otherwise or if the response takes long. While events are streamed, `hangup` reports that the client has
/// disconnected.
pub(crate) async fn respond(
    mut running: Box<ServerHttpExchange>,
    hangup: Option<SocketHangupWatcher>,
) -> Response<HttpServiceBody> {
    let wait = running.shared.options.stream_after;
    let first = poll_fn(|cx| {
        if let Poll::Ready(message) = running.poll_message(cx) {
            return Poll::Ready(Some(message));
        }
        // No message so far: after this time the response becomes an event stream, which comments can keep open.
        running.poll_timer(cx, wait).map(|()| None)
    })
    .await;
    let mut ready = VecDeque::new();
    match first {
        None => {}
        Some(None) => {
            // Every request ends with a response, so this does not happen; if it did, the client would get this error.
            let error = steadfast_model::ErrorObject::internal("the request ended without a response");
            return reply::error(StatusCode::INTERNAL_SERVER_ERROR, None, &error);
        }
        Some(Some(message)) => match poll_fn(|cx| Poll::Ready(running.poll_message(cx))).await {
            Poll::Ready(None) => {
                let status = StatusCode::from_u16(status::of_answer(&message)).unwrap_or(StatusCode::OK);
                return reply::json(status, message);
            }
            Poll::Ready(Some(second)) => ready.extend([message, second]),
            Poll::Pending => ready.push_back(message),
        },
    }
    running.timer = None;
    reply::events(HttpServiceBody::exchange(ServerHttpExchangeStream::begin(running, ready, hangup)))
}

/// One request of 2026-07-28 while the server runs it. Dropping the `ServerHttpExchange` cancels the request.
pub(crate) struct ServerHttpExchange {
    shared: Arc<HttpServiceState>,
    runtime: Arc<dyn Runtime>,
    /// Runs the request, and holds its load permit until its handler and all cleanups have ended.
    exchange: RequestExchange<ServerDispatcher, ServerLoadPermit>,
    timer: Option<Box<dyn Timer>>,
    /// Completes when the HTTP service shuts down. The future that waits for the shutdown is created when the
    /// exchange is first polled and has no message.
    closing: Option<Pin<Box<OwnedNotified>>>,
    /// The exchange was shut down, because the HTTP service is shutting down.
    shut_down: bool,
}

impl ServerHttpExchange {
    /// Begins a request that belongs to no session: it gets a protocol engine of its own.
    pub(crate) fn begin(
        shared: Arc<HttpServiceState>,
        runtime: Arc<dyn Runtime>,
        principal: Option<&Principal>,
        message: Message<'_>,
        permit: ServerLoadPermit,
    ) -> Self {
        let server = shared.server.clone();
        let service = |mailbox: &Arc<DriverMailbox>| {
            mailbox.identify(principal);
            ServerDispatcher::for_exchange(server)
        };
        let limits = shared.limits.clone();
        let engine = ConnectionEngine::new(service, Arc::clone(&shared.hello), limits, Arc::clone(&runtime));
        let exchange = RequestExchange::begin_decoded(engine, message, permit);
        Self { shared, runtime, exchange, timer: None, closing: None, shut_down: false }
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        if let Poll::Ready(message) = self.exchange.poll_next(cx) {
            return Poll::Ready(message);
        }
        if self.shuts_down(cx) { self.exchange.poll_next(cx) } else { Poll::Pending }
    }

    /// Runs the request while the client does not read its response. Ready when nothing is left: the
    /// request has ended and no message of it waits, or the connection has ended.
    fn poll_unread(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.exchange.poll_without_sending(cx).is_ready() {
            return Poll::Ready(());
        }
        if self.shuts_down(cx) { self.exchange.poll_without_sending(cx) } else { Poll::Pending }
    }

    /// Shuts the exchange of the request down if the HTTP service has just begun to shut down. Returns whether the
    /// shutdown has just begun.
    fn shuts_down(&mut self, cx: &mut Context<'_>) -> bool {
        let begins = !self.shut_down && self.poll_closing(cx).is_ready();
        if begins {
            self.shut_down = true;
            self.closing = None;
            self.exchange.shut_down();
        }
        begins
    }

    fn poll_closing(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let closing = self.closing.get_or_insert_with(|| Box::pin(self.shared.closing.notified()));
        // Registered before the flag is read, so that a shutdown in between is not missed.
        if closing.as_mut().poll(cx).is_ready() || self.shared.closing.is_closing() {
            return Poll::Ready(());
        }
        Poll::Pending
    }

    /// Ready when `wait` has passed since the first poll.
    fn poll_timer(&mut self, cx: &mut Context<'_>, wait: std::time::Duration) -> Poll<()> {
        let runtime = &self.runtime;
        let timer = self.timer.get_or_insert_with(|| {
            let mut timer = runtime.timer();
            timer.reset(Some(runtime.now() + wait));
            timer
        });
        timer.poll(cx)
    }
}
