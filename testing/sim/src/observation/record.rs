//! What is written down of one run on the executor: a hash of all that was seen, the first law that was broken, and lines
//! for people if they ask.

use std::hash::Hasher;

use steadfast_proto::Moment;

use crate::coverage;
use crate::law::{Law, Violation};
use crate::observation::trace::FnvHasher;

/// The record of one run.
pub(crate) struct Record {
    violation: Option<Violation>,
    hash: FnvHasher,
    lines: Option<Vec<String>>,
}

impl Record {
    /// `kept` records the lines, too.
    pub(crate) fn new(kept: bool) -> Self {
        Self { violation: None, hash: FnvHasher::default(), lines: kept.then(Vec::new) }
    }

    /// A law was broken. Only the first is of interest: what follows may follow from it.
    pub(crate) fn broken(&mut self, law: Law, what: impl Into<String>) {
        self.violation.get_or_insert_with(|| Violation { law, what: what.into() });
    }

    pub(crate) fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    pub(crate) fn note(&mut self, now: Moment, event: &'static str, number: u64, bytes: &[u8]) {
        coverage::event(event);
        self.hash.write_u128(now.since_origin().as_nanos());
        self.hash.write(event.as_bytes());
        self.hash.write_u64(number);
        self.hash.write(bytes);
        if let Some(lines) = &mut self.lines {
            let text = String::from_utf8_lossy(bytes);
            let shown: String = text.chars().take(220).collect();
            lines.push(format!("{:>12.6} {event} {number} {shown}", now.since_origin().as_secs_f64()));
        }
    }

    /// The hash of everything, with the number of steps that it took.
    pub(crate) fn trace(&mut self, steps: u64) -> u64 {
        self.hash.write_u64(steps);
        self.hash.finish()
    }

    pub(crate) fn take_lines(&mut self) -> Vec<String> {
        self.lines.take().unwrap_or_default()
    }
}
