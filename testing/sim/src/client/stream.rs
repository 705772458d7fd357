//! The server at the other end of a stream of bytes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use steadfast_proto::Moment;

use super::journal::{Journal, Way};
use super::server::{Server, Voice};
use crate::executor::Executor;
use crate::link::{End, Link};
use crate::rng::Random;

/// The server's hold on the stream.
#[derive(Clone)]
pub(super) struct Pipe {
    executor: Executor,
    journal: Arc<Journal>,
    link: Link,
    paused: Arc<Mutex<Moment>>,
}

impl Pipe {
    pub(super) fn new(executor: &Executor, journal: &Arc<Journal>, seed: u64) -> (Self, End) {
        let (link, end) = Link::new(Random::new(seed, 34));
        let watching = Arc::downgrade(journal);
        link.tap(move |bytes| {
            if let Some(journal) = watching.upgrade() {
                journal.wrote(bytes);
            }
        });
        let (executor, journal) = (executor.clone(), Arc::clone(journal));
        journal.set_way(Arc::new(Wire(link.clone())));
        (Self { executor, journal, link, paused: Arc::new(Mutex::new(Moment::ORIGIN)) }, end)
    }

    /// Reads and serves until there is no more.
    pub(super) fn start(&self, server: Arc<Server>) {
        let journal = Arc::clone(&self.journal);
        let carry = self.link.clone().carry(self.executor.clone(), move || journal.close("output ended"));
        self.executor.spawn_scenery(carry);
        self.executor.spawn_scenery(self.clone().read(server));
    }

    async fn read(self, server: Arc<Server>) {
        let voice: Arc<dyn Voice> = Arc::new(self.clone());
        let mut line = Vec::new();
        loop {
            let (paused, now) = (*self.paused.lock().unwrap_or_else(PoisonError::into_inner), self.executor.now());
            if paused > now {
                self.executor.sleep(paused.since(now)).await;
                continue;
            }
            let Some(bytes) = std::future::poll_fn(|cx| self.link.poll_receive(cx)).await else { return };
            for byte in bytes {
                if byte != b'\n' {
                    line.push(byte);
                    continue;
                }
                if let Ok(message) = serde_json::from_slice(&line) {
                    server.take(&message, &voice);
                }
                line.clear();
            }
        }
    }
}

impl Voice for Pipe {
    fn say(&self, message: &[u8], _last: bool) -> Option<usize> {
        self.link.send(message)
    }

    fn tear(&self, message: &[u8]) -> Option<usize> {
        let half = message.len() / 2;
        let receipt = self.link.send_bytes(message.get(..half).unwrap_or_default());
        self.end_output();
        receipt
    }

    fn end_output(&self) {
        self.journal.note("end output", 0, b"");
        self.link.end_input(false);
    }

    fn stop_reading(&self) {
        self.journal.close("stop reading");
        self.link.stop_reading();
    }

    fn die(&self) {
        self.journal.close("die");
        self.link.cut();
    }

    fn pause(&self, duration: Duration) {
        let until = self.executor.now() + duration;
        let mut paused = self.paused.lock().unwrap_or_else(PoisonError::into_inner);
        *paused = until.max(*paused);
    }
}

struct Wire(Link);

impl Way for Wire {
    fn was_read(&self, receipt: usize) -> bool {
        self.0.was_read(receipt)
    }

    fn is_quiet(&self) -> bool {
        self.0.is_empty()
    }

    fn is_heard_out(&self) -> bool {
        self.0.is_heard_out()
    }

    fn is_dropped(&self) -> bool {
        self.0.is_dropped()
    }
}
