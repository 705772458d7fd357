//! `cargo xtask`: what is done with the project from outside of it.
#![forbid(unsafe_code)]

mod conformance;
mod failure;
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
}

// One thread: all that is waited for is other processes.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Task::Conformance(role) = Arguments::parse().task;
    // What was started is killed when its handle is dropped, so a signal has to end this future, not the process.
    let ended = tokio::select! {
        biased;
        () = process::interrupted() => Err(failure::Failure::new("interrupted")),
        ended = conformance::run(role) => ended,
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
