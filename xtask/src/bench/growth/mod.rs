//! How costs grow with the size of the load: runs `benches/growth`, and writes `growth.md` and its plots.

mod document;
mod verdict;

use std::collections::BTreeMap;

use serde::Deserialize;

use super::BenchArgs;
use super::machine::{self, Machine};
use super::runner::Runner;
use crate::failure::Outcome;
use verdict::Growth;

/// What the bench wrote.
#[derive(Debug, Deserialize)]
pub(crate) struct Measured {
    smoke: bool,
    dimensions: Vec<Dimension>,
}

/// One way in which a load can be large.
#[derive(Debug, Deserialize)]
struct Dimension {
    /// What `n` counts, and the name of the plot's file: `requests-in-flight`.
    name: String,
    /// What a cost is counted in: `CPU microseconds`.
    unit: String,
    /// What a cost is the cost of: `call`; or the cost in full, `CPU microseconds per call`.
    per: String,
    points: Vec<Point>,
}

/// A load of one size.
#[derive(Debug, Deserialize)]
struct Point {
    n: f64,
    /// The cost for each server. One that refused or failed is absent.
    servers: BTreeMap<String, f64>,
}

impl Dimension {
    /// What `n` counts, in words: `requests in flight`.
    fn size(&self) -> String {
        self.name.replace('-', " ")
    }

    /// What the cost is, in words: `CPU microseconds per call`.
    fn cost(&self) -> String {
        if self.per.contains(" per ") { self.per.clone() } else { format!("{} per {}", self.unit, self.per) }
    }

    /// Everyone who took part at some size: steadfast first, the others by name.
    fn servers(&self) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.points.iter().flat_map(|point| point.servers.keys()).map(String::as_str).collect();
        names.sort_by_key(|name| (*name != OURS, *name));
        names.dedup();
        names
    }

    /// The sizes and costs of one server.
    fn points_of(&self, server: &str) -> Vec<(f64, f64)> {
        self.points.iter().filter_map(|point| Some((point.n, *point.servers.get(server)?))).collect()
    }

    fn growth_of(&self, server: &str) -> Growth {
        Growth::of(&self.points_of(server))
    }
}

const OURS: &str = "steadfast";

/// Runs the bench and writes the document; false if a cost of steadfast grows too fast.
pub(crate) async fn run(arguments: &BenchArgs) -> Outcome<bool> {
    let options: &[String] = if arguments.without_rmcp { &["--without-rmcp".to_owned()] } else { &[] };
    let measured: Measured = Runner::new(arguments.smoke).run("growth", "growth", options).await?;
    let rmcp = if arguments.without_rmcp { None } else { machine::rmcp("growth") };
    let machine = Machine::here(rmcp.into_iter().collect()).await?;
    let folder = arguments.folder();
    let text = document::render(&measured, &machine, options);
    super::write(&folder.join("growth.md"), &text)?;
    for dimension in &measured.dimensions {
        let (file, plot) = document::plot(dimension);
        super::write(&folder.join("performance").join(file), &plot)?;
    }
    for dimension in &measured.dimensions {
        println!("{}\n\n{}", dimension.name, document::table(dimension));
    }
    eprintln!("bench: wrote {}", folder.join("growth.md").display());
    Ok(measured.is_acceptable())
}

impl Measured {
    /// Whether no cost of steadfast grows too fast. A smoke run is too short to judge.
    fn is_acceptable(&self) -> bool {
        self.smoke || self.dimensions.iter().all(|dimension| dimension.growth_of(OURS).is_acceptable())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// `steadfast` costs the same at each size; `rmcp` grows with it, and refuses the largest.
    pub(crate) fn measured() -> Measured {
        serde_json::from_str(include_str!("../fixtures/growth.json")).unwrap()
    }

    #[test]
    fn only_growth_of_steadfast_fails_the_run() {
        let mut measured = measured();
        assert!(measured.is_acceptable());
        for point in &mut measured.dimensions[0].points {
            point.servers.insert(OURS.to_owned(), point.n);
        }
        assert!(!measured.is_acceptable());
        measured.smoke = true;
        assert!(measured.is_acceptable());
    }

    #[test]
    fn a_cost_is_named_in_full_or_by_its_unit() {
        let mut dimension = measured().dimensions.remove(0);
        assert_eq!(dimension.cost(), "CPU microseconds per request");
        (dimension.unit, dimension.per) = ("resident bytes".to_owned(), "idle connection".to_owned());
        assert_eq!(dimension.cost(), "resident bytes per idle connection");
    }

    #[test]
    fn steadfast_is_named_first() {
        assert_eq!(measured().dimensions[0].servers(), ["steadfast", "rmcp"]);
    }
}
