//! How long to wait before a stream is opened again, and how often that is tried.
//!
//! A server is never come back to earlier than it says (`retry`), however long that is: a call has its own deadline, and nobody
//! waits for the server's stream. Beyond that, what comes to nothing is tried less and less often.

use std::time::Duration;

use steadfast_proto::Moment;

use crate::runtime::Runtime;
use crate::runtime::timeout::{exponential_backoff, with_jitter};

/// The first pause, if the server does not say; it doubles from there.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// A stream that lasted this long was not opened for nothing, though there was nothing to say.
const LASTED: Duration = Duration::from_secs(10);

/// How often a stream was opened again, and what came of it.
pub(crate) struct StreamBackoff {
    /// How often in a row a server that cannot be reached is tried.
    most: u32,
    /// No pause grows longer than this by itself.
    longest: Duration,
    /// Attempts in a row that have not opened it.
    in_vain: u32,
    /// How often in a row it was opened and nothing came of it. That has no end: a server may have its client ask for as long
    /// as it works.
    empty: u32,
    opened: Option<Moment>,
}

impl StreamBackoff {
    /// For the rest of an answer: somebody waits for it. A server that is gone is given up after pauses of 20 seconds at most, all
    /// together.
    pub(crate) fn of_an_answer() -> Self {
        Self::new(7, Duration::from_secs(6))
    }

    /// For the stream on which the server speaks first: nobody waits, but what is not heard is not known.
    pub(crate) fn of_the_server() -> Self {
        Self::new(10, Duration::from_secs(10))
    }

    fn new(most: u32, longest: Duration) -> Self {
        Self { most, longest, in_vain: 0, empty: 0, opened: None }
    }

    /// It was opened again.
    pub(crate) fn note_opened(&mut self, now: Moment) {
        self.in_vain = 0;
        self.empty = self.empty.saturating_add(1);
        self.opened = Some(now);
    }

    /// Something came of it.
    pub(crate) fn note_message(&mut self) {
        self.empty = 0;
    }

    /// The pause before the next attempt, if the server wants to be left alone for so long; `None` after the last.
    pub(crate) fn pause(&mut self, retry: Option<Duration>, runtime: &dyn Runtime) -> Option<Duration> {
        if self.opened.take().is_some_and(|opened| runtime.now().since(opened) >= LASTED) {
            self.empty = 0;
        }
        if self.in_vain >= self.most {
            return None;
        }
        let times = self.in_vain.saturating_add(self.empty);
        self.in_vain += 1;
        let own = match (times, retry) {
            // What went well so far goes on as the server says.
            (0, Some(_)) => Duration::ZERO,
            (times, _) => with_jitter(runtime, exponential_backoff(FIRST_PAUSE, times.saturating_sub(1), self.longest)),
        };
        Some(own.max(retry.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::frozen::FrozenRuntime;

    fn at(millis: u64) -> Moment {
        Moment::after_origin(Duration::from_millis(millis))
    }

    /// With the shortest pauses that there can be.
    fn shortest(millis: u64) -> FrozenRuntime {
        FrozenRuntime { now: at(millis), random_byte: 0 }
    }

    fn millis(pause: Option<Duration>) -> Option<u128> {
        pause.map(|pause| pause.as_millis())
    }

    /// The pauses of a server that cannot be reached.
    fn in_vain(mut backoff: StreamBackoff, retry: Option<Duration>, chance: u8) -> Vec<Duration> {
        let still = FrozenRuntime { now: at(0), random_byte: chance };
        std::iter::from_fn(|| backoff.pause(retry, &still)).take(1_000).collect()
    }

    #[test]
    fn attempts_in_vain_grow_apart_and_come_to_an_end() {
        let halves = |pauses: &[u64]| pauses.iter().map(|pause| Duration::from_millis(pause / 2)).collect::<Vec<_>>();
        assert_eq!(
            in_vain(StreamBackoff::of_an_answer(), None, 0),
            halves(&[500, 500, 1_000, 2_000, 4_000, 6_000, 6_000])
        );
        assert_eq!(
            in_vain(StreamBackoff::of_the_server(), None, 0),
            halves(&[500, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000, 10_000])
        );
    }

    #[test]
    fn a_call_does_not_wait_long_for_a_server_that_is_gone_whatever_chance_says() {
        let total = |chance| in_vain(StreamBackoff::of_an_answer(), None, chance).iter().sum::<Duration>();
        assert!(total(0) >= Duration::from_secs(5), "{:?}", total(0));
        assert!(total(u8::MAX) <= Duration::from_secs(20), "{:?}", total(u8::MAX));
        assert!(total(0) < total(128) && total(128) < total(u8::MAX), "there is chance in it");
    }

    #[test]
    fn nobody_comes_back_earlier_than_the_server_says_however_long_that_is() {
        for retry in [0, 1, 700, 60_000, 300_001, 86_400_000, u64::MAX].map(Duration::from_millis) {
            let mut backoff = StreamBackoff::of_an_answer();
            assert_eq!(backoff.pause(Some(retry), &shortest(0)), Some(retry), "the first time exactly then");
            for pause in in_vain(backoff, Some(retry), 0) {
                assert!(pause >= retry, "{pause:?} of {retry:?}");
            }
            let mut backoff = StreamBackoff::of_the_server();
            for _ in 0..20 {
                backoff.note_opened(at(0));
                let pause = backoff.pause(Some(retry), &shortest(0));
                assert!(pause.is_some_and(|pause| pause >= retry), "{pause:?} of {retry:?}");
            }
        }
    }

    #[test]
    fn every_stream_that_opens_empty_is_opened_less_often_and_without_end() {
        for (retry, expected) in [
            (None, [250, 500, 1_000, 2_000, 3_000, 3_000]),
            (Some(0), [250, 500, 1_000, 2_000, 3_000, 3_000]),
            (Some(99), [250, 500, 1_000, 2_000, 3_000, 3_000]),
            (Some(700), [700, 700, 1_000, 2_000, 3_000, 3_000]),
            (Some(8_000), [8_000; 6]),
        ] {
            let mut backoff = StreamBackoff::of_an_answer();
            let mut next = || {
                backoff.note_opened(at(0));
                millis(backoff.pause(retry.map(Duration::from_millis), &shortest(0)))
            };
            assert_eq!([(); 6].map(|()| next()), expected.map(Some), "retry {retry:?}");
            assert!((0..1_000).all(|_| next() == Some(expected[5])), "retry {retry:?}");
        }
    }

    #[test]
    fn a_message_and_a_stream_that_lasted_begin_it_anew() {
        let retry = Some(Duration::from_millis(5));
        for (says, lasted, pause) in [(true, 0, 5), (false, 10_000, 5), (false, 9_999, 1_000)] {
            let mut backoff = StreamBackoff::of_the_server();
            for _ in 0..3 {
                backoff.note_opened(at(0));
            }
            if says {
                backoff.note_message();
            }
            assert_eq!(millis(backoff.pause(retry, &shortest(lasted))), Some(pause), "says {says}, lasted {lasted}");
        }
    }

    #[test]
    fn a_server_that_is_reached_again_has_all_its_attempts() {
        let mut backoff = StreamBackoff::of_an_answer();
        for _ in 0..7 {
            assert!(backoff.pause(None, &shortest(0)).is_some());
        }
        backoff.note_opened(at(0));
        backoff.note_message();
        assert_eq!(in_vain(backoff, None, 0).len(), 7);
    }
}
