//! The full bench: runs the parts that were asked for, and writes the document if those are all.

use std::time::Instant;

use super::bench_json::{ClientRates, HttpCounts, HttpRates, StdioCounts, StdioRates, StdioStart};
use super::machine::{self, Machine};
use super::measurements::{Counts, HttpRun, Load, Measurements, Start, StdioRun};
use super::peers::{self, Peer};
use super::runner::{Runner, words};
use super::{BenchArgs, DEFAULT_ROUNDS, Part, document, json_lines, marks, sections};
use crate::failure::{Context, Outcome};

const STDIO_SERVERS: &str = "--servers steadfast,rmcp-pipes,rmcp-stdio,bare-tokio,bare";

/// How long a full run should take at most once everything is built. It is longer on a machine that is busy.
const INTENDED_MINUTES: u64 = 20;

/// Runs the parts, prints their tables, and writes the document if no part was left out.
pub(crate) async fn run(arguments: &BenchArgs) -> Outcome<()> {
    let needs_steadfast = [Part::Stdio, Part::Counts, Part::Start].into_iter().any(|part| arguments.has(part));
    let runner =
        if needs_steadfast { Runner::with_steadfast(arguments.smoke).await? } else { Runner::new(arguments.smoke) };
    let peers =
        if arguments.has(Part::Stdio) && !arguments.without_peers { peers::installed().await } else { Vec::new() };
    let begun = Instant::now();
    let measurements = measure(arguments, &runner, &peers).await?;
    eprintln!("bench: all took {} s", begun.elapsed().as_secs());
    if begun.elapsed().as_secs() > INTENDED_MINUTES * 60 {
        eprintln!("bench: that is more than {INTENDED_MINUTES} minutes, the building of the benches included");
    }
    for section in sections::of(&measurements) {
        println!("{}", section.without_plot());
    }
    if measurements.require_all_parts().is_err() {
        eprintln!("bench: nothing is written, because not all parts ran");
        return Ok(());
    }
    let file = arguments.folder().join("performance.json");
    let mut json = serde_json::to_value(&measurements).context(|| "writing the figures as JSON".to_owned())?;
    json["marks"] =
        serde_json::to_value(marks::of(&measurements)).context(|| "writing the marks as JSON".to_owned())?;
    super::write(&file, &json_lines::text(&json))?;
    // From the file, so that rendering it again gives the same document.
    let marks = document::write(&file, &arguments.folder())?;
    println!("{}", marks::table(&marks));
    println!("{}", marks::summary(&marks));
    eprintln!("bench: wrote {} and performance.md beside it", file.display());
    Ok(())
}

async fn measure(arguments: &BenchArgs, runner: &Runner, peers: &[Peer]) -> Outcome<Measurements> {
    let rounds = arguments.rounds;
    let versions = peers.iter().map(|peer| (peer.name.to_owned(), peer.version.clone()));
    let mut measurements = Measurements {
        command: command(arguments),
        smoke: arguments.smoke,
        rounds: 0,
        machine: Machine::here(versions.chain(machine::rmcp("stdio")).collect()).await?,
        stdio: None,
        http: None,
        client: None,
        counts: None,
        start: None,
    };
    if arguments.has(Part::Stdio) {
        measurements.stdio = Some(stdio(runner, rounds, peers).await?);
    }
    if arguments.has(Part::Http) {
        measurements.http = Some(http(runner, rounds).await?);
    }
    if arguments.has(Part::Client) {
        measurements.client = Some(client(runner, rounds).await?);
    }
    if arguments.has(Part::Counts) {
        let stdio = stdio_counts(runner, "steadfast,rmcp-pipes,bare-tokio").await?;
        let http = http_counts(runner, "steadfast,rmcp,bare").await?;
        measurements.counts = Some(Counts { stdio: stdio.into(), http: http.into() });
    }
    if arguments.has(Part::Start) {
        measurements.start = Some(start(runner, rounds).await?);
    }
    measurements.rounds = rounds_measured(&measurements);
    Ok(measurements)
}

async fn stdio(runner: &Runner, rounds: u32, peers: &[Peer]) -> Outcome<Vec<StdioRun>> {
    let mut handshake = words(&format!("--tools add,blob {STDIO_SERVERS} --rounds {rounds}"));
    handshake.extend(peers.iter().flat_map(Peer::arguments));
    let handshake: StdioRates = runner.run("stdio", "stdio-2025", &handshake).await?;
    let stateless = words(&format!("--era 2026 --tools add {STDIO_SERVERS} --rounds {rounds}"));
    let stateless: StdioRates = runner.run("stdio", "stdio-2026", &stateless).await?;
    Ok(vec![handshake.into(), stateless.into()])
}

async fn http(runner: &Runner, rounds: u32) -> Outcome<HttpRun> {
    let line = format!("--parts cpu,memory --servers steadfast,steadfast-axum,rmcp,bare --rounds {rounds}");
    let rates: HttpRates = runner.run("http", "http", &words(&line)).await?;
    Ok(rates.into())
}

async fn client(runner: &Runner, rounds: u32) -> Outcome<Vec<Load>> {
    let rates: ClientRates = runner.run("client", "client", &words(&format!("--rounds {rounds}"))).await?;
    Ok(rates.into())
}

/// Counts instructions and allocations of these servers on stdio.
pub(crate) async fn stdio_counts(runner: &Runner, servers: &str) -> Outcome<StdioCounts> {
    let line = format!("--callgrind --tools add,blob --servers {servers}");
    runner.run("stdio", "stdio-counts", &words(&line)).await
}

/// Counts instructions and allocations of these servers on HTTP.
pub(crate) async fn http_counts(runner: &Runner, servers: &str) -> Outcome<HttpCounts> {
    let line = format!("--callgrind --servers {servers}");
    runner.run("http", "http-counts", &words(&line)).await
}

async fn start(runner: &Runner, rounds: u32) -> Outcome<Vec<Start>> {
    let line = format!("--parts start,memory --rounds {rounds}");
    let start: StdioStart = runner.run("stdio", "stdio-start", &words(&line)).await?;
    Ok(start.servers)
}

/// How many rounds there were: a smoke run has its own number.
fn rounds_measured(measurements: &Measurements) -> usize {
    let stdio = measurements.stdio.iter().flatten().flat_map(|run| &run.loads);
    let http = measurements.http.iter().flat_map(|run| &run.loads);
    let loads = stdio.chain(http).chain(measurements.client.iter().flatten());
    let of_loads = loads.flat_map(|load| &load.contestants).map(|one| one.rounds.len());
    let of_starts = measurements.start.iter().flatten().map(|one| one.rounds.len());
    of_loads.chain(of_starts).max().unwrap_or_default()
}

/// The command line to say in the document. Where it is written to is no part of it.
fn command(arguments: &BenchArgs) -> String {
    let rounds = match arguments.rounds {
        DEFAULT_ROUNDS => String::new(),
        rounds => format!(" --rounds {rounds}"),
    };
    let smoke = if arguments.smoke { " --smoke" } else { "" };
    let peers = if arguments.without_peers { " --without-peers" } else { "" };
    format!("cargo xtask bench{rounds}{smoke}{peers}")
}
