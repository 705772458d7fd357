//! How long a client waits before it reopens an event stream, and how often it tries.
//!
//! An event stream is never reopened earlier than the server asks for (`retry`), however long that is: a call has its
//! own deadline, and nothing waits for the stream of server-initiated messages. The pauses grow while attempts to
//! reopen the stream fail.

use std::time::Duration;

use steadfast_proto::Moment;

use crate::runtime::Runtime;
use crate::runtime::timeout::{exponential_backoff, with_jitter};

/// The client's first pause before it reopens an event stream, if the server sets no `retry`; it doubles from there.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// How long an event stream has to be open to count as useful although no message has arrived on it.
const USEFUL_UPTIME: Duration = Duration::from_secs(10);

/// Counts the attempts to reopen one event stream.
pub(crate) struct StreamBackoff {
    /// The maximum number of attempts to reopen the stream that may fail in a row.
    max_failures: u32,
    /// The maximum pause before an attempt to reopen the stream, unless the server asks for a longer one.
    max_pause: Duration,
    /// The current number of attempts to reopen the stream that have failed in a row.
    failures: u32,
    /// The current number of times in a row that the stream was opened and no message arrived. The number of streams
    /// without a message has no limit: a server may let its client poll for as long as it works on the request.
    empty: u32,
    opened: Option<Moment>,
}

impl StreamBackoff {
    /// The backoff for the event stream of a response, which a caller waits for: all pauses together take at most 20
    /// seconds, unless the server asks for longer ones.
    pub(crate) fn for_response() -> Self {
        Self::new(7, Duration::from_secs(6))
    }

    /// The backoff for the stream of server-initiated messages: no caller waits for the stream, but without it these
    /// messages are lost.
    pub(crate) fn for_server_stream() -> Self {
        Self::new(10, Duration::from_secs(10))
    }

    fn new(max_failures: u32, max_pause: Duration) -> Self {
        Self { max_failures, max_pause, failures: 0, empty: 0, opened: None }
    }

    /// Notes that the event stream was reopened.
    pub(crate) fn note_opened(&mut self, now: Moment) {
        self.failures = 0;
        self.empty = self.empty.saturating_add(1);
        self.opened = Some(now);
    }

    /// Notes that a message arrived on the event stream.
    pub(crate) fn note_message(&mut self) {
        self.empty = 0;
    }

    /// The pause before the next attempt to reopen the stream, at least the `retry` of the server; `None` after the
    /// last attempt.
    pub(crate) fn pause(&mut self, retry: Option<Duration>, runtime: &dyn Runtime) -> Option<Duration> {
        if self.opened.take().is_some_and(|opened| runtime.now().since(opened) >= USEFUL_UPTIME) {
            self.empty = 0;
        }
        if self.failures >= self.max_failures {
            return None;
        }
        let times = self.failures.saturating_add(self.empty);
        self.failures += 1;
        let own = match (times, retry) {
            // As long as nothing has failed, the pause is the one that the server asks for.
            (0, Some(_)) => Duration::ZERO,
            (times, _) => {
                with_jitter(runtime, exponential_backoff(FIRST_PAUSE, times.saturating_sub(1), self.max_pause))
            }
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

    /// With the least jitter.
    fn shortest(millis: u64) -> FrozenRuntime {
        FrozenRuntime { now: at(millis), random_byte: 0 }
    }

    fn millis(pause: Option<Duration>) -> Option<u128> {
        pause.map(|pause| pause.as_millis())
    }

    /// The pauses while a server cannot be reached.
    fn pauses_while_down(mut backoff: StreamBackoff, retry: Option<Duration>, random_byte: u8) -> Vec<Duration> {
        let frozen = FrozenRuntime { now: at(0), random_byte };
        std::iter::from_fn(|| backoff.pause(retry, &frozen)).take(1_000).collect()
    }

    #[test]
    fn failed_attempts_have_growing_pauses_and_a_limit() {
        let halves = |pauses: &[u64]| pauses.iter().map(|pause| Duration::from_millis(pause / 2)).collect::<Vec<_>>();
        assert_eq!(
            pauses_while_down(StreamBackoff::for_response(), None, 0),
            halves(&[500, 500, 1_000, 2_000, 4_000, 6_000, 6_000])
        );
        assert_eq!(
            pauses_while_down(StreamBackoff::for_server_stream(), None, 0),
            halves(&[500, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000, 10_000])
        );
    }

    #[test]
    fn pauses_of_a_call_are_at_most_20_seconds_with_any_jitter() {
        let total = |chance| pauses_while_down(StreamBackoff::for_response(), None, chance).iter().sum::<Duration>();
        assert!(total(0) >= Duration::from_secs(5), "{:?}", total(0));
        assert!(total(u8::MAX) <= Duration::from_secs(20), "{:?}", total(u8::MAX));
        assert!(total(0) < total(128) && total(128) < total(u8::MAX), "there is jitter");
    }

    #[test]
    fn a_pause_is_never_shorter_than_retry() {
        for retry in [0, 1, 700, 60_000, 300_001, 86_400_000, u64::MAX].map(Duration::from_millis) {
            let mut backoff = StreamBackoff::for_response();
            assert_eq!(backoff.pause(Some(retry), &shortest(0)), Some(retry), "the first pause is exactly that");
            for pause in pauses_while_down(backoff, Some(retry), 0) {
                assert!(pause >= retry, "{pause:?} of {retry:?}");
            }
            let mut backoff = StreamBackoff::for_server_stream();
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
            let mut backoff = StreamBackoff::for_response();
            let mut next = || {
                backoff.note_opened(at(0));
                millis(backoff.pause(retry.map(Duration::from_millis), &shortest(0)))
            };
            assert_eq!([(); 6].map(|()| next()), expected.map(Some), "retry {retry:?}");
            assert!((0..1_000).all(|_| next() == Some(expected[5])), "retry {retry:?}");
        }
    }

    #[test]
    fn a_message_or_a_long_stream_resets_the_backoff() {
        let retry = Some(Duration::from_millis(5));
        for (has_message, uptime, pause) in [(true, 0, 5), (false, 10_000, 5), (false, 9_999, 1_000)] {
            let mut backoff = StreamBackoff::for_server_stream();
            for _ in 0..3 {
                backoff.note_opened(at(0));
            }
            if has_message {
                backoff.note_message();
            }
            assert_eq!(millis(backoff.pause(retry, &shortest(uptime))), Some(pause), "{has_message}, {uptime}");
        }
    }

    #[test]
    fn a_server_that_is_reached_again_has_all_its_attempts() {
        let mut backoff = StreamBackoff::for_response();
        for _ in 0..7 {
            assert!(backoff.pause(None, &shortest(0)).is_some());
        }
        backoff.note_opened(at(0));
        backoff.note_message();
        assert_eq!(pauses_while_down(backoff, None, 0).len(), 7);
    }
}
