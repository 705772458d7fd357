//! One request of 2026-07-28: the first thing that it says decides how it is answered.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Response, StatusCode};
use steadfast_proto::envelope::Message;
use steadfast_proto::frame::sse;
use steadfast_proto::http::status;
use tokio::sync::futures::OwnedNotified;

use super::body::HttpBody;
use super::load::Permit;
use super::reply;
use super::service::Shared;
use crate::runtime::{Engine, Exchange, Mailbox, Runtime, Timer};
use crate::server::ServerService;

/// Waits for the first message, and answers with JSON if there is no other.
pub(super) async fn answer(mut running: Box<Running>) -> Response<HttpBody> {
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
    let over = match first {
        None => false,
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
            Poll::Ready(Some(second)) => {
                ready.extend([message, second]);
                false
            }
            Poll::Pending => {
                ready.push_back(message);
                false
            }
        },
    };
    running.timer = None;
    reply::events(HttpBody::exchange(ExchangeStream { running, ready, over }))
}

/// An exchange with what it needs while it runs. Dropping it cancels the request.
pub(super) struct Running {
    shared: Arc<Shared>,
    runtime: Arc<dyn Runtime>,
    exchange: Exchange<ServerService>,
    timer: Option<Box<dyn Timer>>,
    /// Heard of once it has to wait.
    closing: Option<Pin<Box<OwnedNotified>>>,
    told: bool,
    _permit: Permit,
}

impl Running {
    /// Gives an engine of its own the request.
    pub(super) fn begin(
        shared: Arc<Shared>,
        runtime: Arc<dyn Runtime>,
        principal: Option<&str>,
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
        let exchange = Exchange::begin_read(engine, message);
        Self { shared, runtime, exchange, timer: None, closing: None, told: false, _permit: permit }
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        if let Poll::Ready(message) = self.exchange.poll_next(cx) {
            return Poll::Ready(message);
        }
        if !self.told && self.poll_closing(cx).is_ready() {
            self.told = true;
            self.closing = None;
            self.exchange.shut_down();
            return self.exchange.poll_next(cx);
        }
        Poll::Pending
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

/// The events of one request.
pub(super) struct ExchangeStream {
    running: Box<Running>,
    /// Messages that are not written yet.
    ready: VecDeque<Vec<u8>>,
    over: bool,
}

impl ExchangeStream {
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        while !self.over && self.ready.is_empty() {
            match self.running.poll_message(cx) {
                Poll::Ready(Some(message)) => self.ready.push_back(message),
                Poll::Ready(None) => self.over = true,
                Poll::Pending => {
                    let wait = self.running.shared.options.keep_alive;
                    std::task::ready!(self.running.poll_timer(cx, wait));
                    self.running.timer = None;
                    let mut out = Vec::new();
                    sse::write_comment("", &mut out);
                    return Poll::Ready(Some(out.into()));
                }
            }
        }
        self.running.timer = None;
        let message = self.ready.pop_front();
        Poll::Ready(message.map(|message| {
            let mut out = Vec::new();
            sse::Event { data: Some(&message), ..sse::Event::default() }.write(&mut out);
            out.into()
        }))
    }
}
