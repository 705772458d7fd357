//! The command: `sim --seeds N` runs seeds, `sim --seed X` looks at one, `sim replay` runs those that ever failed, and
//! `sim explore` searches small worlds through.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand};
use sim::explore::{self, Size};
use sim::sweep::{Group, ProgressFile, Results, Sweep, groups};
use sim::worlds::World;
use sim::{Seed, failed_seeds, pair, proof};

/// Runs are short and make many small allocations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Looks for an order of events that breaks a law.
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    /// How many seeds to run.
    #[arg(long, default_value_t = 10_000)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    start: u64,
    /// How many threads to run them on [default: one for each core].
    #[arg(long)]
    jobs: Option<usize>,
    /// Keep the state in this file, and go on from it if it is there: a sweep can be interrupted at any time.
    #[arg(long, value_name = "FILE", requires = "world")]
    progress: Option<PathBuf>,
    /// Add a line about each world that was run to the end to this file: commit, world, first seed, seeds, violations.
    #[arg(long, value_name = "FILE", global = true)]
    record: Option<PathBuf>,
    /// Show how often each input, event, refusal and ending was seen, and which never.
    #[arg(long)]
    coverage: bool,
    /// Look at this one seed: if it fails it is shrunk, if not its trace hash is shown.
    #[arg(long)]
    seed: Option<u64>,
    /// With --seed, of the world `cores`: only these parts of its script, as a shrunk failure prints them.
    #[arg(long, value_delimiter = ',', requires = "seed")]
    keep: Option<Vec<usize>>,
    /// With --seed: show everything that was seen.
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Leave scripts as they are first drawn, without the bias towards what is rare.
    #[arg(long)]
    plain: bool,
    /// What is simulated [default: all worlds, one after the other].
    #[arg(long, value_parser = PossibleValuesParser::new(World::ALL.map(World::name)))]
    world: Vec<String>,
}

impl Options {
    fn worlds(&self) -> Vec<World> {
        let named: Vec<World> = self.world.iter().filter_map(|name| World::by_name(name)).collect();
        if named.is_empty() { World::ALL.to_vec() } else { named }
    }

    fn jobs(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.jobs.unwrap_or_else(cores)
    }
}

#[derive(Subcommand)]
enum Command {
    /// Searches every interleaving of small worlds.
    Explore {
        /// Only this world.
        #[arg(long)]
        world: Option<String>,
        /// Larger worlds, searched in minutes.
        #[arg(long)]
        full: bool,
        /// Also search to this depth without recognising states, and compare.
        #[arg(long)]
        cross_check: Option<usize>,
    },
    /// Runs every seed that ever failed.
    Replay,
    /// Writes the tables of `docs/proof.md` anew, from `testing/record.tsv`. To be run at the root of the repository.
    Proof,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let lawful = match (&options.command, options.seed) {
        (Some(Command::Explore { world, full, cross_check }), _) => {
            let size = if *full { Size::Full } else { Size::Small };
            search(world.as_deref(), size, *cross_check, options.record.as_deref())
        }
        (Some(Command::Replay), _) => replay(),
        (Some(Command::Proof), _) => write_proof().inspect_err(|error| eprintln!("docs/proof.md: {error}")).is_ok(),
        (None, Some(seed)) => look_at(seed, &options),
        (None, None) => sweep(&options),
    };
    if lawful { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn search(world: Option<&str>, size: Size, cross_check: Option<usize>, path: Option<&Path>) -> bool {
    let names = explore::names().iter().filter(|name| world.is_none_or(|world| world == **name));
    let mut total = explore::Totals::default();
    let mut worlds = 0;
    for name in names {
        worlds += 1;
        if let Some(depth) = cross_check {
            match explore::cross_check(name, depth) {
                Ok((states, paths)) => {
                    println!("{name}: {paths} paths of {depth} steps reach the same {states} states");
                }
                Err(why) => {
                    println!("{why}");
                    return false;
                }
            }
        }
        match explore::explore(name, size) {
            Ok(found) => {
                println!("{name}: {found}");
                total += found;
            }
            Err(counterexample) => {
                print!("{counterexample}");
                return false;
            }
        }
    }
    println!("worlds={worlds} {total} violations=0");
    let line = || format!("explore\t{}\t{worlds}\t{}\t0", commit(), total.states);
    let recorded = path.map_or(Ok(()), |path| record(path, &line()));
    worlds > 0 && recorded.inspect_err(|error| eprintln!("{error}")).is_ok()
}

fn look_at(number: u64, options: &Options) -> bool {
    let seed = Seed { number, plain: options.plain };
    if let Some(keep) = &options.keep {
        return pair::examine(seed, Some(keep)).inspect(|failure| print!("{failure}")).is_none();
    }
    let mut lawful = true;
    for world in options.worlds() {
        if options.trace {
            world.lines(seed).iter().for_each(|line| println!("{line}"));
        }
        match world.run(seed) {
            Ok(counts) => println!("{world}: seed {seed} breaks no law, trace {:016x}", counts.trace),
            Err(violation) => {
                lawful = false;
                println!("seed {seed} breaks, in the world {world},\n  {violation}");
                if let Some(shrunk) = world.shrink(seed) {
                    println!("{shrunk}");
                }
            }
        }
    }
    lawful
}

fn replay() -> bool {
    let mut broken = 0;
    let all = failed_seeds::all();
    for (world, seed) in &all {
        if let Err(violation) = world.run(*seed) {
            broken += 1;
            println!("{world}: seed {seed} breaks {violation}");
            println!("  again:  cargo run --release -p sim -- --world {world} --seed {seed}");
        }
    }
    println!("replayed={} violations={broken}", all.len());
    broken == 0 && !all.is_empty()
}

fn write_proof() -> std::io::Result<()> {
    let (path, record) = ("docs/proof.md", std::fs::read_to_string("testing/record.tsv")?);
    let renewed = proof::renew(&std::fs::read_to_string(path)?, &record);
    std::fs::write(path, renewed.ok_or_else(|| std::io::Error::other("it has no place for the tables"))?)
}

fn sweep(options: &Options) -> bool {
    // As it is before anything is added to the record.
    let commit = commit();
    let mut lawful = true;
    for world in options.worlds() {
        let sweep = Sweep { world, start: options.start, seeds: options.seeds, plain: options.plain };
        match run(sweep, options, &commit) {
            Ok(results) => lawful &= results.findings.is_empty(),
            Err(error) => {
                eprintln!("{world}: {error}");
                return false;
            }
        }
    }
    lawful
}

/// Runs a sweep and shows what it came to. An error of a file is told behind that.
fn run(sweep: Sweep, options: &Options, commit: &str) -> std::io::Result<Results> {
    let (mut file, before) = match &options.progress {
        Some(path) => ProgressFile::open(path, &sweep).map(|(file, before)| (Some(file), before))?,
        None => (None, Results::default()),
    };
    let done_before = before.done;
    let (mut shown, mut failed) = (Instant::now(), Ok(()));
    let results = sweep.run(options.jobs(), before, |so_far| {
        if let Some(Err(error)) = file.as_mut().map(|file| file.write_if_due(so_far)) {
            failed = Err(error);
        }
        if shown.elapsed() > Duration::from_secs(60) {
            shown = Instant::now();
            let Results { done, findings, .. } = so_far;
            eprintln!("{}: {done} of {} seeds, violations={}", sweep.world, sweep.seeds, findings.len());
        }
    });
    show(sweep, &results, options);
    failed?;
    if let Some(file) = &mut file {
        file.write(&results)?;
    }
    let Results { done, findings, .. } = &results;
    if let Some(path) = options.record.as_ref().filter(|_| *done > done_before) {
        let kind = if sweep.plain { "plain seeds" } else { "seeds" };
        record(path, &format!("{kind}\t{commit}\t{}\t{}\t{done}\t{}", sweep.world, sweep.start, findings.len()))?;
    }
    Ok(results)
}

/// Adds a line to the record.
fn record(path: &Path, line: &str) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())
}

/// What is run, as git names it: with a mark if something was changed since.
fn commit() -> String {
    let git = std::process::Command::new("git").args(["describe", "--always", "--dirty", "--exclude=*"]).output();
    let name = git.ok().map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}

fn show(sweep: Sweep, results: &Results, options: &Options) {
    let groups = groups(&results.findings);
    for group in &groups {
        show_group(sweep.world, group);
    }
    let (reached, known) = results.coverage.reached();
    if options.coverage {
        for (name, count) in &results.coverage.0 {
            println!("{count:>12}  {name}");
        }
    }
    let Sweep { world, start, .. } = sweep;
    println!(
        "world={world} start={start} seeds={} requests={} cancels={} closes={} messages={} kinds={reached}/{known} seeds/s/core={:.0} violations={} trace={:016x}",
        results.done,
        results.counts.requests,
        results.counts.cancels,
        results.counts.closes,
        results.counts.messages,
        results.rate(),
        results.findings.len(),
        results.counts.trace,
    );
}

fn show_group(world: World, group: &Group<'_>) {
    let seeds: Vec<String> = group.findings.iter().take(8).map(|finding| finding.seed.to_string()).collect();
    println!("{} times, in the world {world}: {}: {}", group.findings.len(), group.law, group.what);
    println!("  seeds:  {}{}", seeds.join(", "), if group.findings.len() > 8 { ", ..." } else { "" });
    for (steps, count) in &group.shapes {
        println!("  shrunk: {count} to {steps}");
    }
    if let Some(first) = group.findings.first() {
        println!("  again:  cargo run --release -p sim -- --world {world} --seed {}", first.seed);
        if let Some(shrunk) = &first.shrunk {
            println!("  the smallest: {}", shrunk.violation);
            shrunk.text.lines().for_each(|line| println!("    {line}"));
        }
    }
}
