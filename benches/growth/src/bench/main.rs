//! Measures how the cost of a server grows with n: requests, sessions, tools, bytes, subscribers and connections.
//!
//! It drives each server as a child process over pipes or loopback, a new process for each n. It never judges a figure:
//! it prints them side by side and writes them to a file.

mod descriptors;
mod dimension;
mod effort;
mod http;
mod options;
mod pipe;
mod report;
mod servers;
mod trial;

use bench_kit::options::print;
use clap::Parser;
use dimension::Dimension;
use effort::Effort;
use options::Options;
use report::{Curve, Point};
use servers::Server;
use std::io;
use std::process::ExitCode;
use trial::Trial;

fn main() -> ExitCode {
    bench_kit::options::exit(run(&Options::parse()).map(|()| true))
}

fn run(options: &Options) -> io::Result<()> {
    descriptors::raise_limit()?;
    let servers = servers::servers(options)?;
    if !options.any_core {
        bench_kit::cores::stay_on_one()?;
    }
    let mut curves = Vec::new();
    for dimension in options.dimensions() {
        let curve = measure(dimension, &servers, options)?;
        print(&report::table(&curve, &servers))?;
        curves.push(curve);
    }
    if options.smoke {
        print("\nA smoke run: far too short to conclude anything from.\n")?;
    }
    options.write_json(&report::json(&curves, options.smoke))
}

/// Measures all servers at one n, then at the next. A server that failed takes no part from there on: it would fail at
/// a larger n too, and take all of its time budget to do so.
fn measure(dimension: Dimension, servers: &[Server], options: &Options) -> io::Result<Curve> {
    let effort = Effort::new(options.smoke);
    let mut running: Vec<&Server> = servers.iter().collect();
    let mut points = Vec::new();
    for &n in dimension.sizes(options.smoke) {
        let mut costs = Vec::new();
        let mut failures = Vec::new();
        running.retain(|&server| match dimension.measure(&Trial { server, n, effort: &effort }) {
            Ok(cost) => {
                costs.push((server.name(), cost));
                true
            }
            Err(error) => {
                failures.push(error);
                false
            }
        });
        for failure in failures {
            let shown = report::grouped_count(n);
            print(&format!("\n{}: no figures from n = {shown} on. {failure}.\n", dimension.name()))?;
        }
        points.push(Point { n, costs });
    }
    Ok(Curve { dimension, points })
}
