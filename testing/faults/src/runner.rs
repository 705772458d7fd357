//! Runs checks and reports on them, for the tests and for the command.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::check_context::{CheckContext, seconds};
use crate::concurrency;
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
    /// How many checks run side by side.
    pub lanes: usize,
    /// From which all random choices follow.
    pub seed: u64,
    /// A program that plays a client, a server or a process that outlives it, when its first argument says so.
    pub client_program: PathBuf,
}

impl Options {
    /// The defaults, with the seed and the numbers of races and lanes from `FAULTS_SEED`, `FAULTS_RACES` and `FAULTS_LANES` when
    /// those are set. Two lanes more than there are cores: most checks wait.
    pub fn new(client_program: PathBuf) -> Self {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let count = |name: &str| number(name).and_then(|count| usize::try_from(count).ok());
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            filter: None,
            era: None,
            repeat: 1,
            races: count("FAULTS_RACES").unwrap_or(RACES),
            lanes: count("FAULTS_LANES").unwrap_or(cores + 2),
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

/// Runs rows, and reports each check in the order of the table, as soon as it and all before it are done.
pub fn run(rows: &[&'static Row], options: &Options, mut on_report: impl FnMut(&Report)) -> Vec<Report> {
    let jobs = jobs(rows, options);
    let next = AtomicUsize::new(0);
    let (done, finished) = mpsc::channel();
    let mut waiting: BTreeMap<usize, Report> = BTreeMap::new();
    let mut reports = Vec::new();
    std::thread::scope(|scope| {
        for _ in 0..options.lanes.clamp(1, jobs.len().max(1)) {
            let (jobs, next, done) = (&jobs, &next, done.clone());
            scope.spawn(move || {
                while let Some((position, (row, check, era))) = take(jobs, next) {
                    let permit = concurrency::acquire(options.lanes, check.alone);
                    let report = run_check(row, check, era, options);
                    drop(permit);
                    // The receiver lives as long as this scope.
                    let _ = done.send((position, report));
                }
            });
        }
        drop(done);
        for (position, report) in finished {
            waiting.insert(position, report);
            while let Some(report) = waiting.remove(&reports.len()) {
                on_report(&report);
                reports.push(report);
            }
        }
    });
    reports
}

type Job = (&'static Row, &'static Check, Era);

fn jobs(rows: &[&'static Row], options: &Options) -> Vec<Job> {
    let mut jobs = Vec::new();
    for row in rows {
        for check in row.checks {
            let name = format!("{}/{}", row.name, check.name);
            if options.filter.as_ref().is_some_and(|filter| !name.contains(filter.as_str())) {
                continue;
            }
            let wanted = |era: &&Era| options.era.as_ref().is_none_or(|wanted| wanted == era.revision());
            jobs.extend(check.eras.iter().filter(wanted).map(|era| (*row, check, *era)));
        }
    }
    jobs
}

fn take(jobs: &[Job], next: &AtomicUsize) -> Option<(usize, Job)> {
    let place = next.fetch_add(1, Ordering::Relaxed);
    Some((place, *jobs.get(place)?))
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
    let context = program::programs()
        .and_then(|programs| CheckContext::new(programs, options.client_program.clone(), era, seed, options.races));
    let mut context = context.map_err(|failure| failure.0)?;
    let verdict = catch_unwind(AssertUnwindSafe(|| (check.run)(&mut context)))
        .unwrap_or_else(|_| Err(Failure("the check itself panicked".to_owned())));
    verdict.map(|()| context.notes()).map_err(|failure| {
        let mut words = format!("{name} in {era}: {failure}\n");
        let _ = writeln!(words, "    seen before: {}", context.notes());
        words.push_str(&context.last_words());
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
