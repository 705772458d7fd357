//! The `steadfast` command.
#![forbid(unsafe_code)]

mod conformance;
mod log;
mod reference;
mod serve;
mod welcome;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Model Context Protocol servers that keep their promises when connections do not.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serves the bundled reference server: on standard input and output, or on a socket.
    Serve(serve::Options),
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    log::start();
    let Command::Serve(options) = arguments.command;
    match serve::run(options).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("steadfast: {error:?}");
            ExitCode::FAILURE
        }
    }
}
