//! What a search has exercised. Three things are counted, each by thread:
//!
//! - `core`: each input that is handed to a connection of `steadfast-proto`, by the stage that the connection is in (23 inputs in
//!   five stages), and each effect: events, refusals, and how connections, calls and requests end. All of these are known, so
//!   one that was never reached is there with a zero.
//! - `event`: each kind of line in the record of a world on the executor. The world `cores` has none.
//! - `ending`: how calls, readings, openings and responses ended, as the program saw it.
//!
//! Events and endings are there once they were seen; how many there could be is not known.

use std::cell::RefCell;
use std::collections::BTreeMap;

use steadfast_proto::coverage as core;

thread_local! {
    static EVENTS: RefCell<Vec<(&'static str, u64)>> = const { RefCell::new(Vec::new()) };
    static ENDINGS: RefCell<BTreeMap<String, u64>> = const { RefCell::new(BTreeMap::new()) };
}

/// What cannot be counted: a connection that is closed returns from these before it counts them.
const NEVER_COUNTED: [&str; 5] = [
    "a request | closed",
    "a notification | closed",
    "a response | closed",
    "a batch | closed",
    "an unreadable message | closed",
];

/// Something happened in a world.
pub(crate) fn event(name: &'static str) {
    EVENTS.with_borrow_mut(|events| match events.iter_mut().find(|(known, _)| std::ptr::eq(*known, name)) {
        Some((_, count)) => *count += 1,
        None => events.push((name, 1)),
    });
}

/// A call, a request or a response ended in this way.
pub(crate) fn ending(how: impl Into<String>) {
    ENDINGS.with_borrow_mut(|endings| *endings.entry(how.into()).or_default() += 1);
}

/// How often each thing has happened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage(pub BTreeMap<String, u64>);

impl Coverage {
    /// What this thread has counted since this was last called.
    pub fn take() -> Self {
        let mut all = BTreeMap::new();
        for (name, count) in core::take().into_iter().filter(|(name, _)| !NEVER_COUNTED.contains(&&**name)) {
            *all.entry(format!("core / {name}")).or_default() += count;
        }
        for (name, count) in EVENTS.take() {
            *all.entry(format!("event / {name}")).or_default() += count;
        }
        for (name, count) in ENDINGS.take() {
            *all.entry(format!("ending / {name}")).or_default() += count;
        }
        Self(all)
    }

    /// Adds what another search has exercised.
    pub fn add(&mut self, other: Self) {
        for (name, count) in other.0 {
            *self.0.entry(name).or_default() += count;
        }
    }

    /// What connections were handed and what came of it, without the prefix, and how often.
    pub fn core(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().filter_map(|(name, count)| Some((name.strip_prefix("core / ")?, *count)))
    }

    /// How many kinds of inputs and effects of connections were reached, and how many there are.
    pub fn reached(&self) -> (usize, usize) {
        (self.core().filter(|(_, count)| *count > 0).count(), self.core().count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coverage(counts: &[(&str, u64)]) -> Coverage {
        Coverage(counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect())
    }

    #[test]
    fn counts_are_added_and_those_of_the_core_are_reached_or_not() {
        let mut all = coverage(&[("core / a", 2), ("core / b", 0)]);
        all.add(coverage(&[("core / a", 3), ("event / c", 1)]));
        assert_eq!(all, coverage(&[("core / a", 5), ("core / b", 0), ("event / c", 1)]));
        assert_eq!(all.reached(), (1, 2));
    }

    #[test]
    fn all_that_can_be_counted_is_known_before_it_is_reached() {
        drop(Coverage::take());
        let (inputs, effects): (Vec<String>, Vec<String>) =
            Coverage::take().core().map(|(name, _)| name.to_owned()).partition(|name| name.contains(" | "));
        assert_eq!(inputs.len() + NEVER_COUNTED.len(), 23 * 5);
        assert!(effects.len() >= 50, "{effects:?}");
    }

    #[test]
    fn a_run_counts_what_its_cores_do() {
        drop(Coverage::take());
        crate::pair::run(1);
        let taken = Coverage::take();
        assert!(taken.0.get("core / event: a handler starts").is_some_and(|count| *count > 0), "{taken:?}");
        assert_eq!(Coverage::take().reached().0, 0);
    }
}
