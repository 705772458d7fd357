//! What happened, as a running hash: two runs of one seed have to agree in every observation and every byte.
//!
//! The hash is our own (FNV-1a over 64 bits, words at a time), because it has to be the same on every machine and in
//! every build. The observations themselves are recorded only when a trace is to be printed.

use std::hash::{Hash, Hasher};

use crate::observation::Observation;
use steadfast_proto::Moment;

/// A running hash of everything that was observed, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trace {
    hash: FnvHasher,
    /// The trace is not wanted.
    off: bool,
    /// Lines for people, if asked for.
    lines: Option<Vec<String>>,
}

impl Trace {
    /// No trace, where none is wanted.
    pub(crate) fn off() -> Self {
        Self { off: true, ..Self::default() }
    }

    /// A trace that also keeps its lines.
    pub(crate) fn kept() -> Self {
        Self { lines: Some(Vec::new()), ..Self::default() }
    }

    pub(crate) fn note(&mut self, side: &'static str, now: Moment, seen: &Observation) {
        if self.off {
            return;
        }
        (side, now, seen).hash(&mut self.hash);
        if let Some(lines) = &mut self.lines {
            // The end of a step is no news to a reader.
            if !matches!(seen, Observation::Settled { .. }) {
                lines.push(format!("{:>12.6} {side:<6} {seen}", now.since_origin().as_secs_f64()));
            }
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash.finish()
    }

    pub(crate) fn lines(&self) -> &[String] {
        self.lines.as_deref().unwrap_or_default()
    }
}

/// FNV-1a, a word at a time for integers.
#[derive(Debug, Clone)]
pub(crate) struct FnvHasher(u64);

impl Default for FnvHasher {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl FnvHasher {
    fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0100_0000_01b3);
        self.0 ^= self.0 >> 29;
    }
}

impl Hasher for FnvHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.word(word.iter().fold(0, |word, byte| (word << 8) | u64::from(*byte)));
        }
        for byte in words.remainder() {
            self.word(u64::from(*byte));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.word(value.into());
    }

    fn write_u16(&mut self, value: u16) {
        self.word(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.word(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.word(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.word(value as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_content_both_count() {
        let hash = |seen: &[Observation]| {
            let mut trace = Trace::default();
            for one in seen {
                trace.note("a", Moment::ORIGIN, one);
            }
            trace.hash()
        };
        let (ended, failed) = (Observation::InputEnded, Observation::WriteFailed);
        assert_eq!(hash(&[ended.clone(), failed.clone()]), hash(&[ended.clone(), failed.clone()]));
        assert_ne!(hash(&[ended.clone(), failed.clone()]), hash(&[failed.clone(), ended.clone()]));
        assert_ne!(hash(std::slice::from_ref(&ended)), hash(&[ended, failed]));
    }
}
