//! The wire between a scripted peer and who is simulated: it delays, splits and merges, and either side may hang up.
//!
//! It never changes a byte: what is corrupt was sent so, and the script knows.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use steadfast::transport::{HangupDirection, Transport};

use crate::executor::Executor;
use crate::script::rng::Random;

/// The peer's hold on the wire. Clones are the same wire.
#[derive(Clone)]
pub(crate) struct Link(Arc<Mutex<State>>);

/// Sees bytes.
type Tap = Arc<dyn Fn(&[u8]) + Send + Sync>;

struct State {
    random: Random,
    /// Sent by the peer, and still on its way.
    sent: BytesMut,
    /// The peer sends no more after these.
    sent_all: bool,
    /// Where it can be read.
    arrived: BytesMut,
    /// The end can be seen, after what has arrived.
    ended: bool,
    /// Written to the peer and not read by it.
    written: BytesMut,
    capacity: usize,
    total_written: usize,
    total_sent: usize,
    total_read: usize,
    /// How much was read when the peer stopped reading: from then on the other end may know that it is lost.
    read_when_lost: Option<usize>,
    /// The end was read.
    end_read: bool,
    /// Sees what is written to the peer, as it is written.
    tap: Option<Tap>,
    /// The peer reads no more.
    unread: bool,
    /// The other end was let go of.
    dropped: bool,
    /// Whether the end of the input, and of the output, was reported as a hang-up.
    reported: (bool, bool),
    for_carrier: Option<Waker>,
    for_end: [Option<Waker>; 3],
    for_reader: Option<Waker>,
}

impl Link {
    pub(crate) fn new(mut random: Random) -> (Self, LinkTransport) {
        let capacity = *random.pick(&[48, 1_000, 70_000, 1 << 20]);
        let link = Self(Arc::new(Mutex::new(State {
            random,
            sent: BytesMut::new(),
            sent_all: false,
            arrived: BytesMut::new(),
            ended: false,
            written: BytesMut::new(),
            capacity,
            total_written: 0,
            total_sent: 0,
            total_read: 0,
            read_when_lost: None,
            end_read: false,
            tap: None,
            unread: false,
            dropped: false,
            reported: (false, false),
            for_carrier: None,
            for_end: [const { None }; 3],
            for_reader: None,
        })));
        let end = LinkTransport(link.clone());
        (link, end)
    }

    /// Everything that either side wrote has been taken by the other.
    pub(crate) fn is_empty(&self) -> bool {
        let state = self.lock();
        let ending = state.sent_all && !state.ended;
        !ending && state.sent.is_empty() && state.arrived.is_empty() && state.written.is_empty()
    }

    /// Bytes that were written to the peer.
    pub(crate) fn total_written(&self) -> usize {
        self.lock().total_written
    }

    /// Has `tap` called with what is written to the peer, as it is written.
    pub(crate) fn tap(&self, tap: impl Fn(&[u8]) + Send + Sync + 'static) {
        self.lock().tap = Some(Arc::new(tap));
    }

    /// Whether everything up to a position, as [`Link::send`] returned it, was read. The end of the stream ends a line too: it is whole
    /// if only its newline was lost with the peer.
    pub(crate) fn was_read(&self, sent: usize) -> bool {
        let state = self.lock();
        state.total_read + usize::from(state.end_read) >= sent
    }

    /// Whether all that was ever sent was read.
    pub(crate) fn was_read_to_the_end(&self) -> bool {
        let sent = self.lock().total_sent;
        self.was_read(sent)
    }

    /// [`Link::was_read`], if that was before the peer stopped reading. A side that may know that what it sends is lost may have given
    /// up every call that a later answer belongs to.
    pub(crate) fn was_read_in_time(&self, sent: usize) -> bool {
        let lost = self.lock().read_when_lost;
        lost.map_or_else(|| self.was_read(sent), |read| read >= sent)
    }

    /// The peer has no more to say, and all of it was read.
    pub(crate) fn is_read_to_end(&self) -> bool {
        let state = self.lock();
        state.ended && state.arrived.is_empty()
    }

    /// Whether the other end was let go of.
    pub(crate) fn is_dropped(&self) -> bool {
        self.lock().dropped
    }

    /// Whether the peer has closed its output.
    pub(crate) fn is_ended(&self) -> bool {
        self.lock().sent_all
    }

    /// Sends a line after what was sent before. Returns the position after it; nothing is sent after the end.
    pub(crate) fn send(&self, line: &[u8]) -> Option<usize> {
        self.send_bytes(&[line, b"\n"].concat())
    }

    /// Sends bytes, of a line or of several.
    pub(crate) fn send_bytes(&self, bytes: &[u8]) -> Option<usize> {
        let mut state = self.lock();
        if state.sent_all {
            return None;
        }
        state.sent.extend_from_slice(bytes);
        state.total_sent += bytes.len();
        let sent = state.total_sent;
        let waker = state.for_carrier.take();
        wake(state, [waker]);
        Some(sent)
    }

    /// Closes the output after what was sent. `torn` leaves the newline of the last line away.
    pub(crate) fn end_input(&self, torn: bool) {
        let mut state = self.lock();
        if torn && !state.sent_all {
            let rest = state.sent.len().saturating_sub(1);
            state.sent.truncate(rest);
        }
        state.sent_all = true;
        let waker = state.for_carrier.take();
        wake(state, [waker]);
    }

    /// Reads no more. Returns whether something was there to be read.
    pub(crate) fn stop_reading(&self) -> bool {
        let mut state = self.lock();
        state.unread = true;
        let read = state.total_read;
        state.read_when_lost.get_or_insert(read);
        let lost = !state.written.is_empty();
        state.written.clear();
        let wakers = state.for_end.each_mut().map(Option::take);
        wake(state, wakers);
        lost
    }

    /// Hangs up both ways; what is on its way is lost. Returns whether something was there to be read.
    pub(crate) fn cut(&self) -> bool {
        let lost = self.stop_reading();
        let mut state = self.lock();
        state.sent.clear();
        (state.sent_all, state.ended, state.unread) = (true, true, true);
        let [read, write, hangup] = state.for_end.each_mut().map(Option::take);
        let carrier = state.for_carrier.take();
        wake(state, [read, write, hangup, carrier]);
        lost
    }

    /// Carries what the peer sent, in pieces, until its end. Calls `ended` when the end can be seen.
    pub(crate) async fn carry(self, executor: Executor, ended: impl FnOnce() + Send) {
        loop {
            let delay = {
                let mut state = self.lock();
                if state.random.chance(40) { Duration::ZERO } else { state.random.delay(Duration::from_millis(3)) }
            };
            if delay > Duration::ZERO {
                executor.sleep(delay).await;
            }
            let more = std::future::poll_fn(|cx| {
                let mut state = self.lock();
                if !state.sent.is_empty() {
                    let length = state.sent.len();
                    let whole = state.random.chance(60);
                    let count = if whole { length } else { 1 + state.random.index(length) };
                    let piece = state.sent.split_to(count);
                    state.arrived.extend_from_slice(&piece);
                } else if state.sent_all {
                    state.ended = true;
                } else {
                    state.for_carrier = Some(cx.waker().clone());
                    return Poll::Pending;
                }
                let more = !state.ended;
                let [read, _, hangup] = state.for_end.each_mut().map(Option::take);
                wake(state, [read, hangup]);
                Poll::Ready(more)
            })
            .await;
            if !more {
                return ended();
            }
        }
    }

    /// Reads what was written to the peer; `None` when there will be no more.
    pub(crate) fn poll_receive(&self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.lock();
        if state.written.is_empty() {
            if state.dropped || state.unread {
                return Poll::Ready(None);
            }
            state.for_reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let length = state.written.len();
        let count = if state.random.chance(70) { length } else { 1 + state.random.index(length) };
        let bytes = state.written.split_to(count).freeze();
        let waker = state.for_end[1].take();
        wake(state, [waker]);
        Poll::Ready(Some(bytes))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(state: MutexGuard<'_, State>, wakers: impl IntoIterator<Item = Option<Waker>>) {
    drop(state);
    wakers.into_iter().flatten().for_each(Waker::wake);
}

/// The transport of the side that is simulated.
pub(crate) struct LinkTransport(Link);

impl State {
    /// Now and then a transport is not ready although it could be.
    fn is_delayed(&mut self, cx: &mut Context<'_>) -> bool {
        let is_delayed = self.random.chance(5);
        if is_delayed {
            cx.waker().wake_by_ref();
        }
        is_delayed
    }
}

fn broken() -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

impl Transport for LinkTransport {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        // A waker is cloned or called only outside of the lock of the executor, which is another one.
        let mut state = self.0.lock();
        if state.is_delayed(cx) {
            return Poll::Pending;
        }
        if state.arrived.is_empty() {
            if state.ended {
                state.end_read = true;
                // A peer that died resets the connection instead.
                let reset = state.unread && state.random.chance(50);
                return Poll::Ready(if reset { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(0) });
            }
            state.for_end[0] = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let most = state.arrived.len().min(buf.len());
        let count = if state.random.chance(70) { most } else { 1 + state.random.index(most) };
        if let Some(to) = buf.get_mut(..count) {
            state.arrived.copy_to_slice(to);
        }
        state.total_read += count;
        Poll::Ready(Ok(count))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = self.0.lock();
        if state.unread {
            return Poll::Ready(Err(broken()));
        }
        if state.is_delayed(cx) {
            return Poll::Pending;
        }
        let most = state.capacity.saturating_sub(state.written.len()).min(buf.len());
        if most == 0 {
            state.for_end[1] = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let count = if state.random.chance(70) { most } else { 1 + state.random.index(most) };
        state.written.extend_from_slice(buf.get(..count).unwrap_or_default());
        state.total_written += count;
        let (waker, tap) = (state.for_reader.take(), state.tap.clone());
        wake(state, [waker]);
        if let Some(tap) = tap {
            tap(buf.get(..count).unwrap_or_default());
        }
        Poll::Ready(Ok(count))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.0.lock();
        if state.unread {
            return Poll::Ready(Err(broken()));
        }
        if state.is_delayed(cx) { Poll::Pending } else { Poll::Ready(Ok(())) }
    }

    fn poll_hangup(&mut self, cx: &mut Context<'_>) -> Poll<HangupDirection> {
        let mut state = self.0.lock();
        if state.ended && !state.reported.0 {
            state.reported.0 = true;
            return Poll::Ready(HangupDirection::Input);
        }
        if state.unread && !state.reported.1 {
            state.reported.1 = true;
            return Poll::Ready(HangupDirection::Output);
        }
        state.for_end[2] = Some(cx.waker().clone());
        Poll::Pending
    }

    fn poll_close(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.0.lock();
        state.dropped = true;
        let waker = state.for_reader.take();
        wake(state, [waker]);
        Poll::Ready(Ok(()))
    }
}

impl Drop for LinkTransport {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.dropped = true;
        let waker = state.for_reader.take();
        wake(state, [waker]);
    }
}
