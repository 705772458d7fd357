//! The log of a session's events: whatever is appended, read, cut, resumed and dropped, readers find what a plain list of
//! all events gives, and the limits hold.
//!
//! Input: text. A digit for the limits, then one letter for each thing that happens, with operands behind it: a stream, a
//! cursor or a place, each one character of which the low four bits count. What is no letter of these is nothing.

use std::time::Duration;

use steadfast_proto::Moment;
use steadfast_proto::http::resume::{SseEventLogCursor, SseEventLogRead, SseEventLog, SseEventLogLimits, SseStreamKey, UnknownEventId};

/// Runs the target.
pub fn run(bytes: &[u8]) {
    let mut bytes = bytes.iter().copied().filter(|byte| !byte.is_ascii_whitespace());
    let Some(kind) = bytes.next() else { return };
    let mut world = World::new(kind);
    while let Some(letter) = bytes.next() {
        let mut operand = || bytes.next().map(|byte| usize::from(byte & 15));
        let done = match letter {
            b'o' => Some(world.open()),
            b'a' => operand().zip(operand()).map(|(stream, length)| world.append(stream, length)),
            b'c' => operand().map(|stream| world.close(stream)),
            b'w' => operand().map(|stream| world.withdraw(stream)),
            b'x' => operand().map(|stream| world.cut(stream)),
            b'n' => operand().map(|stream| world.attach(stream)),
            b'r' => operand().zip(operand()).map(|(stream, place)| world.resume(&format!("{stream}-{place}"))),
            b's' => operand().zip(operand()).map(|(stream, place)| world.resume(&format!("{stream}-0{place}"))),
            b'g' => operand().map(|cursor| world.read(cursor)),
            b't' => operand().map(|seconds| world.wait(seconds)),
            _ => Some(()),
        };
        if done.is_none() {
            return;
        }
        world.check();
    }
}

/// The log, and beside it what it promises.
struct World {
    log: SseEventLog<Vec<u8>>,
    limits: SseEventLogLimits,
    now: Moment,
    keys: Vec<SseStreamKey>,
    cursors: Vec<(SseEventLogCursor, Reader)>,
    streams: Vec<Stream>,
    /// Every event that is kept, oldest first: when, on which stream, at which place, and its length.
    kept: Vec<(Moment, usize, u64, usize)>,
}

#[derive(Clone, Copy)]
struct Reader {
    stream: usize,
    next: u64,
    number: u64,
}

#[derive(Default)]
struct Stream {
    /// The places given so far.
    next: u64,
    /// The first place that nobody has read.
    unread: u64,
    /// The first place that is kept; what is before it is gone.
    first: u64,
    cursors: u64,
    cut: Option<(u64, u64)>,
    closed: bool,
    forgotten: bool,
}

impl World {
    fn new(kind: u8) -> Self {
        let mut limits = SseEventLogLimits::default();
        (limits.events, limits.bytes, limits.unread_bytes, limits.age) = match kind % 4 {
            0 => (4_096, 1 << 20, 1 << 21, Duration::from_secs(300)),
            1 => (3, 1 << 20, 1 << 21, Duration::from_secs(20)),
            2 => (8, 20, 40, Duration::from_secs(5)),
            _ => (0, 0, 0, Duration::ZERO),
        };
        let log = SseEventLog::new(limits.clone());
        let (keys, cursors, streams, kept) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { log, limits, now: Moment::ORIGIN, keys, cursors, streams, kept }
    }

    fn open(&mut self) {
        if self.keys.len() < 16 {
            self.keys.push(self.log.open());
            self.streams.push(Stream::default());
        }
    }

    fn append(&mut self, stream: usize, length: usize) {
        let Some(key) = self.keys.get(stream).copied() else { return };
        self.forget_old();
        let known = &mut self.streams[stream];
        let place = known.next;
        let body = |id: String| [id.as_bytes(), &vec![b'x'; length]].concat();
        let appended = self.log.append(self.now, key, |id| body(id.to_string()));
        if known.closed {
            assert_eq!(appended, None, "something is appended to a stream that has ended");
            return;
        }
        let id = format!("{stream}-{place}");
        assert_eq!(appended.map(|id| id.to_string()), Some(id.clone()), "the id of an event");
        known.next += 1;
        self.kept.push((self.now, stream, place, body(id).len()));
        self.make_room();
    }

    /// What was read goes first, and what was not only beyond its own limit.
    fn make_room(&mut self) {
        while self.kept.len() > 1 {
            let too_many = self.kept.len() > self.limits.events;
            if !too_many && self.bytes() <= self.limits.bytes {
                return;
            }
            let read = |(_, stream, place, _): &(Moment, usize, u64, usize)| *place < self.streams[*stream].unread;
            match self.kept.iter().position(read) {
                Some(at) => self.forget(at),
                None if too_many || self.bytes() > self.limits.unread_bytes => self.forget(0),
                None => return,
            }
        }
    }

    fn close(&mut self, stream: usize) {
        let Some(key) = self.keys.get(stream) else { return };
        self.log.close(*key);
        self.streams[stream].closed = true;
        self.forget_stream(stream);
    }

    fn withdraw(&mut self, stream: usize) {
        let Some(key) = self.keys.get(stream) else { return };
        self.log.withdraw(*key);
        let known = &mut self.streams[stream];
        if !known.forgotten {
            known.next = known.unread.max(known.first);
            let next = known.next;
            self.kept.retain(|(_, of, place, _)| *of != stream || *place < next);
        }
    }

    fn cut(&mut self, stream: usize) {
        let Some(key) = self.keys.get(stream) else { return };
        self.log.cut(*key);
        let known = &mut self.streams[stream];
        known.cut = Some((known.cursors, known.next));
    }

    fn attach(&mut self, stream: usize) {
        let Some(key) = self.keys.get(stream) else { return };
        let cursor = self.log.attach(*key);
        let known = &mut self.streams[stream];
        assert_eq!(cursor.is_none(), known.forgotten, "a stream is known as long as there is something of it");
        if let Some(cursor) = cursor {
            known.cursors += 1;
            let reader = Reader { stream, next: known.unread.max(known.first), number: known.cursors };
            self.cursors.push((cursor, reader));
        }
    }

    fn resume(&mut self, id: &str) {
        let resumed = self.log.resume(id);
        let named = id.split_once('-').and_then(|(stream, place)| {
            let canonical = place == "0" || !place.starts_with('0');
            Some((stream.parse::<usize>().ok()?, place.parse::<u64>().ok()?)).filter(|_| canonical)
        });
        let known = named.and_then(|(stream, place)| {
            let known = self.streams.get_mut(stream)?;
            let given_out = place < known.unread;
            let whole = place + 1 >= known.first;
            (given_out && whole && !known.forgotten).then_some((stream, place))
        });
        match (resumed, known) {
            (Err(UnknownEventId), None) => {}
            (Ok(cursor), Some((stream, place))) => {
                let known = &mut self.streams[stream];
                known.cursors += 1;
                self.cursors.push((cursor, Reader { stream, next: place + 1, number: known.cursors }));
            }
            (resumed, known) => panic!("{id} is {resumed:?}, and there is {known:?}"),
        }
    }

    fn read(&mut self, cursor: usize) {
        // The newest are the likely ones to find something.
        let Some(at) = self.cursors.len().checked_sub(1 + cursor) else { return };
        let (cursor, reader) = &mut self.cursors[at];
        let found = self.log.read(cursor);
        let known = &mut self.streams[reader.stream];
        let cut = known.cut.is_some_and(|(number, place)| number == reader.number && reader.next >= place);
        let is_kept = |place: u64| self.kept.iter().any(|(_, of, at, _)| *of == reader.stream && *at == place);
        let expected = if known.forgotten {
            SseEventLogRead::Ended
        } else if cut || reader.number != known.cursors {
            SseEventLogRead::Superseded
        } else if reader.next < known.first {
            SseEventLogRead::Lost
        } else if is_kept(reader.next) {
            SseEventLogRead::Event(())
        } else if known.closed {
            SseEventLogRead::Ended
        } else {
            SseEventLogRead::Waiting
        };
        let seen = match &found {
            SseEventLogRead::Event(_) => SseEventLogRead::Event(()),
            SseEventLogRead::Waiting => SseEventLogRead::Waiting,
            SseEventLogRead::Ended => SseEventLogRead::Ended,
            SseEventLogRead::Superseded => SseEventLogRead::Superseded,
            SseEventLogRead::Lost => SseEventLogRead::Lost,
        };
        assert_eq!(seen, expected, "what the cursor at {} of stream {} finds", reader.next, reader.stream);
        if let SseEventLogRead::Event(event) = found {
            let id = format!("{}-{}", reader.stream, reader.next);
            assert!(event.starts_with(id.as_bytes()), "the event {id} is {}", String::from_utf8_lossy(&event));
            reader.next += 1;
            known.unread = known.unread.max(reader.next);
        }
    }

    fn wait(&mut self, seconds: usize) {
        self.now = self.now + Duration::from_secs(seconds as u64);
        self.log.expire(self.now);
        self.forget_old();
    }

    fn bytes(&self) -> usize {
        self.kept.iter().map(|(_, _, _, length)| length).sum()
    }

    fn forget_old(&mut self) {
        while self.kept.first().is_some_and(|(when, ..)| *when + self.limits.age <= self.now) {
            self.forget(0);
        }
    }

    fn forget(&mut self, at: usize) {
        let (_, stream, place, _) = self.kept.remove(at);
        self.streams[stream].first = place + 1;
        self.forget_stream(stream);
    }

    fn forget_stream(&mut self, stream: usize) {
        let empty = !self.kept.iter().any(|(_, of, ..)| *of == stream);
        self.streams[stream].forgotten |= self.streams[stream].closed && empty;
    }

    fn check(&self) {
        assert_eq!((self.log.len(), self.log.bytes()), (self.kept.len(), self.bytes()), "what is kept");
        assert!(self.log.len() <= self.limits.events.max(1), "more events are kept than may be");
        let most = self.limits.bytes.max(self.limits.unread_bytes);
        assert!(self.log.bytes() <= most || self.log.len() == 1, "more bytes are kept than may be");
        assert_eq!(self.log.next_expiry(), self.kept.first().map(|(when, ..)| *when + self.limits.age));
        for (stream, key) in self.keys.iter().enumerate() {
            let known = &self.streams[stream];
            let unread = self.kept.iter().filter(|(_, of, place, _)| *of == stream && *place >= known.unread).count();
            assert_eq!(self.log.unread(*key), unread, "what is unread of stream {stream}");
        }
    }
}
