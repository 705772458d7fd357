//! The table: a line for each client, transport and revision, a column for each check.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use crate::check::Check;
use crate::line::Line;

/// How one check ended.
pub(crate) struct Verdict {
    failure: Option<String>,
    notes: Vec<String>,
}

impl Verdict {
    /// As it should, with what the client had to say besides.
    pub(crate) fn passed(told: &Value) -> Self {
        let notes = told.get("notes").and_then(Value::as_array).into_iter().flatten();
        Self { failure: None, notes: notes.filter_map(Value::as_str).map(str::to_owned).collect() }
    }

    pub(crate) fn failed(words: String) -> Self {
        Self { failure: Some(words), notes: Vec::new() }
    }
}

/// All lines that were run, with their verdicts.
pub(crate) struct Report {
    lines: Vec<(Line, Vec<Verdict>)>,
    reasons: Vec<&'static str>,
}

impl Report {
    pub(crate) fn new(lines: Vec<(Line, Vec<Verdict>)>) -> Self {
        let mut reasons: Vec<&'static str> = Vec::new();
        for (line, _) in &lines {
            for reason in Check::ALL.iter().filter_map(|check| line.missing(check)) {
                if !reasons.contains(&reason) {
                    reasons.push(reason);
                }
            }
        }
        Self { lines, reasons }
    }

    /// Nothing failed, and something ran.
    pub(crate) fn is_good(&self) -> bool {
        self.verdicts().next().is_some() && self.failures().next().is_none()
    }

    fn verdicts(&self) -> impl Iterator<Item = (&Line, &'static Check, &Verdict)> {
        self.lines.iter().flat_map(|(line, verdicts)| {
            line.checks.iter().zip(verdicts).map(move |(check, verdict)| (line, *check, verdict))
        })
    }

    fn failures(&self) -> impl Iterator<Item = (String, &String)> {
        self.verdicts().filter_map(|(line, check, verdict)| {
            Some((format!("{}/{}", line.name(), check.name), verdict.failure.as_ref()?))
        })
    }

    /// A letter stands for a reason why there is nothing to check.
    fn cell(&self, line: &Line, verdicts: &[Verdict], check: &Check) -> String {
        let verdict = line.checks.iter().zip(verdicts).find(|(done, _)| done.name == check.name);
        match verdict {
            Some((_, verdict)) if verdict.failure.is_some() => "FAIL".to_owned(),
            Some((_, verdict)) if verdict.notes.is_empty() => "ok".to_owned(),
            Some(_) => "ok*".to_owned(),
            None => match line.missing(check).and_then(|reason| self.letter(reason)) {
                Some(letter) => format!("-{letter}"),
                // Not asked for.
                None => String::new(),
            },
        }
    }

    fn letter(&self, reason: &str) -> Option<char> {
        self.reasons.iter().zip('a'..='z').find(|(known, _)| **known == reason).map(|(_, letter)| letter)
    }
}

/// What is said of a line when it is done.
pub(crate) fn summary(line: &Line, verdicts: &[Verdict]) -> String {
    let failed: Vec<&str> = line
        .checks
        .iter()
        .zip(verdicts)
        .filter(|(_, verdict)| verdict.failure.is_some())
        .map(|(check, _)| check.name)
        .collect();
    if failed.is_empty() {
        format!("  ok   {}: {} checks", line.name(), verdicts.len())
    } else {
        format!("  FAIL {}: {}", line.name(), failed.join(", "))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |check: &Check| check.name.len().max(4) + 1;
        write!(f, "{:20} {:6} {:11}", "client", "wire", "revision")?;
        Check::ALL.iter().try_for_each(|check| write!(f, "{:1$}", check.name, width(check)))?;
        writeln!(f)?;
        for (line, verdicts) in &self.lines {
            write!(f, "{:20} {:6} {:11}", line.client.name, line.transport.name(), line.revision)?;
            Check::ALL
                .iter()
                .try_for_each(|check| write!(f, "{:1$}", self.cell(line, verdicts, check), width(check)))?;
            writeln!(f)?;
        }
        for reason in &self.reasons {
            writeln!(f, "-{} {reason}", self.letter(reason).unwrap_or('?'))?;
        }
        let notes: BTreeSet<String> = self
            .verdicts()
            .flat_map(|(line, check, verdict)| {
                verdict.notes.iter().map(move |note| format!("{} {}: {note}", line.client.name, check.name))
            })
            .collect();
        notes.iter().try_for_each(|note| writeln!(f, "* {note}"))?;
        for (name, words) in self.failures() {
            writeln!(f, "\n{name}: {words}")?;
        }
        let (all, failed) = (self.verdicts().count(), self.failures().count());
        writeln!(f, "\n{} checks passed, {failed} failed", all - failed)
    }
}
