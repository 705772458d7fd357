//! One checker for each law.
//!
//! A checker sees what [`Observation`] shows and what the [`Ledger`] made of the observations before it: the wire at the
//! ends and the journal of handlers and callers. It never looks into a connection. Liveness is checked as safety: at the end
//! of a step for what has to happen at once, at [`Observation::Quiet`] for what has to have happened when nothing more will.

mod answer;
mod bounded;
mod closing;
mod identity;
mod isolation;
mod lateness;
mod one_ending;
mod order;
mod outcome;
mod silence;
#[cfg(test)]
mod tests;

pub(crate) use silence::LOGS_EACH;

use crate::law::{Law, Violation};
use crate::observation::Observation;
use crate::observation::ledger::Ledger;

/// Where checkers put what they find.
#[derive(Debug, Clone, Default)]
pub(crate) struct Report(Vec<Violation>);

impl Report {
    pub(crate) fn broken(&mut self, law: Law, what: impl Into<String>) {
        self.0.push(Violation { law, what: what.into() });
    }

    pub(crate) fn take(&mut self) -> Vec<Violation> {
        std::mem::take(&mut self.0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// All checkers of one end. Most keep nothing of their own.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Checkers {
    lateness: lateness::Lateness,
    order: order::Order,
}

impl Checkers {
    /// Looks at one observation. The ledger does not know of it yet.
    pub(crate) fn see(&mut self, facts: &Ledger, seen: &Observation, report: &mut Report) {
        one_ending::check(facts, seen, report);
        answer::check(facts, seen, report);
        silence::check(facts, seen, report);
        self.lateness.check(facts, seen, report);
        closing::check(facts, seen, report);
        isolation::check(facts, seen, report);
        bounded::check(facts, seen, report);
        identity::check(facts, seen, report);
        self.order.check(facts, seen, report);
        outcome::check(facts, seen, report);
    }
}
