//! The driver of a client's HTTP connection: one future that owns the protocol engine, and polls the HTTP requests that
//! send its messages.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::HeaderMap;
use steadfast_model::Method;
use steadfast_proto::connection::{CallEnd, ClientOrServerDescription, Limits, Transmit, TransmitKind};
use steadfast_proto::mutant;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::coop;
use tracing::Level;

use super::HttpTarget;
use super::exchange::{HttpClientDriverEvent, MessagePost};
use super::in_flight::HttpInFlightMessages;
use super::in_flight::{HttpClientInFlightRequest, HttpPostDelivery};
#[cfg(feature = "legacy-sse")]
use super::legacy_sse;
use super::mirrored_headers::ClientToolHeaders;
use super::mirrored_headers::mirrored_headers;
use super::shared::ClientHttpRequest;
use super::shared::HttpClientConnection;
#[cfg(feature = "legacy-sse")]
use super::stream::events::SseMessageReader;
use super::stream::server_stream::listen;
use super::task::{HttpClientTaskHandle, HttpClientTasks};
use crate::runtime::{ConnectionCloseReport, ConnectionEngine, DriverMailbox, InboundDispatcher, Runtime, Timer};

/// The capacity of the queue of events that HTTP requests report to the driver. While the event queue is full, further
/// messages of the server stay unread in their sockets.
const EVENT_QUEUE: usize = 64;

/// The maximum number of turns that the driver takes in one poll before it yields to other tasks on its thread. The
/// number of HTTP requests that one poll of the driver polls is limited too: see [`HttpClientTasks`].
const TURNS: usize = 32;

/// How long a client that closes waits until the server has accepted the last messages and the end of the session.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Drives the connection of one client to a server at a URL.
pub(crate) struct HttpClientDriver<S> {
    engine: ConnectionEngine<S>,
    shared: Arc<HttpClientConnection>,
    events: mpsc::Receiver<HttpClientDriverEvent>,
    /// The sender with which HTTP requests report their events to the driver; cloned for each request.
    event_sender: mpsc::Sender<HttpClientDriverEvent>,
    in_flight: HttpInFlightMessages,
    /// While `barrier` is set, the client sends nothing: the server has to receive `notifications/initialized` before
    /// any other message. The barrier resolves when `notifications/initialized` was delivered, or never will be.
    barrier: Option<oneshot::Receiver<()>>,
    /// The GET request that reads the stream of server-initiated messages; over HTTP+SSE, the stream of all messages of
    /// the server.
    server_stream: Option<HttpClientTaskHandle>,
    /// Set while the client's connection closes: how the connection ended, and when to stop waiting for the server.
    closing: Option<(ConnectionCloseReport, Box<dyn Timer>)>,
    /// Events that replace HTTP requests whose futures panicked. The driver handles the event of a panic after all
    /// other events, because those may hold messages that the request had read before.
    panics: VecDeque<HttpClientDriverEvent>,
    /// The HTTP requests of this connection, including the stream of server-initiated messages. The field `tasks` is
    /// declared after the handles of the HTTP requests, so that the handles are dropped first, which aborts the
    /// requests.
    tasks: HttpClientTasks<HttpClientDriverEvent>,
}

impl<S: InboundDispatcher> HttpClientDriver<S> {
    pub(crate) fn new(
        target: HttpTarget,
        tool_headers: Arc<dyn ClientToolHeaders>,
        service: impl FnOnce(&Arc<DriverMailbox>) -> S,
        hello: ClientOrServerDescription,
        limits: Limits,
        runtime: Arc<dyn Runtime>,
    ) -> io::Result<Self> {
        let shared = Arc::new(target.resolve(tool_headers, &limits, Arc::clone(&runtime))?);
        let (event_sender, events) = mpsc::channel(EVENT_QUEUE);
        let mut engine = ConnectionEngine::new(service, hello, limits, runtime);
        engine.track_ended_calls();
        Ok(Self {
            engine,
            shared,
            events,
            event_sender,
            in_flight: HttpInFlightMessages::default(),
            barrier: None,
            server_stream: None,
            closing: None,
            panics: VecDeque::new(),
            tasks: HttpClientTasks::new(),
        })
    }

    /// The mailbox through which commands are sent to the driver of the client's HTTP connection.
    pub(crate) fn mailbox(&self) -> &Arc<DriverMailbox> {
        &self.engine.mailbox
    }

    /// Becomes true when the stream of server-initiated messages is open, or when it is known that it will not be
    /// opened.
    pub(crate) fn receives_notifications(&self) -> watch::Receiver<bool> {
        self.shared.receives_notifications.subscribe()
    }

    /// Becomes true when the connection accepts no more calls.
    pub(crate) fn refuses_calls(&mut self) -> watch::Receiver<bool> {
        self.engine.refuses_calls()
    }

    /// Handles the events that HTTP requests report, unless too much output that the server has caused waits to be
    /// sent. Returns whether any event of an HTTP request was handled.
    fn handle_events(&mut self, cx: &mut Context<'_>) -> bool {
        let mut handled = false;
        while self.wants_input() {
            let Some(event) = self.next_event(cx) else { break };
            handled = true;
            self.handle_event(event);
        }
        handled
    }

    fn next_event(&mut self, cx: &mut Context<'_>) -> Option<HttpClientDriverEvent> {
        match self.events.poll_recv(cx) {
            Poll::Ready(event) => event,
            // Without budget there may be events all the same.
            Poll::Pending if coop::has_budget_remaining() => self.panics.pop_front(),
            Poll::Pending => None,
        }
    }

    fn handle_event(&mut self, event: HttpClientDriverEvent) {
        let now = self.engine.runtime.now();
        match event {
            HttpClientDriverEvent::Message(message) if mutant!(LoseWhatWasRead) && message.len() % 8 == 0 => {}
            HttpClientDriverEvent::Message(message) => self.engine.connection.handle_envelope(now, &message),
            HttpClientDriverEvent::CallEnded(call, end) => self.engine.connection.handle_call_ended(call, end),
            HttpClientDriverEvent::SessionLost if mutant!(KeepLostSession) => {}
            HttpClientDriverEvent::SessionLost => self.engine.connection.handle_peer_gone(now),
            #[cfg(feature = "legacy-sse")]
            HttpClientDriverEvent::LegacyStreamOpened(events) => self.read_legacy_stream(*events),
            #[cfg(feature = "legacy-sse")]
            HttpClientDriverEvent::LegacyStreamEnded => self.engine.connection.handle_end_of_input(now),
            HttpClientDriverEvent::ResponseTail(tail) => {
                let task = self.tasks.push(tail, || None);
                self.in_flight.insert_tail(task);
            }
        }
        self.engine.process_events();
    }

    /// Polls the HTTP requests of the client's connection. Returns whether an HTTP request has ended.
    fn poll_tasks(&mut self, cx: &mut Context<'_>) -> bool {
        let mut ended = false;
        while let Poll::Ready(replacement) = self.tasks.poll(cx) {
            ended = true;
            self.panics.extend(replacement);
        }
        ended
    }

    /// Starts an HTTP request, as a future that the driver polls. If the future panics, the driver handles the event
    /// that `failure` returns.
    fn start(
        &self,
        task: impl Future<Output = ()> + Send + 'static,
        failure: impl FnOnce() -> Option<HttpClientDriverEvent> + Send + 'static,
    ) -> HttpClientTaskHandle {
        let shared = Arc::clone(&self.shared);
        self.tasks.push(task, move || {
            shared.log(Level::ERROR, "a request to the server did not finish", "the HTTP client panicked");
            failure()
        })
    }

    /// Whether the driver accepts events of the HTTP requests. Events are always accepted while the connection drains:
    /// late messages are handled or ignored.
    fn wants_input(&self) -> bool {
        let connection = &self.engine.connection;
        connection.wants_input() || connection.is_draining()
    }

    /// Sends the messages that the connection has queued. Returns whether any queued message was taken from the
    /// connection.
    fn send_queued(&mut self) -> bool {
        let mut sent = false;
        // The connection bounds what stays queued there, and a call that is cancelled there was never sent.
        while self.barrier.is_none() && !self.in_flight.is_full() {
            let Some(transmit) = self.engine.connection.poll_transmit() else { break };
            sent = true;
            // Before the revision is known, only its `_meta` can tell whether a request is a modern one.
            let modern = self.engine.connection.peer().is_none_or(|peer| peer.revision.is_stateless());
            let mirrored = match transmit.kind {
                // Closing the response is the cancellation, and there is no session to cancel anything else in.
                TransmitKind::Cancellation { .. } | TransmitKind::Notification(Method::Cancelled) if modern => continue,
                TransmitKind::Request { method, call, .. } if modern => {
                    match mirrored_headers(method, &transmit.body, &*self.shared.tool_headers) {
                        Ok(mirrored) => mirrored,
                        Err(why) => {
                            self.engine.connection.handle_call_ended(call, CallEnd::Unsendable(why));
                            continue;
                        }
                    }
                }
                _ => None,
            };
            self.post(transmit, mirrored);
        }
        self.engine.connection.handle_flushed();
        sent
    }

    /// Starts the POST that sends a message of the client.
    fn post(&mut self, transmit: Transmit, mirrored: Option<HeaderMap>) {
        let Transmit { body, kind, .. } = transmit;
        let mut delivered = None;
        if kind == TransmitKind::Notification(Method::Initialized) {
            // A server may refuse messages that overtake this one.
            let (sender, barrier) = oneshot::channel();
            (delivered, self.barrier) = (Some(sender), Some(barrier));
            self.shared.session().revision = self.engine.connection.peer().map(|peer| peer.revision);
        }
        let call = kind.call();
        if let Some(call) = call {
            // From here on the server may see it. If it turns out that it cannot have, the task reports that.
            self.engine.connection.handle_call_sent(call);
        }
        let cancelled = match kind {
            TransmitKind::Cancellation { call } => self.in_flight.take_call(call),
            _ => None,
        };
        let follows_request = cancelled.is_some();
        let delivery = HttpPostDelivery::new();
        let post = MessagePost {
            shared: Arc::clone(&self.shared),
            kind,
            mirrored,
            delivery: Arc::clone(&delivery),
            delivered,
            driver: self.event_sender.clone(),
        };
        let failure = post.failure();
        let task = self.start(post.run(body, cancelled), failure);
        match call {
            Some(call) => self.in_flight.insert_call(call, HttpClientInFlightRequest { task, delivery }),
            None if follows_request => self.in_flight.insert_cancellation(task),
            None => self.in_flight.insert_message(task),
        }
    }

    /// Lifts the barrier that holds back all messages, if `notifications/initialized` was delivered. The barrier for
    /// `notifications/initialized` is a channel of its own, not an event: events may not be handled while much output
    /// waits, and no output is sent before the barrier is lifted. Returns whether the barrier for messages was lifted.
    fn poll_barrier(&mut self, cx: &mut Context<'_>) -> bool {
        let delivered = self.barrier.as_mut().is_some_and(|barrier| Pin::new(barrier).poll(cx).is_ready());
        if delivered {
            self.barrier = None;
            self.open_server_stream();
        }
        delivered
    }

    /// Opens the stream of server-initiated messages with a GET request.
    fn open_server_stream(&mut self) {
        if self.server_stream.is_none() && self.shared.session().revision.is_some() {
            let listening = listen(Arc::clone(&self.shared), self.event_sender.clone());
            let shared = Arc::clone(&self.shared);
            // Nothing will be received on it, so nothing may wait for it to open.
            let failure = move || {
                shared.note_receives_notifications();
                None
            };
            self.server_stream = Some(self.start(listening, failure));
        }
    }

    /// Reads the event stream of HTTP+SSE, on which the server sends all its messages.
    #[cfg(feature = "legacy-sse")]
    fn read_legacy_stream(&mut self, events: SseMessageReader) {
        let reading = legacy_sse::read(Arc::clone(&self.shared), events, self.event_sender.clone());
        self.shared.note_receives_notifications();
        self.server_stream = Some(self.start(reading, || Some(HttpClientDriverEvent::LegacyStreamEnded)));
    }

    /// Aborts the HTTP requests of calls that have ended, because nothing awaits their responses. While cancellations
    /// wait in the connection's queue, HTTP requests that are being delivered are not aborted: a cancellation must not
    /// arrive before its request.
    fn abort_ended_calls(&mut self) {
        let (full, now, ended) = (self.in_flight.is_full(), self.engine.runtime.now(), self.engine.take_ended_calls());
        let connection = &self.engine.connection;
        self.in_flight.abort_ended(ended, |call, request| {
            connection.expects_late_response(call)
                || (full && request.is_being_delivered(now))
                || mutant!(ReadDroppedResponses)
        });
    }

    /// Begins to close the client's connection: messages in flight are still delivered, and the session, if there is
    /// one, is ended with DELETE.
    fn close(&mut self, ended: ConnectionCloseReport) {
        self.engine.abandon_all();
        self.in_flight.abort_responses();
        if !self.shared.speaks_legacy_sse() {
            // Over HTTP+SSE the stream is the connection: without it the server would not accept the last messages.
            self.server_stream = None;
        }
        if self.shared.session().id.is_some() {
            let shared = Arc::clone(&self.shared);
            let delete = ClientHttpRequest { method: http::Method::DELETE, ..ClientHttpRequest::default() };
            // The response does not matter: servers may refuse to end sessions, and the server may be gone.
            let deleting = async move { drop(shared.send(delete).await) };
            let task = self.start(deleting, || None);
            self.in_flight.insert_message(task);
        }
        let runtime = &self.engine.runtime;
        let mut timer = runtime.timer();
        timer.reset(Some(runtime.now() + CLOSE_TIMEOUT));
        self.closing = Some((ended, timer));
    }

    /// Ready when the client's last messages were delivered, or the timeout for closing has passed.
    fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<ConnectionCloseReport> {
        let Some((ended, timer)) = &mut self.closing else { return Poll::Pending };
        // First: what follows may use up tokio's budget of this poll.
        if timer.poll(cx).is_ready() {
            return Poll::Ready(*ended);
        }
        let ended = *ended;
        self.poll_tasks(cx);
        // Events have no effect any more; they are taken so that the tasks that send them can end.
        while let Poll::Ready(Some(_)) = self.events.poll_recv(cx) {}
        self.in_flight.reap();
        if self.in_flight.is_delivered() { Poll::Ready(ended) } else { Poll::Pending }
    }
}

// No field is pinned.
impl<S> Unpin for HttpClientDriver<S> {}

impl<S: InboundDispatcher> Future for HttpClientDriver<S> {
    type Output = ConnectionCloseReport;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<ConnectionCloseReport> {
        let driver = &mut *self;
        driver.tasks.begin_poll();
        if driver.closing.is_some() {
            return driver.poll_closed(cx);
        }
        for _ in 0..TURNS {
            let mut progressed = driver.engine.run_commands_and_timer(cx);
            // Before the tasks, which may use up tokio's budget of this poll.
            progressed |= driver.handle_events(cx);
            progressed |= driver.poll_tasks(cx);
            driver.in_flight.reap();
            progressed |= driver.handle_events(cx);
            driver.engine.process_events();
            progressed |= driver.poll_barrier(cx);
            // New tasks have to be polled and reaped too, and sending may have made room for more messages: progress means another turn.
            progressed |= driver.send_queued();
            driver.engine.process_events();
            driver.abort_ended_calls();
            if let Some(ended) = driver.engine.ended() {
                driver.close(ended);
                return driver.poll_closed(cx);
            }
            if !driver.engine.prepare_sleep(cx, 0, progressed) {
                return Poll::Pending;
            }
        }
        // Yields to others on this thread.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
