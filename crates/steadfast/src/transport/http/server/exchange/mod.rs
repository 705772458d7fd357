//! One request of 2026-07-28: the first thing that it says decides how it is answered.

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

pub(crate) use stream::ExchangeStream;

use super::body::HttpBody;
use super::load::Permit;
use super::reply;
use super::service::Shared;
use super::socket::Hangup;
use crate::runtime::{Engine, Exchange, Mailbox, Runtime, Timer};
use crate::server::ServerService;

/// Waits for the first message, and answers with JSON if there is no other. While events are streamed, `hangup` is the end of the
/// client.
pub(crate) async fn answer(mut running: Box<RunningExchange>, hangup: Option<Hangup>) -> Response<HttpBody> {
    let wait = running.shared.options.stream_after;
    let first = poll_fn(|cx| {
        if let Poll::Ready(message) = running.poll_message(cx) {
            return Poll::Ready(Some(message));
        }
        // Nothing to say yet: from here on there is only something to keep open.
        running.poll_timer(cx, wait).map(|()| None)
    })
    .await;
    let mut ready = VecDeque::new();
    match first {
        None => {}
        Some(None) => {
            // A request ends with an answer, so this does not happen; if it did, the client would learn that it did.
            let error = steadfast_model::ErrorObject::internal("the request ended without an answer");
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
    reply::events(HttpBody::exchange(ExchangeStream::begin(running, ready, hangup)))
}

/// An exchange with what it needs while it runs. Dropping it cancels the request.
pub(crate) struct RunningExchange {
    shared: Arc<Shared>,
    runtime: Arc<dyn Runtime>,
    /// It holds its permit until all that it began has ended.
    exchange: Exchange<ServerService, Permit>,
    timer: Option<Box<dyn Timer>>,
    /// Heard of once it has to wait.
    closing: Option<Pin<Box<OwnedNotified>>>,
    told: bool,
}

impl RunningExchange {
    /// Gives an engine of its own the request.
    pub(crate) fn begin(
        shared: Arc<Shared>,
        runtime: Arc<dyn Runtime>,
        principal: Option<&Principal>,
        message: Message<'_>,
        permit: Permit,
    ) -> Self {
        let server = shared.server.clone();
        let service = |mailbox: &Arc<Mailbox>| {
            mailbox.identify(principal);
            ServerService::for_exchange(server)
        };
        let limits = shared.limits.clone();
        let engine = Engine::new(service, Arc::clone(&shared.hello), limits, Arc::clone(&runtime));
        let exchange = Exchange::begin_decoded(engine, message, permit);
        Self { shared, runtime, exchange, timer: None, closing: None, told: false }
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        if let Poll::Ready(message) = self.exchange.poll_next(cx) {
            return Poll::Ready(message);
        }
        if self.hears_closing(cx) { self.exchange.poll_next(cx) } else { Poll::Pending }
    }

    /// Goes on without a way to say anything. Ready if it has ended, or has nothing more to say.
    fn poll_without_sending(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.exchange.poll_without_sending(cx).is_ready() {
            return Poll::Ready(());
        }
        if self.hears_closing(cx) { self.exchange.poll_without_sending(cx) } else { Poll::Pending }
    }

    /// Whether the service has just begun to shut down: then the request knows.
    fn hears_closing(&mut self, cx: &mut Context<'_>) -> bool {
        let hears = !self.told && self.poll_closing(cx).is_ready();
        if hears {
            self.told = true;
            self.closing = None;
            self.exchange.shut_down();
        }
        hears
    }

    fn poll_closing(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let closing = self.closing.get_or_insert_with(|| Box::pin(self.shared.closing.notified()));
        // Registered before the look at the flag, so that nothing falls in between.
        if closing.as_mut().poll(cx).is_ready() || self.shared.closing.is_closing() {
            return Poll::Ready(());
        }
        Poll::Pending
    }

    /// Ready when `wait` has passed since it was first polled.
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
