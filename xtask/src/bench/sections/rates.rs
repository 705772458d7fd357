//! Servers and clients under load: what a request costs each of them, as ratios.

use super::super::comparison::{Metric, Reference};
use super::super::markdown::Table;
use super::super::measurements::{HttpRun, Load, StdioRun};
use super::super::numbers::{grouped, shown, significant, with_quartiles};
use super::super::svg::bars::{BarPlot, Group};
use super::Section;

/// Servers on stdio in one revision.
pub(super) fn stdio(run: &StdioRun) -> Section {
    let references = references(&run.loads, Some("bare tokio"));
    Section {
        title: format!("Servers on stdio, revision {}", run.revision),
        introduction: format!(
            "`serial` is one request at a time, `pipelined` keeps {} in flight. `add` adds two numbers, `blob` answers \
             with 64 KiB of text. `bare tokio` finds the id in each line and answers with fixed bytes, on tokio; \
             `bare` does so without a runtime.",
            run.window
        ),
        tables: tables("server", &references),
        plot: plot(&format!("CPU time of a request, servers on stdio, {}", run.revision), &references),
        file: format!("stdio-{}.svg", run.revision),
    }
}

/// Servers on HTTP.
pub(super) fn http(run: &HttpRun) -> Section {
    let references = references(&run.loads, Some("bare"));
    let mut memory = Table::new(["server", "bytes"]);
    for one in &run.session_memory {
        memory.push(vec![one.name.clone(), grouped(one.bytes)]);
    }
    let mut tables = tables("server", &references);
    tables.push(("Memory for an open session with its stream:".to_owned(), memory));
    Section {
        title: "Servers on HTTP".to_owned(),
        introduction: "Each connection has one request in flight. `stateless` is revision 2026-07-28, `session` is \
                       2025-11-25. `bare` is an axum endpoint that parses a stateless call and answers it; where it \
                       cannot take part, ratios are to rmcp."
            .to_owned(),
        tables,
        plot: plot("CPU time of a request, servers on HTTP", &references),
        file: "http.svg".to_owned(),
    }
}

/// Clients on both transports.
pub(super) fn client(loads: &[Load]) -> Section {
    let references = references(loads, None);
    Section {
        title: "Clients".to_owned(),
        introduction: "All call the same bare server, whose CPU time does not count. `serial` is one call at a time, \
                       `pipelined` is many tasks over one client. `rmcp pooled` is rmcp with an HTTP client that \
                       keeps its connections."
            .to_owned(),
        tables: tables("client", &references),
        plot: plot("CPU time of a call, clients", &references),
        file: "client.svg".to_owned(),
    }
}

/// Each load with what its ratios are taken to: the preferred reference where it takes part, otherwise rmcp.
fn references<'a>(loads: &'a [Load], preferred: Option<&'static str>) -> Vec<(&'a Load, Reference)> {
    let reference = |load: &Load| preferred.map_or(Reference::BestRmcp, |preferred| load.reference(preferred));
    loads.iter().map(|load| (load, reference(load))).collect()
}

fn tables(role: &str, references: &[(&Load, Reference)]) -> Vec<(String, Table)> {
    let caption = |load: &Load, reference: Reference| {
        let to = match reference {
            Reference::Named(name) => format!("`{name}`"),
            Reference::BestRmcp => "the form of rmcp that is best in the column".to_owned(),
        };
        format!("**{}**, as ratios to {to}:", load.load)
    };
    references.iter().map(|(load, reference)| (caption(load, *reference), table(role, load, *reference))).collect()
}

/// All contestants of one load. A latency that none of them has gets no column.
fn table(role: &str, load: &Load, reference: Reference) -> Table {
    let has_metric =
        |metric: &Metric| load.contestants.iter().any(|one| load.ratio(*metric, &one.name, reference).is_some());
    let metrics: Vec<Metric> = Metric::ALL.into_iter().filter(has_metric).collect();
    let columns = metrics.iter().map(|metric| metric.name());
    let mut table = Table::new(std::iter::once(role).chain(columns).chain(["context switches"]));
    for one in &load.contestants {
        let mut row = vec![one.name.clone()];
        row.extend(metrics.iter().map(|metric| with_quartiles(load.ratio(*metric, &one.name, reference))));
        row.push(shown(load.context_switches(&one.name), significant));
        table.push(row);
    }
    table
}

fn plot(title: &str, references: &[(&Load, Reference)]) -> BarPlot {
    let group = |(load, reference): &(&Load, Reference)| {
        let ratio = |name: &str| load.ratio(Metric::Cpu, name, *reference).map(|spread| spread.median);
        let bars = load.contestants.iter().filter_map(|one| Some((one.name.clone(), ratio(&one.name)?)));
        Group { heading: format!("{}, times {}", load.load, reference.name()), bars: bars.collect() }
    };
    BarPlot {
        title: title.to_owned(),
        axis: "CPU time of a request as a ratio; less is better".to_owned(),
        groups: references.iter().map(group).collect(),
        format: significant,
    }
}
