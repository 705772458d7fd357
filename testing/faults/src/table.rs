//! The table: rows in the order of the specification, each with the checks that show it.

use crate::check_context::CheckContext;
use crate::era::Era;
use crate::failure::Verdict;
use crate::rows;

/// One fault and what must happen.
pub struct Row {
    /// Short name, also the name of its test.
    pub name: &'static str,
    /// The fault, in words.
    pub fault: &'static str,
    /// What must happen, in words.
    pub must: &'static str,
    /// The checks that show it.
    pub checks: &'static [Check],
}

/// One named case of a row.
pub struct Check {
    /// Short name, unique in its row.
    pub name: &'static str,
    /// The eras in which it applies.
    pub eras: &'static [Era],
    /// Whether nothing else may run beside it.
    pub(crate) alone: bool,
    pub(crate) run: fn(&mut CheckContext) -> Verdict,
}

impl Check {
    pub(crate) const fn new(name: &'static str, eras: &'static [Era], run: fn(&mut CheckContext) -> Verdict) -> Self {
        Self { name, eras, alone: false, run }
    }

    /// One that has the machine to itself: it judges how soon something comes while it keeps the machine busy.
    pub(crate) const fn alone(self) -> Self {
        Self { alone: true, ..self }
    }
}

/// Every row.
pub fn table() -> &'static [&'static Row] {
    rows::ALL
}
