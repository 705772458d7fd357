//! The table: a line for each client, transport and revision, a column for each check.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use crate::Run;
use crate::check::Check;

/// How one run ended.
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

/// All runs, in the order in which they were made.
#[derive(Default)]
pub(crate) struct Report {
    runs: Vec<(Run, Verdict)>,
}

impl Report {
    pub(crate) fn add(&mut self, run: &Run, verdict: Verdict) {
        println!("  {} {}", if verdict.failure.is_none() { "ok  " } else { "FAIL" }, run.name());
        self.runs.push((*run, verdict));
    }

    /// Nothing failed, and something ran.
    pub(crate) fn is_good(&self) -> bool {
        !self.runs.is_empty() && self.failures().next().is_none()
    }

    fn failures(&self) -> impl Iterator<Item = (&Run, &String)> {
        self.runs.iter().filter_map(|(run, verdict)| Some((run, verdict.failure.as_ref()?)))
    }

    fn cell(&self, line: (&str, &str, &str), check: &Check) -> &'static str {
        let mut runs = self.runs.iter();
        let run = runs.find(|(run, _)| line_of(run) == line && run.check.name == check.name);
        match run {
            None => "-",
            Some((_, verdict)) if verdict.failure.is_some() => "FAIL",
            Some((_, verdict)) if verdict.notes.is_empty() => "ok",
            Some(_) => "ok*",
        }
    }
}

fn line_of(run: &Run) -> (&'static str, &'static str, &'static str) {
    (run.client.name, run.transport.name(), run.revision)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:20} {:6} {:11}", "client", "wire", "revision")?;
        Check::ALL.iter().try_for_each(|check| write!(f, "{:11}", check.name))?;
        writeln!(f)?;
        let mut lines: Vec<_> = self.runs.iter().map(|(run, _)| line_of(run)).collect();
        lines.dedup();
        for line in lines {
            write!(f, "{:20} {:6} {:11}", line.0, line.1, line.2)?;
            Check::ALL.iter().try_for_each(|check| write!(f, "{:11}", self.cell(line, check)))?;
            writeln!(f)?;
        }
        let notes: BTreeSet<String> = self
            .runs
            .iter()
            .flat_map(|(run, verdict)| {
                verdict.notes.iter().map(|note| format!("{} {}: {note}", run.client.name, run.check.name))
            })
            .collect();
        notes.iter().try_for_each(|note| writeln!(f, "* {note}"))?;
        for (run, words) in self.failures() {
            writeln!(f, "\n{}: {words}", run.name())?;
        }
        let failed = self.failures().count();
        writeln!(f, "\n{} checks passed, {failed} failed", self.runs.len() - failed)
    }
}
