//! The table: a row for each scenario and revision, and what did not pass in words below it.

use std::fmt::{self, Write};

use super::exercised::missing;
use super::expected_failures::is_expected;
use super::requirements::Scenario;
use super::results::{Check, Status};

/// What became of one scenario in one revision.
pub(crate) struct Row {
    revision: String,
    scenario: Scenario,
    checks: Vec<Check>,
    /// Whether the suite was content with the whole of it, where each is run alone.
    content: bool,
}

impl Row {
    pub(crate) fn new(revision: &str, scenario: Scenario, checks: Vec<Check>) -> Self {
        Self { revision: revision.to_owned(), scenario, checks, content: true }
    }

    /// The suite was not content, whatever its checks say: the program under test ended badly, for example.
    pub(crate) fn with_verdict(mut self, content: bool) -> Self {
        self.content = content;
        self
    }

    /// Whether every check that could be made was made, and succeeded. A scenario in which nothing was checked, because the
    /// server did not do what it is about, has not passed.
    pub(crate) fn passed(&self) -> bool {
        let checked = |check: &Check| check.status == Status::Success || is_expected(&self.scenario.name, check);
        let whole = self.complaints().next().is_none() && self.missing().next().is_none();
        self.content && self.checks.iter().any(checked) && whole
    }

    /// The checks that should have been made, and were not.
    fn missing(&self) -> impl Iterator<Item = &'static str> {
        missing(&self.scenario.name, &self.checks)
    }

    fn complaints(&self) -> impl Iterator<Item = &Check> {
        let wanting = |check: &&Check| check.status != Status::Success && !check.is_record();
        self.checks.iter().filter(wanting).filter(|check| !is_expected(&self.scenario.name, check))
    }

    fn count(&self, status: Status) -> usize {
        self.checks.iter().filter(|check| check.status == status).count()
    }
}

/// A line of the table.
impl fmt::Display for Row {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            self.scenario.name,
            self.revision,
            if self.scenario.scored { "yes" } else { "no" },
            self.count(Status::Success),
            self.count(Status::Failure),
            self.count(Status::Warning),
            self.count(Status::Skipped),
            if self.passed() { "pass" } else { "FAIL" },
        )
    }
}

/// The whole report, in Markdown. `alive` says whether the server outlived the suite.
pub(crate) fn report(rows: &[Row], alive: bool) -> String {
    let mut text = String::from(
        "| scenario | revision | scored | passed | failed | warned | skipped | verdict |\n|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        push(&mut text, format_args!("{row}"));
    }
    let sum = |status| rows.iter().map(|row| row.count(status)).sum::<usize>();
    let passed = rows.iter().filter(|row| row.passed()).count();
    push(&mut text, format_args!("\n{passed} of {} scenarios pass.", rows.len()));
    push(
        &mut text,
        format_args!(
            "{} checks passed, {} failed, {} warned, {} skipped.",
            sum(Status::Success),
            sum(Status::Failure),
            sum(Status::Warning),
            sum(Status::Skipped)
        ),
    );
    if !alive {
        push(&mut text, format_args!("\nThe server ended while the suite ran."));
    }
    for row in rows.iter().filter(|row| !row.passed()) {
        push(&mut text, format_args!("\n{} ({}):", row.scenario.name, row.revision));
        if !row.content {
            push(&mut text, format_args!("- the suite was not content: see its output"));
        } else if row.complaints().next().is_none() && row.missing().next().is_none() {
            push(&mut text, format_args!("- nothing was checked"));
        }
        for check in row.missing() {
            push(&mut text, format_args!("- `{check}` was not exercised"));
        }
        for check in row.complaints() {
            let words = check.error_message.as_deref().or(check.description.as_deref()).unwrap_or_default();
            push(&mut text, format_args!("- {:?} `{}`: {}", check.status, check.id, words.trim().replace('\n', " ")));
        }
    }
    text
}

fn push(text: &mut String, line: fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(statuses: &[Status]) -> Row {
        let check = |status: &Status| Check {
            id: "a-check".to_owned(),
            name: None,
            status: *status,
            description: Some("what it looks at".to_owned()),
            error_message: None,
        };
        let scenario = Scenario { name: "ping".to_owned(), scored: true };
        Row::new("2025-11-25", scenario, statuses.iter().map(check).collect())
    }

    #[test]
    fn a_check_that_did_not_succeed_does_not_pass() {
        assert!(row(&[Status::Success]).passed());
        for status in [Status::Failure, Status::Warning, Status::Skipped, Status::Info] {
            assert!(!row(&[Status::Success, status]).passed(), "{status:?}");
        }
    }

    #[test]
    fn a_scenario_in_which_nothing_was_checked_does_not_pass() {
        let mut silent = row(&[Status::Info]);
        silent.checks[0].id = "outgoing-request".to_owned();
        for row in [row(&[]), silent] {
            assert!(!row.passed());
            assert!(report(&[row], true).contains("nothing was checked"));
        }
    }

    #[test]
    fn a_scenario_that_was_not_exercised_does_not_pass() {
        let mut idle = row(&[Status::Success]);
        assert!(idle.passed());
        idle.scenario.name = "http-standard-headers".to_owned();
        assert!(!idle.passed());
        assert!(report(&[idle], true).contains("- `ClientMcpNameHeader_tools_call` was not exercised"));
    }

    #[test]
    fn only_what_is_listed_is_excused() {
        let skipped = |name: &str| {
            let mut row = row(&[Status::Skipped]);
            row.scenario.name = name.to_owned();
            row.checks[0].id = "tasks-status-notifications".to_owned();
            row.passed()
        };
        assert!(skipped("tasks-status-notifications"));
        assert!(!skipped("tasks-lifecycle"));
    }

    #[test]
    fn the_report_says_which_check_it_was() {
        let report = report(&[row(&[Status::Success, Status::Warning])], true);
        assert!(report.contains("| ping | 2025-11-25 | yes | 1 | 0 | 1 | 0 | FAIL |"), "{report}");
        assert!(report.contains("- Warning `a-check`: what it looks at"), "{report}");
    }
}
