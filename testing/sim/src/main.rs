//! The command: `sim --seeds N` runs seeds, `sim --seed X` looks at one, `sim replay` runs those that failed once, `sim explore`
//! searches small worlds exhaustively, and `sim proof` writes the tables of `docs/proof.md`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use sim::explore::{self, Size};
use sim::proof::record::{self, Entry};
use sim::sweep::{COMMIT, Group, ProgressFile, Results, Sweep, groups};
use sim::worlds::{World, examine_parts};
use sim::{Seed, failed_seeds, proof};

/// Runs are short and make many small allocations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Looks for an order of events that breaks a law.
#[derive(Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    /// Number of seeds to run in each world.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    start: u64,
    /// Number of threads [default: one for each core].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Save the state of all worlds to this file every two seconds, and resume from it if it exists: a run may be ended at any
    /// time, and at most two seconds of its work are done again. A larger --seeds extends a run that is complete. The file
    /// belongs to one build of the simulator.
    #[arg(long, value_name = "FILE")]
    progress: Option<PathBuf>,
    /// Append a line for each world that was run to its end to this file: commit, world, first seed, seeds, violations, seeds
    /// per second per core. Seeds of a run with --progress are recorded once.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Print for each world how often each input, effect, event and ending occurred, with a zero for inputs and effects that never
    /// did.
    #[arg(long)]
    coverage: bool,
    /// Run one seed. If it fails it is shrunk, otherwise its trace hash is printed.
    #[arg(long, conflicts_with_all = ["seeds", "start", "jobs", "progress", "record", "coverage"])]
    seed: Option<u64>,
    /// With --seed and --world cores: run only these parts of the script, as a shrunk failure lists them. If they break a law,
    /// what was observed is printed.
    #[arg(long, value_delimiter = ',', requires_all = ["seed", "world"], conflicts_with = "trace")]
    keep: Option<Vec<usize>>,
    /// With --seed: print everything that was observed.
    #[arg(long, requires = "seed", conflicts_with_all = ["seeds", "start", "jobs", "progress", "record", "coverage"])]
    trace: bool,
    /// Leave scripts as they are first drawn, without the bias towards rare situations and without subscriptions.
    #[arg(long = "no-bias", alias = "plain")]
    plain: bool,
    /// The world to simulate; may be repeated [default: all worlds, one after the other].
    #[arg(long, value_parser = PossibleValuesParser::new(World::ALL.map(World::name)))]
    world: Vec<String>,
}

impl Options {
    fn checked(self) -> Result<Self, clap::Error> {
        if self.keep.is_some() && self.worlds() != [World::Cores] {
            return Err(Self::command().error(ErrorKind::ArgumentConflict, "--keep works only with --world cores"));
        }
        if self.progress.is_some() && self.progress == self.record {
            let message = "--progress and --record need different files";
            return Err(Self::command().error(ErrorKind::ArgumentConflict, message));
        }
        if self.start.checked_add(self.seeds - 1).is_none() {
            let message = format!("there are no {} seeds from {} on", self.seeds, self.start);
            return Err(Self::command().error(ErrorKind::ValueValidation, message));
        }
        Ok(self)
    }

    /// The worlds that were named, each once; all of them if none was.
    fn worlds(&self) -> Vec<World> {
        let is_named = |world: &World| self.world.is_empty() || self.world.iter().any(|name| name == world.name());
        World::ALL.into_iter().filter(is_named).collect()
    }

    fn jobs(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.jobs.map_or_else(cores, usize::from)
    }
}

#[derive(Subcommand)]
enum Command {
    /// Searches every interleaving of small worlds.
    Explore {
        /// Only this world.
        #[arg(long, value_parser = PossibleValuesParser::new(explore::names()))]
        world: Option<String>,
        /// Larger worlds, searched in minutes.
        #[arg(long)]
        full: bool,
        /// Also search to this depth without recognising states, and compare.
        #[arg(long)]
        cross_check: Option<usize>,
        /// Append a line to this file: commit, worlds, states, violations, size.
        #[arg(long, value_name = "FILE")]
        record: Option<PathBuf>,
    },
    /// Runs the seeds that `testing/sim/failed-seeds.txt` had when this program was built.
    Replay,
    /// Writes the tables of `docs/proof.md` from `testing/record.tsv`, and from the failed seeds and mutants that this program was
    /// built with. Run it at the root of the repository.
    Proof,
}

fn main() -> ExitCode {
    let options = Options::parse().checked().unwrap_or_else(|error| error.exit());
    let outcome = match (&options.command, options.seed) {
        (Some(Command::Explore { world, full, cross_check, record }), _) => {
            search(world.as_deref(), *full, *cross_check, record.as_deref())
        }
        (Some(Command::Replay), _) => replay(),
        (Some(Command::Proof), _) => write_proof().map(|()| true),
        (None, Some(seed)) => Ok(look_at(seed, &options)),
        (None, None) => sweep(&options),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn search(world: Option<&str>, full: bool, cross_check: Option<usize>, path: Option<&Path>) -> Result<bool, String> {
    path.map_or(Ok(()), record::check)?;
    let size = if full { Size::Full } else { Size::Small };
    let mut total = explore::Totals::default();
    let (mut worlds, mut violations) = (0, 0);
    for name in explore::names().iter().filter(|name| world.is_none_or(|world| world == **name)) {
        worlds += 1;
        if let Err(why) = cross_check.map_or(Ok(()), |depth| compare(name, depth)) {
            println!("{why}");
            violations += 1;
            continue;
        }
        match explore::explore(name, size) {
            Ok(found) => {
                println!("{name}: {found}");
                total += found;
            }
            Err(counterexample) => {
                print!("{counterexample}");
                violations += 1;
            }
        }
    }
    println!("worlds={worlds} {total} violations={violations}");
    let states = u64::try_from(total.states).unwrap_or(u64::MAX);
    let entry = Entry::Explore { commit: COMMIT.to_owned(), worlds, states, violations, full };
    path.map_or(Ok(()), |path| record::append(path, &entry))?;
    Ok(violations == 0)
}

fn compare(name: &str, depth: usize) -> Result<(), String> {
    let (states, paths) = explore::cross_check(name, depth)?;
    println!("{name}: {paths} paths of {depth} steps reach the same {states} states");
    Ok(())
}

fn look_at(number: u64, options: &Options) -> bool {
    let seed = Seed { number, plain: options.plain };
    if let Some(keep) = &options.keep {
        let failure = examine_parts(seed, keep);
        match &failure {
            Some(failure) => print!("{failure}"),
            None => println!("cores: these parts of seed {seed} break no law"),
        }
        return failure.is_none();
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
                println!("{world}: seed {seed} breaks\n  {violation}");
                if let Some(shrunk) = world.shrink(seed) {
                    println!("{shrunk}");
                }
            }
        }
    }
    lawful
}

fn replay() -> Result<bool, String> {
    let (mut replayed, mut violations) = (0, 0);
    for (world, seed) in failed_seeds::causes()?.into_iter().flat_map(|cause| cause.seeds) {
        replayed += 1;
        if let Err(violation) = world.run(seed) {
            violations += 1;
            println!("{world}: seed {seed} breaks {violation}");
            println!("  reproduce: cargo run --release -p sim -- --world {world} --seed {seed}");
        }
    }
    println!("replayed={replayed} violations={violations}");
    Ok(violations == 0 && replayed > 0)
}

fn write_proof() -> Result<(), String> {
    let read = |path| std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
    let path = "docs/proof.md";
    let renewed = proof::renew(path, &read(path)?, &read("testing/record.tsv")?)?;
    std::fs::write(path, renewed).map_err(|error| format!("{path}: {error}"))
}

fn sweep(options: &Options) -> Result<bool, String> {
    options.record.as_deref().map_or(Ok(()), record::check)?;
    let open = |path: &PathBuf| ProgressFile::open(path, options.start, options.plain);
    let mut file = options.progress.as_ref().map(open).transpose().map_err(|error| error.to_string())?;
    let mut lawful = true;
    for world in options.worlds() {
        let sweep = Sweep { world, start: options.start, seeds: options.seeds, plain: options.plain };
        lawful &= run(sweep, options, file.as_mut())?.findings.is_empty();
    }
    Ok(lawful)
}

/// Runs a sweep and prints its results. They are printed also if a file cannot be written.
fn run(sweep: Sweep, options: &Options, mut file: Option<&mut ProgressFile>) -> Result<Results, String> {
    let world = sweep.world;
    let resumed = file.as_ref().map(|file| file.results(world)).unwrap_or_default();
    if resumed.done >= sweep.seeds {
        eprintln!("{world}: the progress file has {} seeds already, there is nothing to run", resumed.done);
    }
    let (mut shown, mut failed) = (Instant::now(), false);
    let mut results = sweep.run(options.jobs(), resumed, |so_far| {
        if let Some(Err(error)) = file.as_mut().map(|file| file.write_if_due(world, so_far))
            && !std::mem::replace(&mut failed, true)
        {
            eprintln!("{world}: {error}; the run goes on, and its state is not saved");
        }
        if shown.elapsed() > Duration::from_secs(60) {
            shown = Instant::now();
            eprintln!("{world}: {} of {} seeds, violations={}", so_far.done, sweep.seeds, so_far.findings.len());
        }
    });
    show(sweep, &results, options);
    save(file.as_deref_mut(), world, &results)?;
    if let Some(path) = options.record.as_deref().filter(|_| results.done > results.recorded) {
        record::append(path, &entry(sweep, &results))?;
        // Only now: if the line cannot be written, the next run of this sweep writes it.
        results.recorded = results.done;
        save(file, world, &results)?;
    }
    Ok(results)
}

fn save(file: Option<&mut ProgressFile>, world: World, results: &Results) -> Result<(), String> {
    file.map_or(Ok(()), |file| file.write(world, results)).map_err(|error| error.to_string())
}

/// The line of the record about those seeds of a sweep that have none yet.
fn entry(sweep: Sweep, results: &Results) -> Entry {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is positive and small")]
    let rate = results.rate().round() as u64;
    Entry::Seeds {
        commit: COMMIT.to_owned(),
        world: sweep.world,
        start: sweep.start.wrapping_add(results.recorded),
        seeds: results.done - results.recorded,
        violations: u64::try_from(sweep.unrecorded(results)).unwrap_or(u64::MAX),
        rate: Some(rate),
        plain: sweep.plain,
    }
}

fn show(sweep: Sweep, results: &Results, options: &Options) {
    let Sweep { world, start, .. } = sweep;
    for group in &groups(&results.findings) {
        show_group(world, group);
    }
    let (reached, known) = results.coverage.reached();
    if options.coverage {
        println!("coverage of {world}: {reached} of {known} inputs and effects");
        for (name, count) in &results.coverage.0 {
            println!("{count:>12}  {world} / {name}");
        }
    }
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
    println!("{} seeds of {world}: {}: {}", group.findings.len(), group.law, group.what);
    println!("  seeds:  {}{}", seeds.join(", "), if group.findings.len() > 8 { ", ..." } else { "" });
    for (steps, count) in &group.shapes {
        println!("  shrunk: {count} to {steps}");
    }
    if let Some(first) = group.findings.first() {
        println!("  reproduce: cargo run --release -p sim -- --world {world} --seed {}", first.seed);
        if let Some(shrunk) = &first.shrunk {
            println!("  smallest: {}", shrunk.violation);
            shrunk.text.lines().for_each(|line| println!("    {line}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, clap::Error> {
        Options::try_parse_from(line.split(' ')).and_then(Options::checked)
    }

    #[test]
    fn options_that_would_be_ignored_are_refused() {
        Options::command().debug_assert();
        for line in [
            "sim --seed 1 --keep 2 --world http",
            "sim --seed 1 --keep 2",
            "sim --seed 1 --keep 2 --world cores --trace",
            "sim --seed 1 --record x",
            "sim --seed 1 --seeds 5",
            "sim --trace",
            "sim --trace --seeds 10",
            "sim --jobs 0",
            "sim --seeds 0",
            "sim --start 18446744073709551615 --seeds 2",
            "sim --progress x --record x",
            "sim --record x replay",
            "sim replay --record x",
            "sim proof --record x",
            "sim --world http replay",
            "sim explore --world nowhere",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn options_that_belong_together_are_taken() {
        for line in [
            "sim --start 5 --seeds 9 --progress x --record y --coverage --no-bias",
            "sim --seed 1 --keep 2,3 --world cores --plain",
            "sim --seed 1 --trace --world http --world client",
            "sim explore --full --record x --world server",
        ] {
            assert!(parse(line).is_ok(), "{line}");
        }
        let named = parse("sim --world http --world cores --world http").unwrap();
        assert_eq!(named.worlds(), [World::Cores, World::Http]);
    }
}
