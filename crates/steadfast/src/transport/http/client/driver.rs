//! The driver: one future that owns the engine and the tasks that carry its messages.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use steadfast_model::Method;
use steadfast_proto::connection::{CallEnd, Hello, Limits, Transmit};
use steadfast_proto::mutant;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::Level;

use super::HttpTarget;
use super::exchange::{DriverEvent, MessagePost};
use super::in_flight::InFlightCalls;
use super::in_flight::delivery::{Delivery, SentRequest};
#[cfg(feature = "legacy-sse")]
use super::legacy_sse;
use super::outgoing::Outgoing;
use super::request::HttpRequest;
use super::shared::Shared;
#[cfg(feature = "legacy-sse")]
use super::stream::events::Events;
use super::stream::server_stream::listen;
use super::task::RequestTask;
use super::tool_headers::ToolHeaders;
use crate::runtime::{ConnectionEnd, Engine, Mailbox, Runtime, Service, Timer};

/// So many messages of the server's wait to be looked at; those behind them wait in their sockets.
const WAITING: usize = 64;

/// So many messages that want no answer are on their way at once; those behind them wait in the connection.
const MOST_MESSAGES: usize = 64;

/// So many cancellations are on their way at once. A server that has not taken the oldest of them by then does not care.
const MOST_CANCELLATIONS: usize = 1_024;

/// So many responses are read to their end at once behind the answers in them.
const MOST_LINGERING: usize = 16;

/// How many turns a driver takes before it lets another one on its thread have some.
const TURNS: usize = 32;

/// How long the server may take to hear what was said last, and that the session has ended.
const LEAVING: Duration = Duration::from_secs(2);

/// Drives one client of a server at a URL.
pub(crate) struct HttpDriver<S> {
    engine: Engine<S>,
    shared: Arc<Shared>,
    incoming: mpsc::Receiver<DriverEvent>,
    /// For the tasks.
    driver: mpsc::Sender<DriverEvent>,
    /// What is told in the place of tasks that could not. There is one word a task.
    last_words: mpsc::UnboundedReceiver<DriverEvent>,
    last_word: mpsc::UnboundedSender<DriverEvent>,
    /// The calls that are on their way.
    underway: InFlightCalls,
    /// What else is: answers, notifications, and the goodbye. They end by themselves, and are seen to.
    messages: Vec<RequestTask>,
    /// Cancellations, behind the calls that were given up. Nothing waits behind them.
    cancellations: VecDeque<RequestTask>,
    /// A message has to arrive before any other. This ends when it has, or never will.
    held: Option<oneshot::Receiver<()>>,
    /// The stream on which the server speaks by itself; over HTTP+SSE, all that it says.
    listening: Option<RequestTask>,
    lingering: VecDeque<RequestTask>,
    /// How it ended, and how long the server has to hear of it.
    leaving: Option<(ConnectionEnd, Box<dyn Timer>)>,
}

impl<S: Service> HttpDriver<S> {
    pub(crate) fn new(
        target: HttpTarget,
        tool_headers: Arc<dyn ToolHeaders>,
        service: impl FnOnce(&Arc<Mailbox>) -> S,
        hello: Hello,
        limits: Limits,
        runtime: Arc<dyn Runtime>,
    ) -> io::Result<Self> {
        let shared = Arc::new(target.resolve(tool_headers, &limits, Arc::clone(&runtime))?);
        let (driver, incoming) = mpsc::channel(WAITING);
        let (last_word, last_words) = mpsc::unbounded_channel();
        let mut engine = Engine::new(service, hello, limits, runtime);
        engine.track_ended_calls();
        Ok(Self {
            engine,
            shared,
            incoming,
            driver,
            last_words,
            last_word,
            underway: InFlightCalls::default(),
            messages: Vec::new(),
            cancellations: VecDeque::new(),
            held: None,
            listening: None,
            lingering: VecDeque::new(),
            leaving: None,
        })
    }

    /// The way to this driver.
    pub(crate) fn mailbox(&self) -> &Arc<Mailbox> {
        &self.engine.mailbox
    }

    /// Tells when the server is heard whenever it speaks.
    pub(crate) fn audible(&self) -> watch::Receiver<bool> {
        self.shared.audible.subscribe()
    }

    /// Tells when the connection takes no more calls.
    pub(crate) fn refuses_calls(&mut self) -> watch::Receiver<bool> {
        self.engine.refuses_calls()
    }

    /// Takes what the tasks have to tell, unless the server leaves too much of what it caused unread. Returns whether there was
    /// anything.
    fn hear(&mut self, cx: &mut Context<'_>) -> bool {
        let mut heard = false;
        while self.wants_input() {
            let Some(incoming) = self.next_incoming(cx) else { break };
            heard = true;
            let now = self.engine.runtime.now();
            match incoming {
                DriverEvent::Message(message) if mutant!(LoseWhatWasRead) && message.len() % 8 == 0 => {}
                DriverEvent::Message(message) => self.engine.connection.handle_message(now, &message),
                DriverEvent::Ended(call, outcome) => self.engine.connection.handle_call_ended(call, outcome),
                DriverEvent::SessionLost if mutant!(KeepLostSession) => {}
                DriverEvent::SessionLost => self.engine.connection.handle_peer_gone(now),
                #[cfg(feature = "legacy-sse")]
                DriverEvent::StreamOpened(events) => self.read_stream(*events),
                #[cfg(feature = "legacy-sse")]
                DriverEvent::StreamEnded => self.engine.connection.handle_end_of_input(now),
                DriverEvent::Lingering(response) => self.linger(response),
            }
            self.engine.process_events();
        }
        heard
    }

    /// What a task has told; behind all of that, what is told in the place of one that could not.
    fn next_incoming(&mut self, cx: &mut Context<'_>) -> Option<DriverEvent> {
        if let Poll::Ready(Some(incoming)) = self.incoming.poll_recv(cx) {
            return Some(incoming);
        }
        match self.last_words.poll_recv(cx) {
            Poll::Ready(word) => word,
            Poll::Pending => None,
        }
    }

    /// Begins a task. If it does not come to its end, its last word is told in its place.
    fn begin(
        &self,
        task: impl Future<Output = ()> + Send + 'static,
        last_word: impl FnOnce() -> Option<DriverEvent> + Send + 'static,
    ) -> RequestTask {
        let (driver, shared) = (self.last_word.clone(), Arc::clone(&self.shared));
        let otherwise = move || {
            let why = "what makes it panicked, or its runtime is gone";
            shared.log(Level::ERROR, "a request to the server did not come to its end", why);
            if let Some(word) = last_word() {
                // If the driver is gone, so is whoever waited.
                let _ = driver.send(word);
            }
        };
        RequestTask::begin(&*self.engine.runtime, task, otherwise)
    }

    /// Once it ends there is nothing to wait for: what comes is looked at, or comes to nothing.
    fn wants_input(&self) -> bool {
        let connection = &self.engine.connection;
        connection.wants_input() || connection.is_draining()
    }

    /// Hands what the connection gives to tasks. Returns whether there was anything.
    fn send(&mut self) -> bool {
        let mut sent = false;
        // What stays with the connection is bounded there, and a call that is given up there was never sent.
        while self.held.is_none() && !self.is_full() {
            let Some(transmit) = self.engine.connection.poll_transmit() else { break };
            sent = true;
            let outgoing = match (Outgoing::of(&transmit.body, &*self.shared.tool_headers), transmit.call) {
                (Ok(outgoing), _) => outgoing,
                // Without its headers it would be refused, and for another reason.
                (Err(why), Some(call)) => {
                    self.engine.connection.handle_call_ended(call, CallEnd::Unsendable(why));
                    continue;
                }
                // Messages that want no answer are not mirrored.
                (Err(_), None) => Outgoing::default(),
            };
            // Giving up the response says it, and what is not a session's has nobody to tell.
            let modern = self.engine.connection.peer().is_none_or(|peer| peer.revision.is_stateless());
            if outgoing.method == Some(Method::Cancelled) && modern {
                continue;
            }
            self.carry(transmit, outgoing);
        }
        self.engine.connection.handle_flushed();
        sent
    }

    fn carry(&mut self, transmit: Transmit, outgoing: Outgoing) {
        let mut delivered = None;
        if outgoing.method == Some(Method::Initialized) {
            // A server may refuse what comes before it.
            let (arrives, held) = oneshot::channel();
            (delivered, self.held) = (Some(arrives), Some(held));
            self.shared.session().revision = self.engine.connection.peer().map(|peer| peer.revision);
        }
        let Transmit { body, call, .. } = transmit;
        if let Some(call) = call {
            // From here on the server may see it. If it turns out that it cannot have, the task says so.
            self.engine.connection.handle_call_sent(call);
        }
        let given_up = outgoing.cancels.as_ref().and_then(|id| self.underway.take_out(id));
        let (id, delivery) = (outgoing.id.clone(), Delivery::new());
        let exchange = MessagePost {
            shared: Arc::clone(&self.shared),
            outgoing,
            call,
            delivery: Arc::clone(&delivery),
            delivered,
            driver: self.driver.clone(),
        };
        let last_word = exchange.last_word();
        let behind = given_up.is_some();
        let task = self.begin(exchange.run(body, given_up), last_word);
        match call {
            Some(call) => self.underway.insert(call, id, SentRequest { task, delivery }),
            None if behind => {
                make_room(&mut self.cancellations, MOST_CANCELLATIONS);
                self.cancellations.push_back(task);
            }
            None => self.messages.push(task),
        }
    }

    /// Whether the connection has to keep messages that want no answer.
    fn is_full(&self) -> bool {
        self.messages.len() >= MOST_MESSAGES
    }

    /// Goes on if what had to arrive first has arrived. That is not behind what the server says meanwhile: too much of it is not
    /// taken before it is answered, and nothing is answered before this. Returns whether it has.
    fn release(&mut self, cx: &mut Context<'_>) -> bool {
        let arrived = self.held.as_mut().is_some_and(|held| Pin::new(held).poll(cx).is_ready());
        if arrived {
            self.held = None;
            self.listen();
        }
        arrived
    }

    /// Opens the stream on which the server speaks by itself.
    fn listen(&mut self) {
        if self.listening.is_none() && self.shared.session().revision.is_some() {
            let listening = listen(Arc::clone(&self.shared), self.driver.clone());
            let shared = Arc::clone(&self.shared);
            // Nothing will be heard, and nobody is to wait for it.
            let unheard = move || {
                shared.note_audible();
                None
            };
            self.listening = Some(self.begin(listening, unheard));
        }
    }

    /// The stream of HTTP+SSE is open: the server says everything on it.
    #[cfg(feature = "legacy-sse")]
    fn read_stream(&mut self, events: Events) {
        let reading = legacy_sse::read(Arc::clone(&self.shared), events, self.driver.clone());
        self.shared.note_audible();
        self.listening = Some(self.begin(reading, || Some(DriverEvent::StreamEnded)));
    }

    fn linger(&mut self, response: RequestTask) {
        make_room(&mut self.lingering, MOST_LINGERING);
        self.lingering.push_back(response);
    }

    /// Forgets the tasks that are over, and is woken by the others.
    fn reap(&mut self, cx: &mut Context<'_>) {
        self.reap_messages(cx);
        self.lingering.retain(|response| response.poll_over(cx).is_pending());
    }

    fn reap_messages(&mut self, cx: &mut Context<'_>) {
        self.messages.retain(|message| message.poll_over(cx).is_pending());
        self.cancellations.retain(|message| message.poll_over(cx).is_pending());
    }

    /// Gives up the responses of calls that nobody waits for. While the connection has to keep what is to be said of them, those
    /// stay that have not arrived: it must not arrive before them.
    fn give_up(&mut self) {
        let (full, now, ended) = (self.is_full(), self.engine.runtime.now(), self.engine.take_ended_calls());
        let connection = &self.engine.connection;
        self.underway.give_up(ended, |call, sent| {
            connection.expects_late_answer(call) || (full && sent.is_settling(now)) || mutant!(KeepResponses)
        });
    }

    /// Begins to leave: what was said is still carried, and a session is ended.
    fn leave(&mut self, ended: ConnectionEnd) {
        self.engine.abandon_all();
        self.underway.clear();
        self.lingering.clear();
        if !self.shared.speaks_legacy_sse() {
            // Over HTTP+SSE the stream is the connection: what was said last would not be taken without it.
            self.listening = None;
        }
        if self.shared.session().id.is_some() {
            let shared = Arc::clone(&self.shared);
            let wanted = HttpRequest { method: http::Method::DELETE, ..HttpRequest::default() };
            // A server may not let its sessions be ended, and it may be gone.
            let goodbye = async move { drop(shared.send(wanted).await) };
            self.messages.push(self.begin(goodbye, || None));
        }
        let runtime = &self.engine.runtime;
        let mut timer = runtime.timer();
        timer.reset(Some(runtime.now() + LEAVING));
        self.leaving = Some((ended, timer));
    }

    /// Ready when the server has heard all of it, or has had the time to.
    fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<ConnectionEnd> {
        // Their ends are what is waited for, and nothing is left to be told.
        while self.next_incoming(cx).is_some() {}
        self.reap_messages(cx);
        let said = self.messages.is_empty() && self.cancellations.is_empty();
        let Some((ended, timer)) = &mut self.leaving else { return Poll::Pending };
        if said || timer.poll(cx).is_ready() { Poll::Ready(*ended) } else { Poll::Pending }
    }
}

/// The oldest makes room for one more.
fn make_room(task: &mut VecDeque<RequestTask>, most: usize) {
    if task.len() >= most {
        task.pop_front();
    }
}

// Nothing in it is pinned in place.
impl<S> Unpin for HttpDriver<S> {}

impl<S: Service> Future for HttpDriver<S> {
    type Output = ConnectionEnd;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<ConnectionEnd> {
        let driver = &mut *self;
        if driver.leaving.is_some() {
            return driver.poll_left(cx);
        }
        for _ in 0..TURNS {
            let mut progressed = driver.engine.run_commands_and_timer(cx);
            driver.reap(cx);
            progressed |= driver.hear(cx);
            driver.engine.process_events();
            progressed |= driver.release(cx);
            // What was sent has to be looked after, and may have made room for more.
            progressed |= driver.send();
            driver.engine.process_events();
            driver.give_up();
            if let Some(ended) = driver.engine.ended() {
                driver.leave(ended);
                return driver.poll_left(cx);
            }
            if !driver.engine.prepare_sleep(cx, 0, progressed) {
                return Poll::Pending;
            }
        }
        // Others on this thread have their turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
