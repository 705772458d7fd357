//! What a search has exercised: what was handed to the cores and what came of it, what happened in each world, and how
//! calls ended.
//!
//! Each thread counts for itself. What the cores can do is known, so what was never reached is there with a zero; what
//! happens around them is there once it has been seen.

use std::cell::RefCell;
use std::collections::BTreeMap;

use steadfast_proto::coverage as core;

thread_local! {
    static EVENTS: RefCell<Vec<(&'static str, u64)>> = const { RefCell::new(Vec::new()) };
    static ENDINGS: RefCell<BTreeMap<String, u64>> = const { RefCell::new(BTreeMap::new()) };
}

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
        for (name, count) in core::take() {
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

    /// How many kinds of things were reached, and how many there are as far as is known.
    pub fn reached(&self) -> (usize, usize) {
        (self.0.values().filter(|count| **count > 0).count(), self.0.len())
    }

    /// What was never reached.
    pub fn missed(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, count)| **count == 0).map(|(name, _)| &**name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_added_and_what_is_missed_is_named() {
        let mut all = Coverage(BTreeMap::from([("a".to_owned(), 2), ("b".to_owned(), 0)]));
        all.add(Coverage(BTreeMap::from([("a".to_owned(), 3), ("c".to_owned(), 1)])));
        assert_eq!(all.0, BTreeMap::from([("a".to_owned(), 5), ("b".to_owned(), 0), ("c".to_owned(), 1)]));
        assert_eq!((all.reached(), all.missed().collect::<Vec<_>>()), ((2, 3), vec!["b"]));
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
