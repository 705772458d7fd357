//! How servers on stdio start, and what memory they take.

use super::super::comparison::{StartFigure, start_ratio};
use super::super::markdown::Table;
use super::super::measurements::Start;
use super::super::numbers::{grouped, percent, shown, significant, with_quartiles};
use super::super::statistics::Spread;
use super::super::svg::bars::{BarPlot, Group};
use super::Section;

/// The figures that are shown as ratios to rmcp.
const FIGURES: [(&str, StartFigure); 3] = [
    ("time to the first answer", |round| round.first_answer_seconds),
    ("CPU time to the first answer", |round| round.first_answer_cpu_seconds),
    ("idle memory", |round| round.idle_bytes),
];

/// All servers that were started.
pub(super) fn section(starts: &[Start]) -> Section {
    let mut table = Table::new(std::iter::once("server").chain(FIGURES.iter().map(|(name, _)| *name)).chain([
        "idle bytes",
        "bytes for a call in flight",
        "kept after cancelling",
    ]));
    for one in starts {
        let mut row = vec![one.name.clone()];
        row.extend(FIGURES.iter().map(|(_, figure)| with_quartiles(start_ratio(starts, *figure, &one.name))));
        let idle = Spread::of(one.rounds.iter().map(|round| round.idle_bytes)).map(|spread| spread.median);
        row.push(shown(idle, grouped));
        row.push(shown(one.bytes_per_call, grouped));
        row.push(shown(one.kept_after_cancel, percent));
        table.push(row);
    }
    let group = |(name, figure): &(&str, StartFigure)| {
        let ratio = |one: &Start| Some((one.name.clone(), start_ratio(starts, *figure, &one.name)?.median));
        Group { heading: format!("{name}, times rmcp"), bars: starts.iter().filter_map(ratio).collect() }
    };
    Section {
        title: "Start and memory of servers on stdio".to_owned(),
        introduction:
            "From the start of the process to the answer to its first request, and its memory then. A call in \
                       flight waits; `kept` is the part of the memory for such calls that is not given back after they \
                       were cancelled."
                .to_owned(),
        tables: vec![("As ratios to the form of rmcp that is best in the column, and as bytes:".to_owned(), table)],
        plot: BarPlot {
            title: "Start and memory, servers on stdio".to_owned(),
            axis: "as a ratio to rmcp; less is better".to_owned(),
            groups: FIGURES.iter().map(group).collect(),
            format: significant,
        },
        file: "start.svg".to_owned(),
    }
}
