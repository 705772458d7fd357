//! The server at the other end of a byte stream: of one after the other, if it dies and the client reconnects.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadfast_proto::Moment;

use super::journal::{Journal, TransportFacts};
use super::script::Script;
use super::server::{Server, ServerOutput};
use crate::executor::Executor;
use crate::executor::line_buffer::LineBuffer;
use crate::executor::link::{Link, LinkTransport};
use crate::observation::json::Json;
use crate::script::rng::Random;

/// Where the client connects to, as often as it does.
pub(super) struct Pipes {
    executor: Executor,
    journal: Arc<Journal>,
    server: Arc<Server>,
    seed: u64,
    returns: bool,
    links: Arc<Mutex<Vec<Link>>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    down: bool,
    paused: Moment,
}

impl Pipes {
    pub(super) fn new(executor: &Executor, journal: &Arc<Journal>, server: &Arc<Server>, script: &Script) -> Arc<Self> {
        let links = Arc::new(Mutex::new(Vec::new()));
        journal.set_transport(Arc::new(StreamReads(Arc::clone(&links))));
        let (executor, journal, server) = (executor.clone(), Arc::clone(journal), Arc::clone(server));
        let (seed, returns, state) = (script.seed, script.returns, Mutex::default());
        Arc::new(Self { executor, journal, server, seed, returns, links, state })
    }

    /// A new connection, if the server lives.
    pub(super) fn open(self: &Arc<Self>) -> io::Result<LinkTransport> {
        if self.state().down {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let number = lock(&self.links).len();
        let stream = u64::try_from(number).unwrap_or(u64::MAX).saturating_add(340);
        let (link, end) = Link::new(Random::new(self.seed, stream));
        lock(&self.links).push(link.clone());
        self.journal.facts().counts.links += 1;
        let watching = Arc::downgrade(&self.journal);
        link.tap(move |bytes| {
            if let Some(journal) = watching.upgrade() {
                journal.wrote(number, bytes);
            }
        });
        let pipe = Pipe { pipes: Arc::clone(self), link: link.clone(), number };
        let journal = Arc::clone(&self.journal);
        let carry = link.carry(self.executor.clone(), move || journal.lose("output ended"));
        self.executor.spawn_harness_task(carry);
        self.executor.spawn_harness_task(pipe.read());
        Ok(end)
    }

    fn newest(self: &Arc<Self>) -> Option<Pipe> {
        let (link, count) = {
            let links = lock(&self.links);
            (links.last().cloned()?, links.len())
        };
        Some(Pipe { pipes: Arc::clone(self), link, number: count.saturating_sub(1) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// The server's hold on one stream.
#[derive(Clone)]
struct Pipe {
    pipes: Arc<Pipes>,
    link: Link,
    number: usize,
}

impl Pipe {
    /// Reads and serves until there is no more.
    async fn read(self) {
        let (output, executor): (Arc<dyn ServerOutput>, _) = (Arc::new(self.clone()), self.pipes.executor.clone());
        let mut buffer = LineBuffer::default();
        loop {
            let (paused, now) = (self.pipes.state().paused, executor.now());
            if paused > now {
                executor.sleep(paused.since(now)).await;
                continue;
            }
            let Some(bytes) = std::future::poll_fn(|cx| self.link.poll_receive(cx)).await else { return };
            for line in buffer.push(&bytes) {
                if let Some(message) = Json::read(&line) {
                    self.pipes.server.take(self.number, &message, &output);
                }
            }
        }
    }

    /// Receipts of all streams are distinct.
    fn receipt(&self, sent: Option<usize>) -> Option<usize> {
        sent.map(|sent| self.number * PER_STREAM + sent)
    }
}

/// No stream carries more.
const PER_STREAM: usize = 1 << 30;

impl ServerOutput for Pipe {
    fn say(&self, message: &[u8], _last: bool) -> Option<usize> {
        self.receipt(self.link.send(message))
    }

    fn tear(&self, message: &[u8]) -> Option<usize> {
        let half = message.len() / 2;
        let receipt = self.receipt(self.link.send_bytes(message.get(..half).unwrap_or_default()));
        self.end_output();
        receipt
    }

    fn end_output(&self) {
        self.pipes.journal.note("end output", 0, b"");
        self.link.end_input(false);
    }

    fn break_off(&self) {}

    fn stop_reading(&self) {
        self.pipes.journal.lose("stop reading");
        self.link.stop_reading();
    }

    fn die(&self) {
        self.pipes.journal.lose("die");
        self.link.cut();
        self.pipes.state().down = true;
        if self.pipes.returns {
            let nap = self.pipes.server.draw(|random| random.delay(Duration::from_secs(4)));
            let pipes = Arc::clone(&self.pipes);
            self.pipes.executor.spawn_harness_task(async move {
                pipes.executor.sleep(nap).await;
                pipes.state().down = false;
            });
        }
    }

    fn pause(&self, duration: Duration) {
        let until = self.pipes.executor.now() + duration;
        let mut state = self.pipes.state();
        state.paused = until.max(state.paused);
        self.pipes.journal.facts().deaf_until = state.paused;
    }

    fn link(&self) -> usize {
        self.number
    }
}

/// Unsolicited messages are sent on the newest stream.
pub(super) struct NewestStream(pub(super) Arc<Pipes>);

impl ServerOutput for NewestStream {
    fn say(&self, message: &[u8], last: bool) -> Option<usize> {
        self.0.newest()?.say(message, last)
    }

    fn tear(&self, message: &[u8]) -> Option<usize> {
        self.0.newest()?.tear(message)
    }

    fn end_output(&self) {
        self.0.newest().iter().for_each(Pipe::end_output);
    }

    fn break_off(&self) {}

    fn stop_reading(&self) {
        self.0.newest().iter().for_each(Pipe::stop_reading);
    }

    fn die(&self) {
        self.0.newest().iter().for_each(Pipe::die);
    }

    fn pause(&self, duration: Duration) {
        self.0.newest().iter().for_each(|pipe| pipe.pause(duration));
    }

    fn link(&self) -> usize {
        self.0.newest().map_or(0, |pipe| pipe.number)
    }
}

struct StreamReads(Arc<Mutex<Vec<Link>>>);

impl TransportFacts for StreamReads {
    fn was_read(&self, receipt: usize) -> bool {
        lock(&self.0).get(receipt / PER_STREAM).is_some_and(|link| link.was_read(receipt % PER_STREAM))
    }

    fn was_read_in_time(&self, receipt: usize) -> bool {
        lock(&self.0).get(receipt / PER_STREAM).is_some_and(|link| link.was_read_in_time(receipt % PER_STREAM))
    }

    fn is_quiet(&self) -> bool {
        lock(&self.0).iter().all(Link::is_empty)
    }

    fn is_read_to_end(&self) -> bool {
        lock(&self.0).last().is_some_and(Link::is_read_to_end)
    }

    fn is_dropped(&self) -> bool {
        lock(&self.0).iter().all(Link::is_dropped)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
