//! The command: `sim explore` searches small worlds through, `sim --seeds N` simulates, `sim --seed X` looks at one seed.

use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use sim::client::{self, Reach};
use sim::explore::{self, Size};
use sim::{Violation, http, pair, shell};

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
    /// Look at this one seed: if it fails it is shrunk, if not its trace hash is shown.
    #[arg(long)]
    seed: Option<u64>,
    /// With --seed: only these parts of its script, as a shrunk failure prints them.
    #[arg(long, value_delimiter = ',', requires = "seed")]
    keep: Option<Vec<usize>>,
    /// With --seed: show everything that was seen.
    #[arg(long, requires = "seed")]
    trace: bool,
    /// What is simulated.
    #[arg(long, value_enum)]
    world: Option<World>,
}

impl Options {
    fn simulates(&self, world: World) -> bool {
        self.world.is_none_or(|only| only == world)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum World {
    /// A client's and a server's core, joined by a link that misbehaves.
    Cores,
    /// The real shell on the simulator's executor.
    Shell,
    /// The real HTTP service on the simulator's executor.
    Http,
    /// The real client, over a stream of bytes.
    Client,
    /// The real client, over HTTP.
    HttpClient,
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
}

fn main() -> ExitCode {
    let options = Options::parse();
    let lawful = match (&options.command, options.seed) {
        (Some(Command::Explore { world, full, cross_check }), _) => {
            let size = if *full { Size::Full } else { Size::Small };
            search(world.as_deref(), size, *cross_check)
        }
        (None, Some(seed)) => look_at(seed, &options),
        (None, None) => simulate(&options),
    };
    if lawful { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn search(world: Option<&str>, size: Size, cross_check: Option<usize>) -> bool {
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
    worlds > 0
}

fn look_at(seed: u64, options: &Options) -> bool {
    let mut lawful = true;
    if options.simulates(World::Cores) {
        if options.trace {
            for line in pair::trace(seed) {
                println!("{line}");
            }
        }
        match pair::examine(seed, options.keep.as_deref()) {
            Some(failure) => {
                print!("{failure}");
                lawful = false;
            }
            None => println!("cores: seed {seed} breaks no law, trace {:016x}", pair::run(seed).hash),
        }
    }
    if options.keep.is_some() {
        return lawful;
    }
    for (_, seeded) in SEEDED.iter().filter(|(world, _)| options.simulates(*world)) {
        if options.trace {
            for line in (seeded.lines)(seed) {
                println!("{line}");
            }
        }
        match (seeded.run)(seed) {
            Ok(run) => println!("{}: seed {seed} breaks no law, trace {:016x}", seeded.name, run.trace),
            Err(violation) => {
                seeded.fails(seed, &violation);
                lawful = false;
            }
        }
    }
    lawful
}

/// What many runs came to.
#[derive(Default)]
struct Totals {
    requests: u64,
    cancels: u64,
    closes: u64,
    messages: u64,
    violations: u64,
    hash: u64,
}

impl Totals {
    fn mix(&mut self, hash: u64) {
        self.hash = self.hash.rotate_left(5).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ hash;
    }
}

fn simulate(options: &Options) -> bool {
    let mut totals = Totals::default();
    for seed in options.start..options.start.saturating_add(options.seeds) {
        if options.simulates(World::Cores) {
            simulate_cores(seed, &mut totals);
        }
        for (_, seeded) in SEEDED.iter().filter(|(world, _)| options.simulates(*world)) {
            seeded.simulate(seed, &mut totals);
        }
    }
    let Totals { requests, cancels, closes, messages, violations, hash } = totals;
    println!(
        "seeds={} requests={requests} cancels={cancels} closes={closes} messages={messages} violations={violations} trace={hash:016x}",
        options.seeds
    );
    violations == 0
}

fn simulate_cores(seed: u64, totals: &mut Totals) {
    let run = pair::run(seed);
    totals.requests += run.requests;
    totals.cancels += run.cancels;
    totals.closes += run.closes;
    totals.messages += run.messages;
    totals.mix(run.hash);
    if !run.violations.is_empty() {
        totals.violations += 1;
        if let Some(failure) = pair::examine(seed, None) {
            print!("{failure}");
        }
    }
}

/// A world on the executor.
struct Seeded {
    name: &'static str,
    run: fn(u64) -> Result<Run, Violation>,
    shrink: fn(u64) -> Option<String>,
    lines: fn(u64) -> Vec<String>,
}

/// What all of them count.
struct Run {
    requests: u64,
    cancels: u64,
    closes: u64,
    messages: u64,
    trace: u64,
}

const SEEDED: [(World, Seeded); 4] = [
    (World::Shell, Seeded { name: "shell", run: run_shell, shrink: shell::shrink, lines: shell::lines }),
    (World::Http, Seeded { name: "http", run: run_http, shrink: http::shrink, lines: http::lines }),
    (
        World::Client,
        Seeded {
            name: "client",
            run: |seed| run_client(Reach::Stream, seed),
            shrink: |seed| client::shrink(Reach::Stream, seed),
            lines: |seed| client::lines(Reach::Stream, seed),
        },
    ),
    (
        World::HttpClient,
        Seeded {
            name: "http-client",
            run: |seed| run_client(Reach::Http, seed),
            shrink: |seed| client::shrink(Reach::Http, seed),
            lines: |seed| client::lines(Reach::Http, seed),
        },
    ),
];

fn run_shell(seed: u64) -> Result<Run, Violation> {
    shell::run_seed(seed).map(|shell::Totals { requests, cancellations, runs, messages, trace, .. }| Run {
        requests,
        cancels: cancellations,
        closes: runs,
        messages,
        trace,
    })
}

fn run_http(seed: u64) -> Result<Run, Violation> {
    http::run_seed(seed).map(|http::Totals { requests, cancellations, sessions, events, trace, .. }| Run {
        requests,
        cancels: cancellations,
        closes: sessions,
        messages: events,
        trace,
    })
}

fn run_client(reach: Reach, seed: u64) -> Result<Run, Violation> {
    client::run_seed(reach, seed).map(|client::Totals { calls, dropped, runs, messages, trace, .. }| Run {
        requests: calls,
        cancels: dropped,
        closes: runs,
        messages,
        trace,
    })
}

impl Seeded {
    fn simulate(&self, seed: u64, totals: &mut Totals) {
        match (self.run)(seed) {
            Ok(run) => {
                totals.requests += run.requests;
                totals.cancels += run.cancels;
                totals.closes += run.closes;
                totals.messages += run.messages;
                totals.mix(run.trace);
            }
            Err(violation) => {
                totals.violations += 1;
                self.fails(seed, &violation);
            }
        }
    }

    fn fails(&self, seed: u64, violation: &Violation) {
        let name = self.name;
        println!("seed {seed} breaks, in the world {name},\n  {violation}");
        println!("  again:  cargo run --release -p sim -- --world {name} --seed {seed}");
        if let Some(shrunk) = (self.shrink)(seed) {
            println!("{shrunk}");
        }
    }
}
