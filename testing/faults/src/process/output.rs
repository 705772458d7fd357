//! Standard output of the server: a thread that reads and records every line, in order.
//!
//! Reading can be paused (a client that does not read) and stopped (the reading end is closed). Nothing is ever
//! thrown away, so that "never two responses" and "nothing after that point" can be checked at the end.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::client::message::{Body, Id, Message};
use crate::failure::{Verdict, ensure};

/// How soon the thread notices that it should hold back or give up.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Reading,
    HeldBack,
    Closed,
}

/// What was read so far.
pub(crate) struct TranscriptState {
    mode: Mode,
    /// Every line, in order.
    pub(crate) messages: Vec<Message>,
    /// For each id the places of its answers in `messages`.
    pub(crate) answers: HashMap<Id, Vec<usize>>,
    /// The server ended its output.
    pub(crate) ended: bool,
    /// Bytes after the last newline.
    rest: Vec<u8>,
}

impl TranscriptState {
    fn take(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let mut start = 0;
        while let Some(length) = self.rest[start..].iter().position(|byte| *byte == b'\n') {
            let message = Message::parse(&self.rest[start..start + length]);
            start += length + 1;
            self.keep(message);
        }
        self.rest.drain(..start);
    }

    fn keep(&mut self, message: Message) {
        let place = self.messages.len();
        if let Body::Batch(entries) = &message.body {
            for id in entries.iter().filter_map(Message::answers) {
                self.answers.entry(id.clone()).or_default().push(place);
            }
        }
        if let Some(id) = message.answers() {
            self.answers.entry(id.clone()).or_default().push(place);
        }
        self.messages.push(message);
    }

    fn end(&mut self) {
        if !self.rest.is_empty() {
            let line = std::mem::take(&mut self.rest);
            let mut message = Message::parse(&line);
            message.body = Body::Garbage("a last line without a newline".to_owned());
            self.keep(message);
        }
        self.ended = true;
    }

    /// The first answer to an id.
    pub(crate) fn answer(&self, id: &Id) -> Option<(usize, &Message)> {
        let place = *self.answers.get(id)?.first()?;
        Some((place, self.messages.get(place)?))
    }

    /// How many answers an id got.
    pub(crate) fn answer_count(&self, id: &Id) -> usize {
        self.answers.get(id).map_or(0, Vec::len)
    }
}

/// What the thread and the checks share.
pub(crate) struct Transcript {
    seen: Mutex<TranscriptState>,
    changed: Condvar,
}

impl Transcript {
    pub(crate) fn state(&self) -> MutexGuard<'_, TranscriptState> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `look` finds what it looks for, or the time is over.
    pub(crate) fn wait<T>(&self, time: Duration, mut look: impl FnMut(&TranscriptState) -> Option<T>) -> Option<T> {
        let deadline = Instant::now() + time;
        let mut seen = self.state();
        loop {
            if let Some(found) = look(&seen) {
                return Some(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || seen.ended {
                return None;
            }
            seen = self.changed.wait_timeout(seen, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn set_mode(&self, mode: Mode) {
        self.state().mode = mode;
        self.changed.notify_all();
    }
}

/// The reading end of the server's standard output.
pub(crate) struct Output {
    pub(crate) transcript: Arc<Transcript>,
    thread: Option<JoinHandle<()>>,
}

impl Output {
    /// Takes the pipe over. With `reading` false nothing is read until [`Output::read_on`].
    pub(crate) fn new(pipe: OwnedFd, reading: bool) -> Verdict<Self> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        let seen = TranscriptState {
            mode: if reading { Mode::Reading } else { Mode::HeldBack },
            messages: Vec::new(),
            answers: HashMap::new(),
            ended: false,
            rest: Vec::new(),
        };
        let transcript = Arc::new(Transcript { seen: Mutex::new(seen), changed: Condvar::new() });
        let shared = Arc::clone(&transcript);
        let thread = std::thread::Builder::new().name("output".to_owned()).spawn(move || read(&pipe, &shared))?;
        Ok(Self { transcript, thread: Some(thread) })
    }

    pub(crate) fn hold_back(&self) {
        self.transcript.set_mode(Mode::HeldBack);
    }

    pub(crate) fn read_on(&self) {
        self.transcript.set_mode(Mode::Reading);
    }

    pub(crate) fn is_reading(&self) -> bool {
        self.transcript.state().mode == Mode::Reading
    }

    /// Closes the reading end: a writer now gets EPIPE.
    pub(crate) fn close(&mut self) {
        self.transcript.set_mode(Mode::Closed);
        if let Some(thread) = self.thread.take() {
            // A reader that panicked has closed its end too; the transcript shows what it saw until then.
            let _ = thread.join();
        }
    }

    /// Waits until the server has ended its output, so that nothing more can come.
    pub(crate) fn wait_for_end(&self, time: Duration) -> Verdict {
        let deadline = Instant::now() + time;
        while !self.transcript.state().ended {
            ensure!(Instant::now() < deadline, "standard output is still open although the server has exited");
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.close();
    }
}

fn read(pipe: &OwnedFd, transcript: &Transcript) {
    let mut buffer = vec![0; 256 * 1024];
    loop {
        if !may_read(transcript) {
            return;
        }
        if poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&POLL_INTERVAL)).unwrap_or(0) == 0 {
            continue;
        }
        // Under the lock, so that nothing is read any more once `hold_back` has returned.
        let mut seen = transcript.state();
        if seen.mode != Mode::Reading {
            continue;
        }
        match rustix::io::read(pipe, &mut buffer) {
            Ok(0) => seen.end(),
            Ok(length) => seen.take(&buffer[..length]),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(_) => seen.end(),
        }
        let ended = seen.ended;
        drop(seen);
        transcript.changed.notify_all();
        if ended {
            return;
        }
    }
}

/// Waits while reading is held back. False: the end is to be closed.
fn may_read(transcript: &Transcript) -> bool {
    let mut seen = transcript.state();
    while seen.mode == Mode::HeldBack {
        seen = transcript.changed.wait(seen).unwrap_or_else(PoisonError::into_inner);
    }
    seen.mode == Mode::Reading
}
