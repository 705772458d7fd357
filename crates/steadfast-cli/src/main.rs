//! The `steadfast` command.
#![forbid(unsafe_code)]

mod client;
mod conformance;
mod log;
mod reference;
mod serve;
mod welcome;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use client::Ending;

/// Model Context Protocol servers and clients that keep their promises when connections do not.
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
    /// Lists what a server has: its tools, resources, templates and prompts.
    List(client::list::Options),
    /// Calls a tool of a server.
    Call(client::call::Options),
    /// Reads a resource of a server.
    Read(client::read::Options),
    /// Fills in a prompt of a server.
    Prompt(client::prompt::Options),
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    log::start();
    let ended = match arguments.command {
        Command::Serve(options) => serve::run(options).await.map(|()| Ending::Done),
        Command::List(options) => client::list::run(options).await,
        Command::Call(options) => client::call::run(options).await,
        Command::Read(options) => client::read::run(options).await,
        Command::Prompt(options) => client::prompt::run(options).await,
    };
    match ended {
        Ok(ending) => ending.into(),
        Err(error) => {
            eprintln!("steadfast: {error:?}");
            Ending::of(&error).into()
        }
    }
}
