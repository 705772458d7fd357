//! The marks: what Steadfast wants to reach, and whether a run did.
//!
//! All marks are listed here, with the loads that they are about. A figure that was not measured misses its mark.

use serde::Serialize;

use super::comparison::{Metric, Reference, StartFigure, start_ratio};
use super::markdown::Table;
use super::measurements::{CountedLoad, Load, Measurements};
use super::numbers::{grouped, percent, shown, tick};

/// The load of requests on stdio one at a time.
pub(crate) const STDIO_SERIAL: &str = "add serial";
const STDIO_PIPELINED: &str = "add pipelined";
const HTTP_ONE: &str = "stateless add, 1 connection";
const HTTP_MANY: &str = "stateless add, 64 connections";

const OURS: &str = "steadfast";
const STDIO_REFERENCE: Reference = Reference::Named("bare tokio");
const HTTP_REFERENCE: Reference = Reference::Named("bare");

/// A figure of a run, and the bound that it has to keep.
#[derive(Debug, Serialize)]
pub(crate) struct Mark {
    /// What is measured, and where.
    subject: String,
    figure: Option<f64>,
    bound: Bound,
    #[serde(skip)]
    unit: Unit,
    met: bool,
}

/// How the figure of a mark is written.
#[derive(Debug, Clone, Copy)]
enum Unit {
    /// A ratio or a small number, with more digits than elsewhere: what is beyond its bound has to look like it.
    Ratio,
    /// Instructions or bytes.
    Count,
    /// A part of a whole.
    Percent,
}

impl Unit {
    fn figure(self, value: f64) -> String {
        match self {
            Self::Ratio => format!("{value:.3}"),
            Self::Count => grouped(value),
            Self::Percent => percent(value),
        }
    }

    fn bound(self, value: f64) -> String {
        match self {
            Self::Ratio => tick(value),
            Self::Count | Self::Percent => self.figure(value),
        }
    }
}

/// What a figure may be.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum Bound {
    AtMost(f64),
    Below(f64),
}

impl Mark {
    fn new(subject: String, figure: Option<f64>, bound: Bound, unit: Unit) -> Self {
        let met = figure.is_some_and(|figure| match bound {
            Bound::AtMost(most) => figure <= most,
            Bound::Below(limit) => figure < limit,
        });
        Self { subject, figure, bound, unit, met }
    }

    pub(crate) const fn is_met(&self) -> bool {
        self.met
    }
}

/// Every mark, held against what was measured.
pub(crate) fn of(measurements: &Measurements) -> Vec<Mark> {
    let stdio = measurements.stdio.iter().flatten().find(|run| run.revision == "2025-11-25");
    let stdio: &[Load] = stdio.map_or(&[], |run| &run.loads);
    let http: &[Load] = measurements.http.as_ref().map_or(&[], |run| &run.loads);
    let mut marks = Vec::new();
    one_at_a_time(&mut marks, "stdio, one at a time", find(stdio, STDIO_SERIAL), STDIO_REFERENCE, 1.15);
    let pipelined = find(stdio, STDIO_PIPELINED);
    marks.push(ratio("stdio, 64 in flight", pipelined, Metric::Cpu, STDIO_REFERENCE, Bound::AtMost(2.2)));
    one_at_a_time(&mut marks, "HTTP stateless, 1 connection", find(http, HTTP_ONE), HTTP_REFERENCE, 1.35);
    let many = find(http, HTTP_MANY);
    marks.push(ratio("HTTP stateless, 64 connections", many, Metric::Cpu, HTTP_REFERENCE, Bound::AtMost(1.6)));
    clients(&mut marks, measurements.client.as_deref().unwrap_or_default());
    instructions(&mut marks, measurements);
    memory_and_start(&mut marks, measurements);
    marks
}

/// The marks of requests one at a time, which are alike on both transports but for the bound of the latency.
fn one_at_a_time(marks: &mut Vec<Mark>, subject: &str, load: Option<&Load>, bare: Reference, p50: f64) {
    marks.push(ratio(subject, load, Metric::Cpu, bare, Bound::AtMost(1.5)));
    marks.push(ratio(subject, load, Metric::Median, bare, Bound::AtMost(p50)));
    let switches = load.and_then(|load| load.context_switches(OURS));
    let subject_of_switches = format!("{subject}: context switches");
    marks.push(Mark::new(subject_of_switches, switches, Bound::AtMost(1.2), Unit::Ratio));
    for metric in [Metric::Cpu, Metric::Wall, Metric::Tail] {
        marks.push(ratio(subject, load, metric, Reference::BestRmcp, Bound::Below(1.0)));
    }
}

fn clients(marks: &mut Vec<Mark>, loads: &[Load]) {
    for transport in ["stdio", "http"] {
        for revision in ["2025-11-25", "2026-07-28"] {
            for mode in ["serial", "pipelined"] {
                let name = format!("{transport} {revision} {mode}");
                let (subject, load) = (format!("client, {name}"), find(loads, &name));
                for metric in [Metric::Cpu, Metric::Wall] {
                    marks.push(ratio(&subject, load, metric, Reference::BestRmcp, Bound::Below(1.0)));
                }
            }
        }
    }
}

fn instructions(marks: &mut Vec<Mark>, measurements: &Measurements) {
    let counts = measurements.counts.as_ref();
    let stdio: &[CountedLoad] = counts.map_or(&[], |counts| &counts.stdio);
    let http: &[CountedLoad] = counts.map_or(&[], |counts| &counts.http);
    let wanted = [
        ("stdio", stdio, STDIO_SERIAL, 18_000.0),
        ("stdio", stdio, STDIO_PIPELINED, 14_000.0),
        ("stdio", stdio, "blob serial", 150_000.0),
        ("HTTP", http, HTTP_ONE, 58_000.0),
        ("HTTP", http, "session add, 1 connection", 48_000.0),
        ("HTTP", http, "stateless blob, 1 connection", 200_000.0),
    ];
    for (transport, loads, name, most) in wanted {
        let load = loads.iter().find(|load| load.load == name);
        let counted = load.and_then(|load| load.contestants.iter().find(|one| one.name == OURS));
        let figure = counted.map(|one| one.per_request.instructions);
        marks.push(Mark::new(format!("{transport}, {name}: instructions"), figure, Bound::AtMost(most), Unit::Count));
    }
}

fn memory_and_start(marks: &mut Vec<Mark>, measurements: &Measurements) {
    const KIB: f64 = 1024.0;
    let sessions = measurements.http.as_ref().map_or(&[][..], |run| &run.session_memory);
    let session = sessions.iter().find(|one| one.name == OURS).map(|one| one.bytes);
    marks.push(Mark::new("HTTP: bytes for a session".to_owned(), session, Bound::AtMost(22.0 * KIB), Unit::Count));
    let starts = measurements.start.as_deref().unwrap_or_default();
    let ours = starts.iter().find(|one| one.name == OURS);
    let call = ours.and_then(|one| one.bytes_per_call);
    marks.push(Mark::new("stdio: bytes for a call in flight".to_owned(), call, Bound::AtMost(KIB), Unit::Count));
    let kept = ours.and_then(|one| one.kept_after_cancel);
    marks.push(Mark::new("stdio: memory kept after cancelling".to_owned(), kept, Bound::AtMost(0.2), Unit::Percent));
    let figures: [(&str, StartFigure); 2] = [
        ("stdio: time to the first answer, times rmcp", |round| round.first_answer_seconds),
        ("stdio: idle memory, times rmcp", |round| round.idle_bytes),
    ];
    for (subject, figure) in figures {
        let ratio = start_ratio(starts, figure, OURS).map(|spread| spread.median);
        marks.push(Mark::new(subject.to_owned(), ratio, Bound::AtMost(1.0), Unit::Ratio));
    }
}

fn ratio(subject: &str, load: Option<&Load>, metric: Metric, reference: Reference, bound: Bound) -> Mark {
    let figure = load.and_then(|load| load.ratio(metric, OURS, reference)).map(|spread| spread.median);
    Mark::new(format!("{subject}: {}, times {}", metric.name(), reference.name()), figure, bound, Unit::Ratio)
}

fn find<'a>(loads: &'a [Load], name: &str) -> Option<&'a Load> {
    loads.iter().find(|load| load.load == name)
}

/// All marks as a table.
pub(crate) fn table(marks: &[Mark]) -> Table {
    let mut table = Table::new(["mark", "wanted", "measured", "verdict"]);
    for mark in marks {
        let wanted = match mark.bound {
            Bound::AtMost(most) => format!("at most {}", mark.unit.bound(most)),
            Bound::Below(limit) => format!("below {}", mark.unit.bound(limit)),
        };
        let verdict = match (mark.figure, mark.met) {
            (_, true) => "met",
            (Some(_), false) => "**missed**",
            (None, false) => "**missed**: not measured",
        };
        table.push(vec![
            mark.subject.clone(),
            wanted,
            shown(mark.figure, |figure| mark.unit.figure(figure)),
            verdict.to_owned(),
        ]);
    }
    table
}

/// How many marks are met, as a sentence.
pub(crate) fn summary(marks: &[Mark]) -> String {
    format!("{} of {} marks are met.", marks.iter().filter(|mark| mark.is_met()).count(), marks.len())
}

#[cfg(test)]
mod tests {
    use super::super::document::tests::measured;
    use super::*;

    fn line(marks: &[Mark], subject: &str) -> String {
        let table = table(marks).to_string();
        table.lines().find(|line| line.contains(subject)).unwrap_or_default().to_owned()
    }

    #[test]
    fn a_mark_is_met_up_to_its_bound_and_missed_beyond_it() {
        let marks = of(&measured());
        let met = "| stdio, one at a time: CPU time, times bare tokio | at most 1.5 | 1.300 | met |";
        assert_eq!(line(&marks, "one at a time: CPU time, times bare tokio"), met);
        let missed = "| stdio, add pipelined: instructions | at most 14,000 | 15,000 | **missed** |";
        assert_eq!(line(&marks, "add pipelined: instructions"), missed);
        assert!(line(&marks, "memory kept after cancelling").ends_with("| at most 20.0 % | 15.0 % | met |"));
    }

    #[test]
    fn to_be_as_good_as_rmcp_is_not_to_be_ahead() {
        let at = |figure: f64, bound: Bound| Mark::new(String::new(), Some(figure), bound, Unit::Ratio).is_met();
        assert!(!at(1.0, Bound::Below(1.0)) && at(0.99, Bound::Below(1.0)) && at(1.0, Bound::AtMost(1.0)));
    }

    #[test]
    fn what_was_not_measured_misses_its_mark() {
        let marks = of(&Measurements { start: None, ..measured() });
        assert!(line(&marks, "bytes for a call in flight").ends_with("| - | **missed**: not measured |"));
    }

    #[test]
    fn no_mark_disappears_when_nothing_was_measured() {
        let nothing = Measurements { stdio: None, http: None, client: None, counts: None, start: None, ..measured() };
        assert_eq!(of(&nothing).len(), of(&measured()).len());
        assert_eq!(summary(&of(&nothing)), "0 of 41 marks are met.");
    }
}
