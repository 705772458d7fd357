//! Runs checks and reports on them, for the tests and for the command.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::bench::{Bench, seconds};
use crate::era::Era;
use crate::failure::Failure;
use crate::limits::RACES;
use crate::program;
use crate::random::derive_seed;
use crate::table::{Check, Row};

/// What to run and how often.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only checks whose `row/check` contains this.
    pub filter: Option<String>,
    /// Only this revision.
    pub era: Option<String>,
    /// How often each check is run.
    pub repeat: usize,
    /// Rounds of each race.
    pub races: usize,
    /// From which all random choices follow.
    pub seed: u64,
    /// A program that plays a client, a server or a process left behind, when its first argument says so.
    pub client_program: PathBuf,
}

impl Options {
    /// The defaults, with the seed and the number of races from `FAULTS_SEED` and `FAULTS_RACES` when those are set.
    pub fn new(client_program: PathBuf) -> Self {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self {
            filter: None,
            era: None,
            repeat: 1,
            races: number("FAULTS_RACES").and_then(|races| usize::try_from(races).ok()).unwrap_or(RACES),
            seed: number("FAULTS_SEED").unwrap_or(clock.as_secs() ^ u64::from(clock.subsec_nanos())),
            client_program,
        }
    }
}

/// How one check did in one era.
#[derive(Clone, Debug)]
pub struct Report {
    /// The row.
    pub row: &'static str,
    /// The check.
    pub check: &'static str,
    /// The era.
    pub era: Era,
    /// How often it passed.
    pub passed: usize,
    /// How often it failed.
    pub failed: usize,
    /// How long all of it took.
    pub took: Duration,
    /// What was seen in the last run.
    pub notes: String,
    /// The first failure, with the last words of the server and how to run it again.
    pub failure: Option<String>,
}

/// Runs a row, and tells of each check as soon as it is done.
pub fn run(row: &'static Row, options: &Options, mut tell: impl FnMut(&Report)) -> Vec<Report> {
    let mut reports = Vec::new();
    for check in row.checks {
        let name = format!("{}/{}", row.name, check.name);
        if options.filter.as_ref().is_some_and(|filter| !name.contains(filter.as_str())) {
            continue;
        }
        for era in check.eras {
            if options.era.as_ref().is_some_and(|wanted| wanted != era.revision()) {
                continue;
            }
            let report = run_check(row, check, *era, options);
            tell(&report);
            reports.push(report);
        }
    }
    reports
}

fn run_check(row: &Row, check: &Check, era: Era, options: &Options) -> Report {
    let start = Instant::now();
    let mut report = Report {
        row: row.name,
        check: check.name,
        era,
        passed: 0,
        failed: 0,
        took: Duration::ZERO,
        notes: String::new(),
        failure: None,
    };
    for round in 0..options.repeat {
        match run_once(row, check, era, options, round) {
            Ok(notes) => {
                report.passed += 1;
                report.notes = notes;
            }
            Err(words) => {
                report.failed += 1;
                report.failure.get_or_insert(words);
            }
        }
    }
    report.took = start.elapsed();
    report
}

fn run_once(row: &Row, check: &Check, era: Era, options: &Options, round: usize) -> Result<String, String> {
    let name = format!("{}/{}", row.name, check.name);
    let seed = derive_seed(options.seed, &format!("{name}@{era}"), round);
    let bench = program::programs()
        .and_then(|programs| Bench::new(programs, options.client_program.clone(), era, seed, options.races));
    let mut bench = bench.map_err(|failure| failure.0)?;
    let verdict = catch_unwind(AssertUnwindSafe(|| (check.run)(&mut bench)))
        .unwrap_or_else(|_| Err(Failure("the check itself panicked".to_owned())));
    verdict.map(|()| bench.notes()).map_err(|failure| {
        let mut words = format!("{name} in {era}: {failure}\n");
        let _ = writeln!(words, "    seen before: {}", bench.notes());
        words.push_str(&bench.last_words());
        let _ = writeln!(
            words,
            "    again: cargo run --release -p faults -- --filter {name} --era {era} --seed {} --races {} --repeat {}",
            options.seed,
            options.races,
            round + 1
        );
        words
    })
}

impl Report {
    /// A line of the table.
    pub fn line(&self) -> String {
        let verdict = if self.failed == 0 { "pass" } else { "FAIL" };
        let name = format!("{}/{}", self.row, self.check);
        let took = seconds(self.took);
        format!("{verdict}  {name:64} {:11} {:>5} {:>5} {took:>10}  {}", self.era, self.passed, self.failed, self.notes)
    }

    /// The head of the table.
    pub fn head() -> String {
        format!("{:4}  {:64} {:11} {:>5} {:>5} {:>10}  seen", "", "row/check", "era", "pass", "fail", "time")
    }
}
