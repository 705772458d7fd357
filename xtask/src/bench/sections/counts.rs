//! Instructions and allocations of a request, as counts.

use super::super::markdown::Table;
use super::super::measurements::{CountedLoad, Counts};
use super::super::numbers::grouped;
use super::super::svg::bars::{BarPlot, Group};
use super::Section;

/// All servers that were counted, on both transports.
pub(super) fn section(counts: &Counts) -> Section {
    let loads: Vec<(String, &CountedLoad)> = [("stdio", &counts.stdio), ("HTTP", &counts.http)]
        .into_iter()
        .flat_map(|(transport, loads)| loads.iter().map(move |load| (format!("{transport}: {}", load.load), load)))
        .collect();
    let tables = loads.iter().map(|(name, load)| (format!("**{name}**:"), table(load))).collect();
    let group = |(name, load): &(String, &CountedLoad)| {
        let bars = load.contestants.iter().map(|one| (one.name.clone(), one.per_request.instructions));
        Group { heading: name.clone(), bars: bars.collect() }
    };
    Section {
        title: "Instructions and allocations".to_owned(),
        introduction:
            "Counted by valgrind in user mode, for each request, without start and handshake. They hardly depend \
                       on the load of the machine, and do not see what the kernel does."
                .to_owned(),
        tables,
        plot: BarPlot {
            title: "Instructions of a request".to_owned(),
            axis: "instructions in user mode; less is better".to_owned(),
            groups: loads.iter().map(group).collect(),
            format: grouped,
        },
        file: "counts.svg".to_owned(),
    }
}

fn table(load: &CountedLoad) -> Table {
    let mut table = Table::new(["server", "instructions", "allocations", "bytes allocated"]);
    for one in &load.contestants {
        let cost = &one.per_request;
        let figures = [cost.instructions, cost.allocations, cost.allocated_bytes].map(grouped);
        table.push(std::iter::once(one.name.clone()).chain(figures).collect());
    }
    table
}
