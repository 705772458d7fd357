//! The table: a line for each peer, transport and revision, a column for each check.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

/// How one check ended.
pub(crate) struct Verdict {
    failure: Option<String>,
    known: Option<&'static str>,
    notes: Vec<String>,
}

impl Verdict {
    /// As it should.
    pub(crate) fn passed() -> Self {
        Self { failure: None, known: None, notes: Vec::new() }
    }

    /// As it should, with what the peer had to say besides.
    pub(crate) fn passed_with_notes(report: &Value) -> Self {
        let notes = report.get("notes").and_then(Value::as_array).into_iter().flatten();
        Self { notes: notes.filter_map(Value::as_str).map(str::to_owned).collect(), ..Self::passed() }
    }

    pub(crate) fn failed(words: String) -> Self {
        Self { failure: Some(words), ..Self::passed() }
    }

    /// Not as it should, because of a fault of the peer that is known.
    pub(crate) fn known(reason: &'static str) -> Self {
        Self { known: Some(reason), ..Self::passed() }
    }

    pub(crate) fn is_failed(&self) -> bool {
        self.failure.is_some()
    }
}

/// One place in the table.
pub(crate) enum Cell {
    /// There is nothing to check, for this reason.
    Missing(&'static str),
    /// Left out by the command line.
    NotAsked,
    Done(Verdict),
}

impl From<Option<Verdict>> for Cell {
    fn from(verdict: Option<Verdict>) -> Self {
        Self::Done(verdict.unwrap_or_else(|| Verdict::failed("the check did not run".to_owned())))
    }
}

/// A line of the table, with a cell for each column.
pub(crate) struct Row {
    pub(crate) peer: &'static str,
    pub(crate) wire: &'static str,
    pub(crate) revision: &'static str,
    pub(crate) cells: Vec<Cell>,
}

impl Row {
    fn name(&self) -> String {
        format!("{}/{}/{}", self.peer, self.wire, self.revision)
    }

    fn verdicts(&self) -> impl Iterator<Item = &Verdict> {
        self.cells.iter().filter_map(|cell| match cell {
            Cell::Done(verdict) => Some(verdict),
            _ => None,
        })
    }

    /// The text about the row when it is done.
    pub(crate) fn summary(&self) -> String {
        let (all, failed) = (self.verdicts().count(), self.verdicts().filter(|verdict| verdict.is_failed()).count());
        match failed {
            0 => format!("  ok   {}: {all} checks", self.name()),
            _ => format!("  FAIL {}: {failed} of {all} checks", self.name()),
        }
    }
}

/// All lines that were run, with their verdicts.
pub(crate) struct Report {
    /// What the peers are.
    peers: &'static str,
    columns: Vec<&'static str>,
    rows: Vec<Row>,
    reasons: Vec<&'static str>,
}

impl Report {
    pub(crate) fn new(peers: &'static str, columns: Vec<&'static str>, rows: Vec<Row>) -> Self {
        let mut reasons: Vec<&'static str> = Vec::new();
        for cell in rows.iter().flat_map(|row| &row.cells) {
            if let Cell::Missing(reason) = cell
                && !reasons.contains(reason)
            {
                reasons.push(reason);
            }
        }
        Self { peers, columns, rows, reasons }
    }

    /// Whether there is nothing to tell.
    pub(crate) fn is_empty(&self) -> bool {
        self.verdicts().next().is_none()
    }

    /// Nothing failed.
    pub(crate) fn is_good(&self) -> bool {
        self.failures().next().is_none()
    }

    fn verdicts(&self) -> impl Iterator<Item = (&Row, &'static str, &Verdict)> {
        self.rows.iter().flat_map(|row| {
            self.columns.iter().zip(&row.cells).filter_map(move |(check, cell)| match cell {
                Cell::Done(verdict) => Some((row, *check, verdict)),
                _ => None,
            })
        })
    }

    fn failures(&self) -> impl Iterator<Item = (String, &String)> {
        self.verdicts()
            .filter_map(|(row, check, verdict)| Some((format!("{}/{check}", row.name()), verdict.failure.as_ref()?)))
    }

    /// What passed with words of the peer, or did not pass because of a known fault, is explained below the table.
    fn explanations(&self) -> BTreeSet<String> {
        let explained = |(row, check, verdict): (&Row, &str, &Verdict)| {
            let notes = verdict.notes.iter().map(|note| format!("* {} {check}: {note}", row.peer));
            let known = verdict.known.iter().map(|reason| format!("known {} {check}: {reason}", row.peer));
            notes.chain(known).collect::<Vec<_>>()
        };
        self.verdicts().flat_map(explained).collect()
    }

    /// A letter stands for a reason why there is nothing to check.
    fn cell(&self, cell: &Cell) -> String {
        match cell {
            Cell::Done(verdict) if verdict.is_failed() => "FAIL".to_owned(),
            Cell::Done(verdict) if verdict.known.is_some() => "known".to_owned(),
            Cell::Done(verdict) if verdict.notes.is_empty() => "ok".to_owned(),
            Cell::Done(_) => "ok*".to_owned(),
            Cell::Missing(reason) => format!("-{}", self.letter(reason)),
            Cell::NotAsked => String::new(),
        }
    }

    fn letter(&self, reason: &str) -> char {
        self.reasons.iter().zip('a'..='z').find(|(known, _)| **known == reason).map_or('?', |(_, letter)| letter)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |check: &str| check.len().max(5) + 1;
        write!(f, "{:20} {:6} {:11}", self.peers, "wire", "revision")?;
        self.columns.iter().try_for_each(|check| write!(f, "{:1$}", check, width(check)))?;
        writeln!(f)?;
        for row in &self.rows {
            write!(f, "{:20} {:6} {:11}", row.peer, row.wire, row.revision)?;
            let mut cells = self.columns.iter().zip(&row.cells);
            cells.try_for_each(|(check, cell)| write!(f, "{:1$}", self.cell(cell), width(check)))?;
            writeln!(f)?;
        }
        for reason in &self.reasons {
            writeln!(f, "-{} {reason}", self.letter(reason))?;
        }
        self.explanations().iter().try_for_each(|words| writeln!(f, "{words}"))?;
        for (name, words) in self.failures() {
            writeln!(f, "\n{name}: {words}")?;
        }
        let known = self.verdicts().filter(|(_, _, verdict)| verdict.known.is_some()).count();
        let (all, failed) = (self.verdicts().count(), self.failures().count());
        write!(f, "\n{} checks passed, {failed} failed", all - failed - known)?;
        if known > 0 {
            write!(f, ", {known} met a known fault of the peer")?;
        }
        writeln!(f)
    }
}
