//! One direction of a byte stream between the two ends: it delays, splits, merges, corrupts, stalls and breaks.
//!
//! It never reorders and never loses a byte silently: what is lost is lost with the connection, as on a pipe or a socket.

use std::collections::VecDeque;
use std::time::Duration;

use steadfast_proto::Moment;

use crate::script::rng::Random;

/// What a direction is like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The longest that bytes are on their way.
    pub(crate) delay: Duration,
    /// The most bytes that a write or a read takes at once.
    pub(crate) piece: usize,
    /// The most bytes that are on their way.
    pub(crate) capacity: usize,
    /// In how many of a thousand pieces a byte is changed.
    pub(crate) corrupt: u64,
    /// How many bytes the writer gathers before it writes.
    pub(crate) gather: usize,
}

impl Shape {
    /// Nothing in the way.
    pub(crate) fn ideal() -> Self {
        Self { delay: Duration::ZERO, piece: usize::MAX, capacity: usize::MAX, corrupt: 0, gather: 1 }
    }

    pub(crate) fn random(random: &mut Random, corrupt: bool) -> Self {
        if random.chance(20) {
            return Self { corrupt: if corrupt { 20 } else { 0 }, ..Self::ideal() };
        }
        Self {
            delay: Duration::from_micros(*random.pick(&[0, 50, 1_000, 20_000])),
            piece: *random.pick(&[3, 40, 400, 1 << 20]),
            capacity: *random.pick(&[64, 1_000, 1 << 20]),
            corrupt: if corrupt { *random.pick(&[5, 50, 200]) } else { 0 },
            gather: *random.pick(&[1, 300, 64 << 10]),
        }
    }
}

/// Writing failed: the stream is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Broken;

/// What a read gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Read {
    Bytes(Vec<u8>),
    /// Not before then, as far as is known.
    Later(Option<Moment>),
    /// The writer has ended, and everything that it wrote was read.
    End,
}

/// One direction.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    shape: Shape,
    random: Random,
    pieces: VecDeque<(Moment, Vec<u8>)>,
    /// Bytes on their way.
    held: usize,
    /// Nothing arrives before then.
    stalled_until: Moment,
    /// The writer has ended.
    ended: bool,
    /// The reader is gone.
    deaf: bool,
    /// Bytes were changed on the way, or lost.
    pub(crate) tainted: bool,
}

impl Link {
    pub(crate) fn new(shape: Shape, random: Random) -> Self {
        Self {
            shape,
            random,
            pieces: VecDeque::new(),
            held: 0,
            stalled_until: Moment::ORIGIN,
            ended: false,
            deaf: false,
            tainted: false,
        }
    }

    pub(crate) fn gather(&self) -> usize {
        self.shape.gather
    }

    /// Takes some of the bytes; none if it is full.
    pub(crate) fn write(&mut self, now: Moment, bytes: &[u8]) -> Result<usize, Broken> {
        if self.deaf || self.ended {
            return Err(Broken);
        }
        let room = self.shape.capacity.saturating_sub(self.held);
        let most = bytes.len().min(room).min(self.shape.piece);
        if most == 0 {
            return Ok(0);
        }
        let count = if most > 1 && self.random.chance(30) { 1 + self.random.index(most) } else { most };
        let mut piece = bytes[..count].to_vec();
        if self.random.below(1_000) < self.shape.corrupt {
            let place = self.random.index(piece.len());
            piece[place] ^= 1 << self.random.below(8);
            self.tainted = true;
        }
        self.held += piece.len();
        let last = self.pieces.back().map_or(now, |(ready, _)| *ready);
        let ready = (now + self.random.delay(self.shape.delay)).max(last);
        match self.pieces.back_mut() {
            // Two writes may be read as one.
            Some((_, before)) if self.random.chance(30) && before.len() + piece.len() <= self.shape.piece => {
                before.append(&mut piece);
            }
            _ => self.pieces.push_back((ready, piece)),
        }
        Ok(count)
    }

    /// Gives what has arrived.
    pub(crate) fn read(&mut self, now: Moment) -> Read {
        let Some((ready, _)) = self.pieces.front() else {
            return if self.ended { Read::End } else { Read::Later(None) };
        };
        let ready = (*ready).max(self.stalled_until);
        if ready > now {
            return Read::Later(Some(ready));
        }
        let piece = self.pieces.pop_front().map(|(_, piece)| piece).unwrap_or_default();
        self.held -= piece.len();
        Read::Bytes(piece)
    }

    /// Whether there is something to be read, now or later.
    pub(crate) fn is_waiting(&self) -> bool {
        self.ended || !self.pieces.is_empty()
    }

    /// Whether the writer has ended; something may be unread.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(crate) fn stall(&mut self, until: Moment) {
        self.stalled_until = self.stalled_until.max(until);
    }

    /// The writer has ended: what is on its way still arrives.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// The stream is cut: what is on its way is lost.
    pub(crate) fn cut(&mut self) {
        self.tainted |= !self.pieces.is_empty();
        self.pieces.clear();
        self.held = 0;
        self.ended = true;
    }

    /// The reader is gone.
    pub(crate) fn stop_reading(&mut self) {
        self.deaf = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(link: &mut Link, mut now: Moment) -> Vec<u8> {
        let mut bytes = Vec::new();
        loop {
            match link.read(now) {
                Read::Bytes(mut piece) => bytes.append(&mut piece),
                Read::Later(Some(when)) => now = when,
                Read::Later(None) | Read::End => return bytes,
            }
        }
    }

    #[test]
    fn bytes_arrive_in_order_whatever_the_shape() {
        for seed in 0..200 {
            let (mut random, mut choice) = (Random::new(seed, 0), Random::new(seed, 1));
            let mut link = Link::new(Shape::random(&mut random, false), random);
            let sent: Vec<u8> = (0..=255).collect();
            let (mut written, mut got) = (0, Vec::new());
            while written < sent.len() {
                let count = link.write(Moment::ORIGIN, &sent[written..]).unwrap();
                written += count;
                if count == 0 || choice.chance(50) {
                    got.append(&mut drain(&mut link, Moment::ORIGIN));
                }
            }
            got.append(&mut drain(&mut link, Moment::ORIGIN));
            assert_eq!(got, sent, "seed {seed}");
        }
    }

    #[test]
    fn an_end_comes_after_what_was_written_and_a_cut_does_not_wait() {
        let mut link = Link::new(Shape::ideal(), Random::new(0, 0));
        link.write(Moment::ORIGIN, b"ab").unwrap();
        link.end();
        assert_eq!(link.write(Moment::ORIGIN, b"c"), Err(Broken));
        assert!(matches!(link.read(Moment::ORIGIN), Read::Bytes(_)));
        assert_eq!(link.read(Moment::ORIGIN), Read::End);
        let mut link = Link::new(Shape::ideal(), Random::new(0, 0));
        link.write(Moment::ORIGIN, b"ab").unwrap();
        link.cut();
        assert_eq!(link.read(Moment::ORIGIN), Read::End);
        assert!(link.tainted);
    }
}
