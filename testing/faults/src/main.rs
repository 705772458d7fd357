//! Runs the fault table against `steadfast serve`, and against a client on the library, and prints it.

use std::process::ExitCode;
use std::time::Instant;

use faults::{
    CLIENT_MODE, OFFSPRING_MODE, Options, Report, SERVER_MODE, play_client, play_offspring, play_server, run, table,
};

const USAGE: &str = "\
Runs every row of the fault table against `steadfast serve`, or against a client.

Usage: faults [--filter TEXT] [--era REVISION] [--repeat N] [--races N] [--lanes N] [--seed N] [--list]

  --filter TEXT   only checks whose row/check contains TEXT
  --era REVISION  only this revision, such as 2025-11-25 or 2026-07-28
  --repeat N      run each check N times (1)
  --races N       rounds of each race (500)
  --lanes N       how many checks run side by side (two more than there are cores)
  --seed N        seed of all random choices (from the clock, and printed)
  --list          print the rows and their checks, run nothing

The command is the one named by STEADFAST_BIN, and the client the one named by SUBJECT_BIN, or beside it; what is not
named is built with cargo.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(CLIENT_MODE) => return play_client(&arguments[1..]),
        Some(SERVER_MODE) => return play_server(&arguments[1..]),
        Some(OFFSPRING_MODE) => return play_offspring(),
        _ => {}
    }
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    if arguments.iter().any(|argument| argument == "--list") {
        list();
        return ExitCode::SUCCESS;
    }
    match options(&arguments) {
        Ok(options) => run_table(&options),
        Err(words) => {
            eprintln!("{words}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn options(arguments: &[String]) -> Result<Options, String> {
    let this_program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut options = Options::new(this_program);
    let mut arguments = arguments.iter();
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value, or is unknown"))?;
        let number = || value.parse::<u64>().map_err(|error| format!("{name} {value}: {error}"));
        let count = || value.parse::<usize>().map_err(|error| format!("{name} {value}: {error}"));
        match name.as_str() {
            "--filter" => options.filter = Some(value.clone()),
            "--era" => options.era = Some(value.clone()),
            "--repeat" => options.repeat = count()?,
            "--lanes" => options.lanes = count()?,
            "--races" => options.races = count()?,
            "--seed" => options.seed = number()?,
            _ => return Err(format!("unknown option {name}")),
        }
    }
    Ok(options)
}

fn list() {
    for row in table() {
        println!("{}\n  fault: {}\n  must:  {}", row.name, row.fault, row.must);
        for check in row.checks {
            let eras: Vec<&str> = check.eras.iter().map(|era| era.revision()).collect();
            println!("    {:40} {}", check.name, eras.join(" "));
        }
    }
}

fn run_table(options: &Options) -> ExitCode {
    let start = Instant::now();
    println!("seed {}, {} rounds of each race, each check {} times", options.seed, options.races, options.repeat);
    println!("{}", Report::head());
    let reports = run(table(), options, |report| println!("{}", report.line()));
    let failed: Vec<&Report> = reports.iter().filter(|report| report.failed > 0).collect();
    for report in &failed {
        println!("\n{}", report.failure.as_deref().unwrap_or_default());
    }
    println!(
        "\n{} checks passed, {} failed, in {} s; seed {}",
        reports.len() - failed.len(),
        failed.len(),
        start.elapsed().as_secs(),
        options.seed
    );
    if failed.is_empty() && !reports.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
