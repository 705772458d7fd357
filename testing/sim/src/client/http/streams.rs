//! What the server has written on each of its responses, and how much of it was read.

use std::collections::BTreeMap;
use std::task::{Context, Poll, Waker};

use steadfast_proto::Moment;

use crate::observation::message::Id;
use crate::script::rng::Random;

/// All responses, and how the server does.
pub(super) struct State {
    pub(super) random: Random,
    streams: Vec<Stream>,
    /// What was read, by receipt.
    read: Vec<bool>,
    /// Where the client listens to what belongs to no request.
    pub(super) listening: Option<usize>,
    /// The connection that this is of.
    pub(super) listening_link: usize,
    pub(super) down: bool,
    /// How often a connection was opened. A session has the number of its connection.
    pub(super) links: usize,
    /// Sessions of the connections before this one are forgotten.
    pub(super) first_known: usize,
    /// When the client learned that the session of a connection is lost.
    pub(super) lost: BTreeMap<usize, Moment>,
    /// The client has let go.
    pub(super) dropped: bool,
}

/// One stream, over however many responses.
#[derive(Default)]
pub(super) struct Stream {
    /// Of the request that it answers.
    pub(super) id: Option<Id>,
    pub(super) named: bool,
    /// It is not a stream of events, but one message.
    pub(super) json: bool,
    /// Its responses break after so many bytes.
    pub(super) cut: Option<usize>,
    /// They end there as if that was all.
    pub(super) clean: bool,
    pub(super) finished: bool,
    pub(super) answered: bool,
    pub(super) events: Vec<(Vec<u8>, Option<usize>)>,
    /// Events that were read to their end.
    pub(super) whole: usize,
    pub(super) wakers: Vec<Waker>,
}

impl State {
    pub(super) fn new(random: Random) -> Self {
        let (streams, read) = (Vec::new(), Vec::new());
        Self {
            random,
            streams,
            read,
            listening: None,
            listening_link: 0,
            down: false,
            links: 0,
            first_known: 0,
            lost: BTreeMap::new(),
            dropped: false,
        }
    }

    pub(super) fn open(&mut self, stream: Stream) -> usize {
        self.streams.push(stream);
        self.streams.len() - 1
    }

    pub(super) fn was_read(&self, receipt: usize) -> bool {
        self.read.get(receipt).copied().unwrap_or_default()
    }

    /// Puts a message on a stream. The receipt shows whether it was read; there is none if the stream is over.
    pub(super) fn push(&mut self, number: usize, message: &[u8], last: bool) -> Option<usize> {
        let (ends, receipt) = (self.random.chance(70), self.read.len());
        let stream = self.streams.get_mut(number)?;
        if stream.finished || (stream.json && !last) {
            return None;
        }
        let event = if stream.json {
            message.to_vec()
        } else {
            let id = if stream.named { format!("id: e{number}.{}\n", stream.events.len()) } else { String::new() };
            [id.as_bytes(), b"data: ", message, b"\n\n"].concat()
        };
        stream.events.push((event, Some(receipt)));
        // What comes after the response belongs to no request.
        let late = stream.answered;
        stream.answered |= last;
        // A server may leave the HTTP response open after the JSON-RPC response, or send more.
        stream.finished |= last && (stream.json || ends);
        self.read.push(false);
        (!late).then_some(receipt)
    }

    /// Puts a part of a message on a stream.
    pub(super) fn tear(&mut self, number: usize, message: &[u8]) {
        if let Some(stream) = self.streams.get_mut(number).filter(|stream| !stream.finished && !stream.json) {
            let half = message.get(..message.len() / 2).unwrap_or_default();
            stream.events.push(([b"data: ", half].concat(), None));
        }
    }

    /// Ends streams. Returns the requests that are not answered, and who waits.
    pub(super) fn end(&mut self, which: impl Fn(usize) -> bool) -> (Vec<Id>, Vec<Waker>) {
        let (mut ids, mut wakers) = (Vec::new(), Vec::new());
        for (number, stream) in self.streams.iter_mut().enumerate() {
            if which(number) && !stream.finished {
                stream.finished = true;
                ids.extend(stream.id.clone().filter(|_| !stream.answered));
            }
            if which(number) {
                wakers.append(&mut stream.wakers);
            }
        }
        (ids, wakers)
    }

    pub(super) fn take_wakers(&mut self, number: usize) -> Vec<Waker> {
        self.streams.get_mut(number).map(|stream| std::mem::take(&mut stream.wakers)).unwrap_or_default()
    }

    /// Ready when there is a message; false if there will be none.
    pub(super) fn poll_answer(&mut self, number: usize, cx: &mut Context<'_>) -> Poll<bool> {
        let down = self.down;
        let Some(stream) = self.streams.get_mut(number) else { return Poll::Ready(false) };
        if down || stream.finished || !stream.events.is_empty() {
            return Poll::Ready(!stream.events.is_empty() && !down);
        }
        stream.wakers.push(cx.waker().clone());
        Poll::Pending
    }

    /// The stream of an event, and the number of the next one.
    pub(super) fn after(event: &str) -> (usize, usize) {
        let parsed = event.strip_prefix('e').and_then(|rest| rest.split_once('.'));
        let parsed = parsed.and_then(|(stream, event)| Some((stream.parse().ok()?, event.parse::<usize>().ok()?)));
        parsed.map_or((usize::MAX, 0), |(stream, event)| (stream, event + 1))
    }

    /// How many events of a stream were read to their end.
    pub(super) fn whole(&self, number: usize) -> Option<usize> {
        self.streams.get(number).map(|stream| stream.whole)
    }

    /// How a response of this stream breaks.
    pub(super) fn cut(&mut self, number: usize, again: bool) -> (Option<usize>, bool) {
        let (spared, length) = (self.random.chance(50), 1 + self.random.index(400));
        let Some(stream) = self.streams.get(number) else { return (None, false) };
        let cut = if again && spared { None } else { stream.cut.map(|cut| if again { length } else { cut }) };
        (cut, stream.clean)
    }

    /// Some bytes of an event from a place in it on, at most so many: the bytes, and whether it has ended with them. `None` if
    /// there is nothing yet; then the waker is stored, unless there never will be.
    pub(super) fn read(
        &mut self,
        place: &mut (usize, usize),
        most: usize,
        number: usize,
        cx: &mut Context<'_>,
    ) -> Read {
        let chance = self.random.chance(60);
        let Some(stream) = self.streams.get_mut(number) else { return Read::End };
        let Some((event, receipt)) = stream.events.get(place.0) else {
            if stream.finished {
                for receipt in stream.events.iter().filter_map(|(_, receipt)| *receipt).filter(|_| stream.json) {
                    if let Some(read) = self.read.get_mut(receipt) {
                        *read = true;
                    }
                }
                return Read::End;
            }
            stream.wakers.push(cx.waker().clone());
            return Read::Nothing;
        };
        let rest = event.get(place.1..).unwrap_or_default();
        let length = rest.len().min(most);
        let count = if chance { length } else { (1 + self.random.index(length)).min(length) };
        let bytes = rest.get(..count).unwrap_or_default().to_vec();
        place.1 += count;
        if place.1 == event.len() {
            // What was torn has no end.
            if receipt.is_some() {
                stream.whole = stream.whole.max(place.0 + 1);
            }
            // One message is read when its end is.
            if let Some(read) = receipt.filter(|_| !stream.json).and_then(|receipt| self.read.get_mut(receipt)) {
                *read = true;
            }
            *place = (place.0 + 1, 0);
        }
        Read::Bytes(bytes)
    }
}

/// What there is to read.
pub(super) enum Read {
    Bytes(Vec<u8>),
    Nothing,
    End,
}
