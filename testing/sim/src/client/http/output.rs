//! What the server writes, and what the client has read of it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::HttpServer;
use super::streams::State;
use crate::client::journal::TransportFacts;
use crate::client::server::ServerOutput;

/// Where the response to one request is written.
pub(super) struct Reply {
    pub(super) web: HttpServer,
    pub(super) stream: usize,
}

impl ServerOutput for Reply {
    fn say(&self, message: &[u8], last: bool) -> Option<usize> {
        let (receipt, wakers) = {
            let mut state = self.web.state();
            (state.push(self.stream, message, last), state.take_wakers(self.stream))
        };
        wakers.into_iter().for_each(std::task::Waker::wake);
        receipt
    }

    fn tear(&self, message: &[u8]) -> Option<usize> {
        self.web.state().tear(self.stream, message);
        self.end_output();
        None
    }

    fn end_output(&self) {
        self.web.end(|stream| stream == self.stream);
    }

    fn break_off(&self) {
        self.end_output();
    }

    fn stop_reading(&self) {
        self.web.stop_reading();
    }

    fn die(&self) {
        self.web.die();
    }

    fn pause(&self, _duration: Duration) {}

    fn link(&self) -> usize {
        self.web.state().listening_link
    }
}

/// Messages of no request go where the client listens.
impl ServerOutput for HttpServer {
    fn say(&self, message: &[u8], last: bool) -> Option<usize> {
        let stream = self.state().listening?;
        Reply { web: self.clone(), stream }.say(message, last)
    }

    fn tear(&self, _message: &[u8]) -> Option<usize> {
        None
    }

    fn end_output(&self) {
        self.journal.note("end output", 0, b"");
        self.end(|_| true);
    }

    fn break_off(&self) {}

    fn stop_reading(&self) {
        self.journal.note("forgets the session", 0, b"");
        let mut state = self.state();
        state.first_known = state.links + 1;
    }

    fn die(&self) {
        self.journal.note("die", 0, b"");
        self.state().down = true;
        self.end(|_| true);
        if self.returns {
            self.journal.facts().trouble = true;
            let (web, nap) = (self.clone(), self.draw(|random| random.delay(Duration::from_secs(4))));
            self.executor.spawn_harness_task(async move {
                web.executor.sleep(nap).await;
                web.state().down = false;
            });
        }
    }

    fn pause(&self, _duration: Duration) {}

    fn link(&self) -> usize {
        self.state().listening_link
    }
}

pub(super) struct HttpReads(pub(super) Arc<Mutex<State>>);

impl TransportFacts for HttpReads {
    fn was_read(&self, receipt: usize) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).was_read(receipt)
    }

    fn is_quiet(&self) -> bool {
        true
    }

    fn is_read_to_end(&self) -> bool {
        false
    }

    fn is_dropped(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).dropped
    }
}
