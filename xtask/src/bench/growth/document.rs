//! `growth.md` and its plots.

use std::fmt::Write;

use super::super::machine::Machine;
use super::super::markdown::Table;
use super::super::numbers::{grouped, shown, significant, tick};
use super::super::svg::lines::{Line, LinePlot};
use super::{Dimension, Measured};

/// The whole document. `options` are those of the command that measured it.
pub(super) fn render(measured: &Measured, machine: &Machine, options: &[String]) -> String {
    let command = std::iter::once("cargo xtask bench --growth")
        .chain(options.iter().map(String::as_str))
        .collect::<Vec<_>>()
        .join(" ");
    let smoke = if measured.smoke { "**A smoke run: far too short to conclude anything from.**\n\n" } else { "" };
    let mut text = format!(
        "# Growth\n\n\
         How the cost of one unit changes when there are many: a server that does the same work for each has a \
         level line. This document is generated: do not edit it. It was made by\n\n\
         ```sh\n{command}\n```\n\n\
         {smoke}{}\n\
         Times depend on the machine and on what else it does: compare the shape of lines, not their height \
         between documents. The exponent is that of n in the cost of a unit, from a least-squares fit of the \
         logarithms over the last two decades of n; 0 is a level line. Up to 0.15 it is called constant, up to 0.35 \
         `n log n`, above that worse. A server that refused a load, or failed, has no figure there.\n",
        machine.table(None),
    );
    for dimension in &measured.dimensions {
        let ((file, _), cost, size) = (plot(dimension), dimension.cost(), dimension.size());
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "\n## {}\n\n![{cost}, by {size}](performance/{file})\n\n{cost}, n is {size}:\n\n{}",
            title(dimension),
            table(dimension)
        );
    }
    text
}

/// The file name and the content of a dimension's plot.
pub(super) fn plot(dimension: &Dimension) -> (String, String) {
    let line = |server: &str| Line { name: server.to_owned(), points: dimension.points_of(server) };
    let plot = LinePlot {
        title: title(dimension),
        x_axis: dimension.size(),
        y_axis: dimension.cost(),
        lines: dimension.servers().into_iter().map(line).collect(),
    };
    (format!("growth-{}.svg", dimension.name), plot.svg())
}

/// The cost for each size and server, and below it how fast it grows.
pub(super) fn table(dimension: &Dimension) -> Table {
    let servers = dimension.servers();
    let mut table = Table::new(std::iter::once("n").chain(servers.iter().copied()));
    for point in &dimension.points {
        let costs = servers.iter().map(|server| shown(point.servers.get(*server).copied(), cost));
        table.push(std::iter::once(tick(point.n)).chain(costs).collect());
    }
    let growths = || servers.iter().map(|server| dimension.growth_of(server));
    let exponents = growths().map(|growth| shown(growth.exponent(), |exponent| format!("{exponent:.2}")));
    table.push(std::iter::once("exponent".to_owned()).chain(exponents).collect());
    let names = growths().map(|growth| growth.name().to_owned());
    table.push(std::iter::once("verdict".to_owned()).chain(names).collect());
    table
}

/// Three digits of a time, all digits of a number of bytes.
fn cost(value: f64) -> String {
    if value < 1000.0 { significant(value) } else { grouped(value) }
}

/// The name of a dimension in words: `Requests in flight`.
fn title(dimension: &Dimension) -> String {
    let words = dimension.size();
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::super::super::svg::tests::assert_well_formed;
    use super::super::tests::measured;
    use super::*;

    fn machine() -> Machine {
        Machine {
            cores: 2,
            cpu: "Some CPU".to_owned(),
            kernel: "6.1.0".to_owned(),
            rustc: "rustc 1.90.0".to_owned(),
            commit: "0123456789ab".to_owned(),
            versions: [].into(),
        }
    }

    #[test]
    fn a_dimension_has_a_plot_and_a_table_with_verdicts() {
        let document = render(&measured(), &machine(), &[]);
        for text in [
            "## Requests in flight",
            "(performance/growth-requests-in-flight.svg)",
            "| n | steadfast | rmcp |",
            "| 1,000 | 12.4 | 400 |",
            "| 10,000 | 12.5 | - |",
            "| verdict | constant | worse |",
            "| 2 |",
        ] {
            assert!(document.contains(text), "{text} is not in\n{document}");
        }
    }

    #[test]
    fn the_plot_has_a_line_for_each_server() {
        let (file, svg) = plot(&measured().dimensions[0]);
        assert_eq!(file, "growth-requests-in-flight.svg");
        assert_well_formed(&svg);
        assert_eq!(svg.matches("<polyline").count(), 2);
        for text in ["requests in flight", "CPU microseconds per request", ">steadfast<", ">rmcp<"] {
            assert!(svg.contains(text), "{text}");
        }
    }

    #[test]
    fn the_same_figures_give_the_same_text() {
        assert_eq!(render(&measured(), &machine(), &[]), render(&measured(), &machine(), &[]));
    }
}
