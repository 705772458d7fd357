//! Real MCP clients, as their registries have them, against `steadfast serve`; and Steadfast's client against real servers.
//!
//! Every peer is met in every check that it can do, on every transport and in every revision that it speaks.
#![forbid(unsafe_code)]

mod clients;
mod expected;
mod install;
mod options;
mod package;
mod process;
mod report;
mod revision;
mod servers;
mod transport;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::install::Installed;
use crate::options::Options;
use crate::package::Package;
use crate::report::{Report, Row};

/// Whatever went wrong, in words for a person.
type Result<T = (), E = String> = std::result::Result<T, E>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [help] = arguments.as_slice()
        && ["--help", "-h"].contains(&help.as_str())
    {
        println!("{}", options::USAGE);
        return ExitCode::SUCCESS;
    }
    let Some(options) = Options::parse(arguments.into_iter()) else {
        eprintln!("{}", options::USAGE);
        return ExitCode::from(2);
    };
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(words) => {
            eprintln!("interop: {words}");
            ExitCode::FAILURE
        }
    }
}

/// A run: a row of one of the two tables.
enum Run {
    Client(clients::ClientRun),
    Server(servers::ServerRun),
}

impl Run {
    fn keep(&mut self, wanted: impl Fn(&str) -> bool) {
        match self {
            Self::Client(run) => run.keep(wanted),
            Self::Server(run) => run.keep(wanted),
        }
    }

    fn names(&self) -> Vec<String> {
        match self {
            Self::Client(run) => run.names(),
            Self::Server(run) => run.names(),
        }
    }

    fn package(&self) -> &'static Package {
        match self {
            Self::Client(run) => run.package(),
            Self::Server(run) => run.package(),
        }
    }

    fn row(&self, installed: &Result<Installed>, base: &Path, program: &Path) -> Row {
        match self {
            Self::Client(run) => run.row(installed, base, program),
            Self::Server(run) => run.row(installed, base),
        }
    }
}

/// True if everything that should pass did, and something ran.
fn run(options: &Options) -> Result<bool> {
    let start = Instant::now();
    let (runs, program) = wanted(options)?;
    if options.only_list {
        runs.iter().flat_map(Run::names).for_each(|name| println!("{name}"));
        return Ok(true);
    }
    let base = base()?;
    let packages: BTreeMap<_, _> = runs.iter().map(|run| (run.package().name, run.package())).collect();
    let installed = install::all(&packages.into_values().collect::<Vec<_>>(), &base)?;
    println!("installed after {} s", start.elapsed().as_secs());
    let reports = run_all(runs, &installed, &base, &program);
    for report in reports.iter().filter(|report| !report.is_empty()) {
        println!("\n{report}");
    }
    println!("in {} s", start.elapsed().as_secs());
    Ok(reports.iter().any(|report| !report.is_empty()) && reports.iter().all(Report::is_good))
}

/// What is to be done, in the order of the tables, and the command that clients are to meet.
fn wanted(options: &Options) -> Result<(Vec<Run>, PathBuf)> {
    let revisions: fn(&str) -> bool = if options.quick { revision::is_newest } else { |_| true };
    let (mut runs, mut program) = (Vec::new(), PathBuf::new());
    if options.clients {
        let (clients, command) = clients::runs(revisions)?;
        runs.extend(clients.into_iter().map(Run::Client));
        program = command;
    }
    if options.servers {
        runs.extend(servers::runs(revisions).map(Run::Server));
    }
    for run in &mut runs {
        run.keep(|name| name.contains(&options.filter));
    }
    runs.retain(|run| !run.names().is_empty());
    Ok((runs, program))
}

/// Executes the runs in parallel: each of them waits more than it works.
fn run_all(runs: Vec<Run>, installed: &BTreeMap<&str, Result<Installed>>, base: &Path, program: &Path) -> [Report; 2] {
    let at_once = std::thread::available_parallelism().map_or(2, |cores| cores.get() + 1);
    let waiting = Mutex::new(runs.into_iter().enumerate());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let done = Mutex::new([BTreeMap::new(), BTreeMap::new()]);
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some((position, run)) = next() {
                    let Some(installed) = installed.get(run.package().name) else { continue };
                    let row = run.row(installed, base, program);
                    println!("{}", row.summary());
                    let [clients, servers] = &mut *done.lock().unwrap_or_else(PoisonError::into_inner);
                    let table = if matches!(run, Run::Client(_)) { clients } else { servers };
                    table.insert(position, row);
                }
            });
        }
    });
    let [clients, servers] = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    [
        Report::new("client", clients::columns(), clients.into_values().collect()),
        Report::new("server", servers::columns(), servers.into_values().collect()),
    ]
}

/// Where packages are installed and fixtures are created: beside what cargo builds, so that it goes when that goes.
fn base() -> Result<PathBuf> {
    let this_program = std::env::current_exe().map_err(|error| error.to_string())?;
    let target = this_program.ancestors().nth(2).ok_or("this program is not in a target folder")?;
    Ok(target.join("interop"))
}
