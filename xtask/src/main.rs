//! `cargo xtask`: what is done with the project from outside of it.
#![forbid(unsafe_code)]

mod bench;
mod cargo;
mod conformance;
mod failure;
mod npm;
mod paths;
mod process;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Development tasks of this repository")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Runs the official conformance suite and writes a table of what it found.
    #[command(subcommand)]
    Conformance(conformance::Role),
    /// Runs the benches and writes what they found: `docs/performance.md`, or `docs/growth.md` with `--growth`.
    Bench(bench::BenchArgs),
}

async fn run(task: Task) -> failure::Outcome<bool> {
    match task {
        Task::Conformance(role) => conformance::run(role).await,
        Task::Bench(arguments) => bench::run(arguments).await,
    }
}

// One thread: all that is waited for is other processes.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let task = Arguments::parse().task;
    // What was started is killed when its handle is dropped, so a signal has to end this future, not the process.
    let ended = tokio::select! {
        biased;
        () = process::interrupted() => Err(failure::Failure::new("interrupted")),
        ended = run(task) => ended,
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}
