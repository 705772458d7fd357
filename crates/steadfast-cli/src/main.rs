//! The `steadfast` command.
#![forbid(unsafe_code)]

mod client;
mod conformance;
mod log;
mod output;
mod reference;
mod serve;
mod welcome;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use client::{Ending, Failure};

/// Model Context Protocol servers and clients that keep their promises when connections do not.
#[derive(Parser)]
#[command(version, about, after_help = client::help("steadfast list './steadfast serve'"))]
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
    /// Forgets the tokens of a server.
    Logout(client::logout::Options),
}

impl Command {
    /// What is worth a line on standard error unless `RUST_LOG` says so: people who use a server are not those who mend it.
    fn log_level(&self) -> &'static str {
        let verbose = match self {
            Self::Serve(_) | Self::Logout(_) => true,
            Self::List(options) => options.connect.is_verbose(),
            Self::Call(options) => options.connect.is_verbose(),
            Self::Read(options) => options.connect.is_verbose(),
            Self::Prompt(options) => options.connect.is_verbose(),
        };
        if verbose { "warn" } else { "error" }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    log::start(arguments.command.log_level());
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::say(format_args!("steadfast: there is no runtime: {error}"));
            return Ending::NotSent.into();
        }
    };
    let code = runtime.block_on(run(arguments));
    // Nothing that blocks a thread keeps a command that has ended.
    runtime.shutdown_background();
    log::finish();
    code
}

async fn run(arguments: Arguments) -> ExitCode {
    let ended = match arguments.command {
        Command::Serve(options) => serve::run(options).await.map(|()| Ending::Done).map_err(Failure::from),
        Command::List(options) => client::list::run(options).await,
        Command::Call(options) => client::call::run(options).await,
        Command::Read(options) => client::read::run(options).await,
        Command::Prompt(options) => client::prompt::run(options).await,
        Command::Logout(options) => client::logout::run(options).await,
    };
    match ended {
        Ok(ending) => ending.into(),
        Err(failure) => {
            output::say(failure.in_words());
            failure.ending().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }
}
