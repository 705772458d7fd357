//! The log of the server-sent events of an MCP session (before 2026-07-28), stored so that a client can resume an event stream
//! after a disconnect.
//!
//! An MCP session has several event streams: one for each POST that is answered with events, and one that belongs to no
//! request. Each event is appended to one event stream, and its id consists of the stream and its position there. An HTTP
//! response reads the events of a stream through an [`SseEventLogCursor`]. An event stream has one cursor at a time. When a
//! client resumes an event stream, the new cursor replaces the cursor of the broken connection, so a message is never sent on
//! two responses at once.
//!
//! The event log never holds more than its limits, never returns an event of another stream, and never skips an event: a cursor
//! whose next event was dropped gets [`SseEventLogRead::Lost`].

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use crate::Moment;

/// Identifies one event stream of an MCP session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SseStreamKey(u64);

/// Identifies one server-sent event: its stream and its position there. The id is unique in the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    stream: SseStreamKey,
    place: u64,
}

impl EventId {
    /// Parses an event id as [`fmt::Display`] writes it; other spellings are refused.
    ///
    /// ```
    /// use steadfast_proto::http::resume::EventId;
    /// assert_eq!(EventId::parse("3-14").unwrap().to_string(), "3-14");
    /// assert!(EventId::parse("3-014").is_none() && EventId::parse("+3-1").is_none() && EventId::parse("3").is_none());
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let (stream, place) = text.split_once('-')?;
        let id = Self { stream: SseStreamKey(stream.parse().ok()?), place: place.parse().ok()? };
        // Others may compare ids as strings, so that each id has one spelling.
        (id.to_string() == text).then_some(id)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.stream.0, self.place)
    }
}

/// The limits of the event log of a session: how many events it stores, and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SseEventLogLimits {
    /// The maximum number of stored events. The default of 4,096 is enough for a few calls that constantly report progress.
    pub events: usize,
    /// The maximum number of bytes of all stored events. Events that were already read are dropped first; the newest event is
    /// stored whatever its size.
    pub bytes: usize,
    /// The maximum number of bytes of stored events if none of them was read yet. A response has to be readable at least once:
    /// events of other streams do not displace the response before it was read. The default of 64 MiB is several messages of
    /// the maximum length.
    pub unread_bytes: usize,
    /// The maximum time for which an event is stored. The default is 5 minutes: after a longer disconnect clients start a new
    /// session.
    pub age: Duration,
}

impl Default for SseEventLogLimits {
    fn default() -> Self {
        Self { events: 4_096, bytes: 4 << 20, unread_bytes: 64 << 20, age: Duration::from_secs(300) }
    }
}

/// The stored server-sent events of one MCP session. The type `B` is the bytes of one event, and is cheap to clone.
#[derive(Debug, Clone)]
pub struct SseEventLog<B> {
    limits: SseEventLogLimits,
    streams: BTreeMap<SseStreamKey, SseEventLogStream<B>>,
    /// When each stored event was appended, and to which stream, oldest first. The first stored event of a stream is its
    /// oldest.
    order: VecDeque<(Moment, SseStreamKey)>,
    bytes: usize,
    next_stream: u64,
}

#[derive(Debug, Clone)]
struct SseEventLogStream<B> {
    events: VecDeque<B>,
    /// The position of the first stored event of the stream.
    first: u64,
    /// The position of the first event of the stream that was not read yet.
    unread: u64,
    /// The number of cursors that were opened on this event stream, which is also the number of the newest cursor: only the
    /// newest cursor can read.
    cursors: u64,
    closed: bool,
    /// A cursor that was cut off although the event stream continues: the number of the cursor, and the position at which it
    /// ends.
    cut: Option<(u64, u64)>,
}

impl<B> SseEventLogStream<B> {
    /// The position of the next event that is appended to the stream.
    fn next(&self) -> u64 {
        self.first + self.events.len() as u64
    }
}

/// The position of a reader in an event stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEventLogCursor {
    stream: SseStreamKey,
    next: u64,
    number: u64,
}

impl SseEventLogCursor {
    /// The event stream that this cursor reads.
    pub fn stream(&self) -> SseStreamKey {
        self.stream
    }
}

/// The result of reading an event stream with a cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SseEventLogRead<B> {
    /// The next event.
    Event(B),
    /// Nothing yet.
    Waiting,
    /// The event stream has ended and all its events were read.
    Ended,
    /// This cursor must not read further: it was cut off, or a newer cursor reads the event stream.
    Superseded,
    /// The next event of the stream is no longer stored, so this cursor cannot continue.
    Lost,
}

/// The error for an event id that names no event, or an event whose successors are not all stored any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownEventId;

impl fmt::Display for UnknownEventId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Last-Event-ID names no event of this session that can be resumed from")
    }
}

impl std::error::Error for UnknownEventId {}

impl<B: AsRef<[u8]> + Clone> SseEventLog<B> {
    /// An empty log.
    pub fn new(limits: SseEventLogLimits) -> Self {
        Self { limits, streams: BTreeMap::new(), order: VecDeque::new(), bytes: 0, next_stream: 0 }
    }

    /// The current number of stored events.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether the log of server-sent events is empty.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The current number of bytes of the stored events.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The current number of unread events of an event stream.
    pub fn unread(&self, stream: SseStreamKey) -> usize {
        let unread = self.streams.get(&stream).map_or(0, |stream| stream.next() - stream.unread.max(stream.first));
        usize::try_from(unread).unwrap_or(usize::MAX)
    }

    /// Begins a stream.
    pub fn open(&mut self) -> SseStreamKey {
        let key = SseStreamKey(self.next_stream);
        self.next_stream += 1;
        let stream =
            SseEventLogStream { events: VecDeque::new(), first: 0, unread: 0, cursors: 0, closed: false, cut: None };
        self.streams.insert(key, stream);
        key
    }

    /// Appends an event to an event stream; `write` encodes the event with its id. Returns `None` if the event stream has
    /// ended.
    pub fn append(&mut self, now: Moment, key: SseStreamKey, write: impl FnOnce(EventId) -> B) -> Option<EventId> {
        self.expire(now);
        let stream = self.streams.get_mut(&key).filter(|stream| !stream.closed)?;
        let id = EventId { stream: key, place: stream.next() };
        let body = write(id);
        self.bytes += body.as_ref().len();
        stream.events.push_back(body);
        self.order.push_back((now, key));
        self.make_room();
        Some(id)
    }

    /// Ends an event stream: nothing more is appended. The events of an ended stream can be read until they expire.
    pub fn close(&mut self, key: SseStreamKey) {
        if let Some(stream) = self.streams.get_mut(&key) {
            stream.closed = true;
            self.forget_if_done(key);
        }
    }

    /// Drops the unread events of an event stream, because its request was cancelled.
    pub fn withdraw(&mut self, key: SseStreamKey) {
        let Some(stream) = self.streams.get_mut(&key) else { return };
        while stream.next() > stream.unread.max(stream.first) {
            let Some(event) = stream.events.pop_back() else { break };
            self.bytes -= event.as_ref().len();
            if let Some(place) = self.order.iter().rposition(|(_, of)| *of == key) {
                self.order.remove(place);
            }
        }
    }

    /// Opens a cursor at the first unread event of an event stream.
    pub fn attach(&mut self, key: SseStreamKey) -> Option<SseEventLogCursor> {
        let stream = self.streams.get_mut(&key)?;
        stream.cursors += 1;
        // Events may have expired unread; a new reader does not miss them.
        let next = stream.unread.max(stream.first);
        Some(SseEventLogCursor { stream: key, next, number: stream.cursors })
    }

    /// Opens a cursor after the last event that a client has received, so that the client can resume the event stream.
    pub fn resume(&mut self, last_event_id: &str) -> Result<SseEventLogCursor, UnknownEventId> {
        let id = EventId::parse(last_event_id).ok_or(UnknownEventId)?;
        let stream = self.streams.get_mut(&id.stream).ok_or(UnknownEventId)?;
        let next = id.place.checked_add(u64::from(!crate::mutant!(ResumeTooEarly))).ok_or(UnknownEventId)?;
        // The event must exist, and none after it may be missing.
        if next > stream.unread || next < stream.first {
            return Err(UnknownEventId);
        }
        stream.cursors += 1;
        Ok(SseEventLogCursor { stream: id.stream, next, number: stream.cursors })
    }

    /// Reads the next event of an event stream and advances the cursor.
    pub fn read(&mut self, cursor: &mut SseEventLogCursor) -> SseEventLogRead<B> {
        // An unknown stream has ended, and its last event was read or has expired.
        let Some(stream) = self.streams.get_mut(&cursor.stream) else { return SseEventLogRead::Ended };
        let cut = stream.cut.is_some_and(|(number, place)| number == cursor.number && cursor.next >= place);
        if cut || cursor.number != stream.cursors {
            return SseEventLogRead::Superseded;
        }
        let Some(place) = cursor.next.checked_sub(stream.first) else { return SseEventLogRead::Lost };
        match usize::try_from(place).ok().and_then(|place| stream.events.get(place)) {
            Some(event) => {
                cursor.next += 1;
                stream.unread = stream.unread.max(cursor.next);
                SseEventLogRead::Event(event.clone())
            }
            None if stream.closed => SseEventLogRead::Ended,
            None => SseEventLogRead::Waiting,
        }
    }

    /// Ends the current cursor of an event stream after the events so far. The client may resume the stream with the id of the
    /// last event.
    pub fn cut(&mut self, key: SseStreamKey) {
        if let Some(stream) = self.streams.get_mut(&key) {
            stream.cut = Some((stream.cursors, stream.next()));
        }
    }

    /// Whether `cursor` is the newest cursor of its event stream; only the newest cursor can read the stream.
    pub fn is_current(&self, cursor: &SseEventLogCursor) -> bool {
        self.streams.get(&cursor.stream).is_some_and(|stream| stream.cursors == cursor.number)
    }

    /// Drops stored events that are older than the limit.
    pub fn expire(&mut self, now: Moment) {
        while self.order.front().is_some_and(|(appended, _)| *appended + self.limits.age <= now) {
            self.drop_event(0);
        }
    }

    /// The next time at which [`SseEventLog::expire`] has an event to drop.
    pub fn next_expiry(&self) -> Option<Moment> {
        self.order.front().map(|(appended, _)| *appended + self.limits.age)
    }

    /// Drops stored events above the limits: first events that were read, which are stored only for clients that resume, then
    /// unread events.
    fn make_room(&mut self) {
        while self.order.len() > 1 {
            let too_many = self.order.len() > self.limits.events;
            if !too_many && self.bytes <= self.limits.bytes {
                break;
            }
            match self.oldest_read() {
                Some(place) => self.drop_event(place),
                None if too_many || self.bytes > self.limits.unread_bytes => self.drop_event(0),
                None => break,
            }
        }
    }

    /// The index of the oldest event that was read. The oldest event that was read is the first stored event of its stream,
    /// since events are read in order.
    fn oldest_read(&self) -> Option<usize> {
        let read = |key: &SseStreamKey| self.streams.get(key).is_some_and(|stream| stream.first < stream.unread);
        self.order.iter().position(|(_, key)| read(key))
    }

    /// Drops a stored event that is the oldest of its event stream.
    fn drop_event(&mut self, place: usize) {
        let Some((_, key)) = self.order.remove(place) else { return };
        if let Some(stream) = self.streams.get_mut(&key)
            && let Some(event) = stream.events.pop_front()
        {
            stream.first += 1;
            self.bytes -= event.as_ref().len();
        }
        self.forget_if_done(key);
    }

    /// Removes an event stream from the log if it has ended and its last event was dropped.
    fn forget_if_done(&mut self, key: SseStreamKey) {
        if self.streams.get(&key).is_some_and(|stream| stream.closed && stream.events.is_empty()) {
            self.streams.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: u64) -> Moment {
        Moment::after_origin(Duration::from_secs(seconds))
    }

    fn log() -> SseEventLog<Vec<u8>> {
        SseEventLog::new(SseEventLogLimits::default())
    }

    fn limited(events: usize, bytes: usize) -> SseEventLog<Vec<u8>> {
        SseEventLog::new(SseEventLogLimits { events, bytes, ..SseEventLogLimits::default() })
    }

    fn append(log: &mut SseEventLog<Vec<u8>>, stream: SseStreamKey, body: &str) -> String {
        log.append(at(0), stream, |_| body.as_bytes().to_vec()).unwrap().to_string()
    }

    fn rest(log: &mut SseEventLog<Vec<u8>>, cursor: &mut SseEventLogCursor) -> (Vec<String>, SseEventLogRead<Vec<u8>>) {
        let mut found = Vec::new();
        loop {
            match log.read(cursor) {
                SseEventLogRead::Event(event) => found.push(String::from_utf8(event).unwrap()),
                other => return (found, other),
            }
        }
    }

    #[test]
    fn a_client_can_resume_from_the_same_event_repeatedly() {
        let mut log = log();
        let stream = log.open();
        let first = append(&mut log, stream, "a");
        append(&mut log, stream, "b");
        let mut cursor = log.attach(stream).unwrap();
        rest(&mut log, &mut cursor);
        append(&mut log, stream, "c");
        log.close(stream);
        for _ in 0..3 {
            let mut cursor = log.resume(&first).unwrap();
            assert_eq!(rest(&mut log, &mut cursor), (vec!["b".into(), "c".into()], SseEventLogRead::Ended));
        }
    }

    #[test]
    fn events_of_other_streams_are_never_returned() {
        let mut log = log();
        let (one, two) = (log.open(), log.open());
        let first = append(&mut log, one, "a");
        append(&mut log, two, "x");
        append(&mut log, one, "b");
        let mut cursor = log.attach(one).unwrap();
        rest(&mut log, &mut cursor);
        let mut cursor = log.resume(&first).unwrap();
        assert_eq!(rest(&mut log, &mut cursor), (vec!["b".into()], SseEventLogRead::Waiting));
    }

    #[test]
    fn ids_are_unique_in_the_session() {
        let mut log = log();
        let (one, two) = (log.open(), log.open());
        let mut ids: Vec<String> =
            (0..4).map(|turn| append(&mut log, if turn % 2 == 0 { one } else { two }, "")).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 4);
    }

    #[test]
    fn an_unknown_event_id_is_refused() {
        let mut log = log();
        let stream = log.open();
        let unread = append(&mut log, stream, "a");
        for id in ["", "0", "0-1", "1-0", "x-0", "0-00", " 0-0", "0-18446744073709551615", &unread] {
            assert_eq!(log.resume(id), Err(UnknownEventId), "{id}");
        }
    }

    #[test]
    fn a_new_cursor_supersedes_the_one_before() {
        let mut log = log();
        let stream = log.open();
        let mut old = log.attach(stream).unwrap();
        let id = append(&mut log, stream, "a");
        assert_eq!(log.read(&mut old), SseEventLogRead::Event(b"a".to_vec()));
        let mut new = log.resume(&id).unwrap();
        append(&mut log, stream, "b");
        assert_eq!(log.read(&mut old), SseEventLogRead::Superseded);
        assert_eq!(log.read(&mut new), SseEventLogRead::Event(b"b".to_vec()));
        assert!(log.is_current(&new) && !log.is_current(&old));
    }

    #[test]
    fn a_cut_ends_the_cursor_and_not_the_stream() {
        let mut log = log();
        let stream = log.open();
        let mut cursor = log.attach(stream).unwrap();
        let id = append(&mut log, stream, "a");
        log.cut(stream);
        append(&mut log, stream, "b");
        assert_eq!(rest(&mut log, &mut cursor), (vec!["a".into()], SseEventLogRead::Superseded));
        let mut again = log.resume(&id).unwrap();
        assert_eq!(rest(&mut log, &mut again), (vec!["b".into()], SseEventLogRead::Waiting));
    }

    #[test]
    fn a_new_cursor_starts_at_the_first_unread_event() {
        let mut log = log();
        let stream = log.open();
        append(&mut log, stream, "a");
        let mut first = log.attach(stream).unwrap();
        log.read(&mut first);
        append(&mut log, stream, "b");
        assert_eq!(log.unread(stream), 1);
        let mut second = log.attach(stream).unwrap();
        assert_eq!(rest(&mut log, &mut second), (vec!["b".into()], SseEventLogRead::Waiting));
    }

    #[test]
    fn the_oldest_events_are_dropped_first_and_never_the_newest() {
        let mut log = limited(2, 8);
        let stream = log.open();
        let mut cursor = log.attach(stream).unwrap();
        let first = append(&mut log, stream, "a");
        log.read(&mut cursor);
        append(&mut log, stream, "b");
        append(&mut log, stream, "c");
        assert_eq!((log.len(), log.bytes()), (2, 2));
        let mut cursor = log.resume(&first).expect("what comes after it is still there");
        rest(&mut log, &mut cursor);
        append(&mut log, stream, "far more than the limit");
        assert_eq!(log.len(), 1);
        assert_eq!(log.resume(&first), Err(UnknownEventId), "something after it is gone");
    }

    #[test]
    fn a_slow_reader_gets_lost_events_as_lost() {
        let mut log = limited(1, 100);
        let stream = log.open();
        let mut cursor = log.attach(stream).unwrap();
        append(&mut log, stream, "a");
        append(&mut log, stream, "b");
        assert_eq!(log.read(&mut cursor), SseEventLogRead::Lost);
    }

    #[test]
    fn events_expire_with_age_and_take_their_closed_stream_along() {
        let mut log = log();
        let stream = log.open();
        let mut cursor = log.attach(stream).unwrap();
        let id = append(&mut log, stream, "a");
        log.read(&mut cursor);
        log.close(stream);
        assert_eq!(log.next_expiry(), Some(at(300)));
        log.expire(at(299));
        assert!(log.resume(&id).is_ok());
        log.expire(at(300));
        assert_eq!(log.resume(&id), Err(UnknownEventId));
        assert!(log.is_empty() && log.streams.is_empty() && log.bytes() == 0);
    }

    #[test]
    fn an_open_stream_outlives_its_events() {
        let mut log = log();
        let stream = log.open();
        let mut cursor = log.attach(stream).unwrap();
        let id = append(&mut log, stream, "a");
        log.read(&mut cursor);
        log.expire(at(1000));
        let mut cursor = log.resume(&id).unwrap();
        log.append(at(1000), stream, |_| b"b".to_vec()).unwrap();
        assert_eq!(rest(&mut log, &mut cursor), (vec!["b".into()], SseEventLogRead::Waiting));
    }

    #[test]
    fn withdrawn_events_are_never_read_and_read_events_can_be_resumed() {
        let mut log = log();
        let (stream, other) = (log.open(), log.open());
        let first = append(&mut log, stream, "a");
        append(&mut log, stream, "b");
        append(&mut log, other, "x");
        append(&mut log, stream, "c");
        let mut cursor = log.attach(stream).unwrap();
        log.read(&mut cursor);
        log.read(&mut cursor);
        log.withdraw(stream);
        log.close(stream);
        assert_eq!(log.read(&mut cursor), SseEventLogRead::Ended);
        let mut again = log.resume(&first).unwrap();
        assert_eq!(rest(&mut log, &mut again), (vec!["b".into()], SseEventLogRead::Ended));
        let mut cursor = log.attach(other).unwrap();
        assert_eq!(rest(&mut log, &mut cursor), (vec!["x".into()], SseEventLogRead::Waiting));
        assert_eq!((log.len(), log.bytes()), (3, 3));
    }

    #[test]
    fn nothing_is_appended_to_a_stream_that_has_ended() {
        let mut log = log();
        let stream = log.open();
        log.close(stream);
        assert_eq!(log.append(at(0), stream, |_| Vec::new()), None);
    }

    #[test]
    fn unread_events_are_not_dropped_for_other_streams() {
        let mut log =
            SseEventLog::new(SseEventLogLimits { bytes: 8, unread_bytes: 30, ..SseEventLogLimits::default() });
        let (one, two) = (log.open(), log.open());
        let (mut first, mut second) = (log.attach(one).unwrap(), log.attach(two).unwrap());
        append(&mut log, one, "a long answer");
        append(&mut log, two, "another one");
        assert_eq!(rest(&mut log, &mut first).0, ["a long answer"]);
        append(&mut log, two, "x");
        assert_eq!(log.len(), 2, "what was read goes when there is too much");
        append(&mut log, two, "more than may be left unread");
        assert_eq!((rest(&mut log, &mut second), log.len()), ((Vec::new(), SseEventLogRead::Lost), 2));
    }

    proptest! {
        /// Wherever a stream is cut, a client that resumes gets every event once and in order, or an error.
        #[test]
        fn a_client_that_resumes_gets_every_event_once_and_in_order(
            steps in proptest::collection::vec((0_u8..4, 0_usize..2), 1..120),
        ) {
            let mut log = limited(8, 1000);
            let streams = [log.open(), log.open()];
            let mut cursors = streams.map(|stream| log.attach(stream));
            let mut sent = [Vec::new(), Vec::new()];
            let mut seen = [Vec::<String>::new(), Vec::new()];
            let mut gone = [false; 2];
            for (step, which) in steps {
                match step {
                    0 => {
                        let id = log.append(at(0), streams[which], |id| id.to_string().into_bytes()).unwrap();
                        sent[which].push(id.to_string());
                    }
                    1 | 2 if !gone[which] => {
                        let Some(cursor) = &mut cursors[which] else { continue };
                        match log.read(cursor) {
                            SseEventLogRead::Event(event) => seen[which].push(String::from_utf8(event).unwrap()),
                            SseEventLogRead::Lost => gone[which] = true,
                            SseEventLogRead::Waiting => prop_assert_eq!(&seen[which], &sent[which]),
                            other => prop_assert!(false, "{:?}", other),
                        }
                    }
                    _ => {
                        let Some(last) = seen[which].last() else { continue };
                        match log.resume(last) {
                            Ok(cursor) => { prop_assert!(!gone[which]); cursors[which] = Some(cursor); }
                            Err(UnknownEventId) => gone[which] = true,
                        }
                    }
                }
                prop_assert!(sent[which].starts_with(&seen[which]));
            }
        }
    }
}
