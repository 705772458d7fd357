//! A session: one long connection of an older revision, over many requests of HTTP.
//!
//! ```text
//!   POST --message--> engine --messages--> the POST it belongs to --> held, while one answer may be all there is
//!                                     |                          \--> a stream of events, from the second on
//!                                     \--> the stream of GET, for what belongs to no request
//! ```
//!
//! Each message goes to one place. Events are kept in a log, and a response reads the log through a cursor: a client that
//! does not read holds up nobody else, and one that comes back reads on. A response that is dropped cancels nothing.

mod driver;
mod stream;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use steadfast_model::{Principal, RequestId};
use steadfast_proto::Moment;
use steadfast_proto::connection::Key;
use steadfast_proto::frame::sse;
use steadfast_proto::http::resume::{EventLog, StreamKey, UnknownEvent};
use steadfast_proto::mutant;

pub(crate) use driver::Driver;
pub(crate) use stream::{AnswerWait, PostReply, SessionStream};

use super::load::{Load, Permit};
use super::service::Shared;
use crate::runtime::{Engine, Mailbox, Runtime};
use crate::server::ServerService;

/// More than so many unread messages that may be dropped, and they are: progress, log messages and notices, so that nobody's
/// answer is pushed out of the log by them.
const UNREAD: usize = 256;

/// One session.
pub(crate) struct Session {
    id: Box<str>,
    /// Whose it is.
    owner: Option<String>,
    runtime: Arc<dyn Runtime>,
    timing: Timing,
    load: Arc<Load>,
    state: Mutex<State>,
}

/// What became of a message.
pub(crate) enum SubmitResult {
    /// It was taken, and has no answer.
    Taken,
    /// It has no request in it, and is not what it should be: this says so.
    Refused(Vec<u8>),
    /// It has requests.
    Waiting(AnswerWait),
}

/// Why a message was not taken: nothing was begun.
#[derive(Debug)]
pub(crate) enum SubmitError {
    /// The session has ended meanwhile.
    Gone,
    /// A request with its id runs.
    InFlight,
}

/// What a session keeps of the options.
struct Timing {
    idle: Duration,
    retry: Duration,
    keep_alive: Duration,
    resumable_after: Duration,
}

struct State {
    engine: Engine<ServerService>,
    log: EventLog<Bytes>,
    /// Stands before the ids of its events, so that those of another session are unknown here. A client that opened a new
    /// session may still come with what it remembers.
    mark: u32,
    /// The stream of what belongs to no request.
    standalone: StreamKey,
    /// POSTs whose requests are not all answered, or whose answer was not taken.
    posts: BTreeMap<u64, Post>,
    next_post: u64,
    /// The POST that each open request came with.
    routes: BTreeMap<Key, u64>,
    /// Who waits for the next event of a stream.
    readers: BTreeMap<StreamKey, Waker>,
    driver: Option<Waker>,
    /// Responses that are open.
    open: usize,
    /// When it was last heard of.
    used: Moment,
    /// Nothing more happens.
    over: bool,
}

/// One POST with requests in it.
struct Post {
    keys: Vec<Key>,
    to: Destination,
    /// All its requests have ended.
    done: bool,
    /// Its handler has let go of the client.
    released: bool,
    /// Its request was taken back before anything was said about it: nothing will be.
    withdrawn: bool,
    waker: Option<Waker>,
    /// It counts among the requests of the service until they have ended, whether its client waits or not.
    _permit: Permit,
}

/// Where the messages of a POST go.
enum Destination {
    /// Nowhere yet: it is not decided how it is answered.
    Held(Vec<Vec<u8>>),
    Stream(StreamKey),
    /// Nowhere at all: its client left before it was told of a stream.
    Nobody,
}

impl Session {
    /// A session under an id that nobody can guess.
    pub(crate) fn new(
        shared: &Shared,
        runtime: Arc<dyn Runtime>,
        principal: Option<Principal>,
    ) -> Result<Arc<Self>, getrandom::Error> {
        let (mut random, mut mark) = ([0_u8; 16], [0_u8; 4]);
        runtime.fill_random(&mut random)?;
        runtime.fill_random(&mut mark)?;
        let server = shared.server.clone();
        let limits = shared.limits.clone();
        let service = |mailbox: &Arc<Mailbox>| {
            mailbox.identify(principal.as_ref());
            ServerService::new(server, mailbox)
        };
        let mut engine = Engine::new(service, Arc::clone(&shared.hello), limits, Arc::clone(&runtime));
        engine.release_streams();
        let mut log = EventLog::new(shared.options.log.clone());
        let standalone = log.open();
        let state = State {
            engine,
            log,
            mark: u32::from_be_bytes(mark),
            standalone,
            posts: BTreeMap::new(),
            next_post: 0,
            routes: BTreeMap::new(),
            readers: BTreeMap::new(),
            driver: None,
            open: 0,
            used: runtime.now(),
            over: false,
        };
        let options = &shared.options;
        let timing = Timing {
            idle: options.session_idle,
            retry: options.retry,
            keep_alive: options.keep_alive,
            resumable_after: options.resumable_after,
        };
        let id = format!("{:032x}", u128::from_be_bytes(random)).into_boxed_str();
        let load = Arc::clone(&shared.load);
        let owner = principal.map(|principal| principal.identity());
        Ok(Arc::new(Self { id, owner, runtime, timing, load, state: Mutex::new(state) }))
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Whether it was opened by this principal.
    pub(crate) fn belongs_to(&self, principal: Option<&Principal>) -> bool {
        self.owner == principal.map(Principal::identity)
    }

    /// Whether its revision has batches.
    pub(crate) fn takes_batches(&self) -> bool {
        self.lock().engine.connection.peer().is_some_and(|peer| peer.revision.has_batches())
    }

    /// Whether its handshake was done.
    pub(crate) fn is_open(&self) -> bool {
        self.lock().engine.connection.peer().is_some()
    }

    /// Takes `initialize`, and gives its answer, which is there at once.
    pub(crate) fn initialize(&self, message: &[u8]) -> Vec<u8> {
        let mut state = self.lock();
        let now = self.runtime.now();
        state.engine.connection.handle_message(now, message);
        state.engine.act();
        let answer = state.engine.connection.poll_transmit().map(|transmit| transmit.body);
        state.engine.connection.handle_flushed();
        answer.unwrap_or_default()
    }

    /// Takes a message of its owner's that has these requests in it, whose answers can be waited for if there are any. `sweep`
    /// is set for a message that may end requests without an answer.
    ///
    /// # Errors
    ///
    /// If nothing was begun.
    pub(crate) fn submit(
        self: &Arc<Self>,
        principal: Option<&Principal>,
        message: &[u8],
        ids: &[RequestId],
        sweep: bool,
        permit: Permit,
    ) -> Result<SubmitResult, SubmitError> {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.over {
            return Err(SubmitError::Gone);
        }
        let now = self.runtime.now();
        state.used = now;
        if let [id] = ids
            && state.engine.connection.key_of(id).is_some()
        {
            return Err(SubmitError::InFlight);
        }
        state.engine.mailbox.identify(principal);
        let post = state.open_post(permit);
        let known: Vec<bool> = ids.iter().map(|id| state.engine.connection.key_of(id).is_some()).collect();
        state.engine.connection.handle_message(now, message);
        let fresh = ids.iter().zip(known).filter(|(_, known)| !known);
        let keys: Vec<Key> = fresh.filter_map(|(id, _)| state.engine.connection.key_of(id)).collect();
        state.routes.extend(keys.iter().map(|key| (*key, post)));
        if let Some(post) = state.posts.get_mut(&post) {
            post.keys = keys;
        }
        if sweep && !mutant!(KeepUnreadOfCancelled) {
            state.withdraw_cancelled();
        }
        // What is there already answers this message: nothing else was waiting.
        state.deliver(now, Some(post));
        state.engine.act();
        state.deliver(now, None);
        if sweep {
            let all: Vec<u64> = state.posts.keys().copied().collect();
            for post in all {
                state.settle(post);
            }
        } else {
            state.settle(post);
        }
        state.wake_driver();
        if !ids.is_empty() {
            drop(guard);
            return Ok(SubmitResult::Waiting(AnswerWait::new(Arc::clone(self), post)));
        }
        let refusal = match state.posts.remove(&post) {
            Some(Post { to: Destination::Held(messages), .. }) => messages.into_iter().next(),
            _ => None,
        };
        Ok(refusal.map_or(SubmitResult::Taken, SubmitResult::Refused))
    }

    /// A stream of what belongs to no request.
    pub(crate) fn listen(self: &Arc<Self>) -> Result<SessionStream, UnknownEvent> {
        let mut state = self.lock();
        let now = self.runtime.now();
        let stream = state.standalone;
        let cursor = state.log.attach(stream).ok_or(UnknownEvent)?;
        if state.log.unread(stream) == 0 {
            state.prime(now, stream, self.timing.retry);
        }
        Ok(SessionStream::attached(Arc::clone(self), &mut state, cursor))
    }

    /// The rest of a stream, behind the event that a client saw last.
    pub(crate) fn resume(self: &Arc<Self>, last_event_id: &str) -> Result<SessionStream, UnknownEvent> {
        let mut state = self.lock();
        let (mark, place) = last_event_id.split_once('-').ok_or(UnknownEvent)?;
        if mark != format!("{:x}", state.mark) {
            return Err(UnknownEvent);
        }
        let cursor = state.log.resume(place)?;
        Ok(SessionStream::attached(Arc::clone(self), &mut state, cursor))
    }

    /// Its client is there.
    pub(crate) fn note_used(&self) {
        self.lock().used = self.runtime.now();
    }

    /// The drain window begins; then everything ends.
    pub(crate) fn shut_down(&self) {
        let mut state = self.lock();
        let now = self.runtime.now();
        state.engine.connection.shut_down(now);
        state.engine.act();
        state.deliver(now, None);
        state.wake_driver();
    }

    /// Everything ends: the client is gone, and its handlers are told so. Requests that run are answered for, where somebody
    /// still reads: who got a 404 instead would take them for never begun, and send them again.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        let now = self.runtime.now();
        state.end(now);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn open_post(&mut self, permit: Permit) -> u64 {
        let number = self.next_post;
        self.next_post += 1;
        let to = Destination::Held(Vec::new());
        let post =
            Post { keys: Vec::new(), to, done: false, released: false, withdrawn: false, waker: None, _permit: permit };
        self.posts.insert(number, post);
        number
    }

    /// Takes what the connection has to say to where it belongs. `direct` is the POST whose message was just handled: what
    /// belongs to no request then is its answer.
    fn deliver(&mut self, now: Moment, direct: Option<u64>) {
        let mut touched = Vec::new();
        while let Some(transmit) = self.engine.connection.poll_transmit() {
            if let Some(call) = transmit.call {
                self.engine.connection.handle_call_sent(call);
            }
            let asks = transmit.call.is_some();
            let number = match transmit.about {
                Some(_) if mutant!(CrossStreams) => None,
                Some(key) => self.routes.get(&key).copied(),
                None => direct.filter(|_| !asks),
            };
            let running = transmit.about.map(|key| self.engine.connection.is_open(key));
            let droppable = !asks && running.unwrap_or(number.is_none());
            match number.and_then(|number| self.posts.get_mut(&number)) {
                Some(Post { to: Destination::Held(messages), waker, withdrawn, .. }) => {
                    if !*withdrawn && (!droppable || messages.len() < UNREAD) {
                        messages.push(transmit.body);
                    }
                    waker.take().into_iter().for_each(Waker::wake);
                }
                Some(Post { to: Destination::Stream(stream), .. }) => {
                    let stream = *stream;
                    self.append(now, stream, &transmit.body, droppable);
                }
                // What belongs to a request whose client left has no way to it, but a question can be put on the other
                // stream.
                Some(_) | None if transmit.about.is_some() && !asks && !mutant!(CrossStreams) => {}
                Some(_) | None => self.append(now, self.standalone, &transmit.body, droppable),
            }
            touched.extend(number);
        }
        self.engine.connection.handle_flushed();
        for post in touched {
            self.settle(post);
        }
        for key in self.engine.released_streams() {
            self.release(key);
        }
    }

    /// What was said about requests that have just been taken back, and has not been read, is not said (law L3).
    fn withdraw_cancelled(&mut self) {
        for post in self.posts.values_mut().filter(|post| !post.done) {
            let [key] = &*post.keys else { continue };
            if self.engine.connection.is_open(*key) {
                continue;
            }
            match &mut post.to {
                Destination::Held(messages) => {
                    messages.clear();
                    post.withdrawn = true;
                }
                Destination::Stream(stream) => self.log.withdraw(*stream),
                Destination::Nobody => {}
            }
        }
    }

    fn append(&mut self, now: Moment, stream: StreamKey, message: &[u8], droppable: bool) {
        if droppable && self.log.unread(stream) >= UNREAD {
            return;
        }
        let mark = self.mark;
        self.log.append(now, stream, |id| {
            let mut out = Vec::new();
            let id = format!("{mark:x}-{id}");
            sse::Event { id: Some(&id), data: Some(message), ..sse::Event::default() }.write(&mut out);
            out.into()
        });
        self.wake_reader(stream);
    }

    /// An event without a message, so that the client has an id to come back with.
    fn prime(&mut self, now: Moment, stream: StreamKey, retry: Duration) {
        if !self.primes() {
            return;
        }
        let mark = self.mark;
        self.log.append(now, stream, |id| {
            let mut out = Vec::new();
            let id = format!("{mark:x}-{id}");
            sse::Event { id: Some(&id), retry: Some(retry), data: Some(b""), name: None }.write(&mut out);
            out.into()
        });
    }

    /// A handler lets its client go, which comes back for the answer. Only clients that were primed know how.
    fn release(&mut self, key: Key) {
        if !self.primes() {
            return;
        }
        let Some(post) = self.routes.get(&key).and_then(|number| self.posts.get_mut(number)) else { return };
        match post.to {
            Destination::Stream(stream) => {
                self.log.cut(stream);
                self.wake_reader(stream);
            }
            Destination::Held(_) => {
                post.released = true;
                post.waker.take().into_iter().for_each(Waker::wake);
            }
            Destination::Nobody => {}
        }
    }

    /// Whether clients of this revision expect an event without a message. Older ones would take it for a message that they
    /// cannot read.
    fn primes(&self) -> bool {
        self.engine.connection.peer().is_some_and(|peer| peer.revision.has_priming_events())
    }

    /// Ends a POST whose requests have all ended.
    fn settle(&mut self, number: u64) {
        let Some(post) = self.posts.get_mut(&number) else { return };
        if post.done || post.keys.iter().any(|key| self.engine.connection.is_open(*key)) {
            return;
        }
        post.done = true;
        for key in &post.keys {
            self.routes.remove(key);
        }
        post.waker.take().into_iter().for_each(Waker::wake);
        match post.to {
            Destination::Held(_) => {}
            Destination::Stream(stream) => {
                self.posts.remove(&number);
                self.log.close(stream);
                self.wake_reader(stream);
            }
            Destination::Nobody => drop(self.posts.remove(&number)),
        }
    }

    fn wake_reader(&mut self, stream: StreamKey) {
        if let Some(reader) = self.readers.remove(&stream) {
            reader.wake();
        }
    }

    fn wake_driver(&mut self) {
        if let Some(driver) = self.driver.take() {
            driver.wake();
        }
    }

    fn end(&mut self, now: Moment) {
        if self.over {
            return;
        }
        self.engine.connection.handle_peer_ended(now);
        self.engine.act();
        self.deliver(now, None);
        self.finish();
        self.wake_driver();
    }

    /// Everyone who waits for something learns that nothing more comes.
    fn finish(&mut self) {
        self.over = true;
        std::mem::take(&mut self.readers).into_values().for_each(Waker::wake);
        for post in self.posts.values_mut() {
            post.waker.take().into_iter().for_each(Waker::wake);
        }
    }

    /// A response was dropped or is done.
    fn response_closed(&mut self, now: Moment) {
        self.open = self.open.saturating_sub(1);
        self.used = now;
        self.wake_driver();
    }
}
