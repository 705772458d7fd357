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
use client::{ExitStatus, Failure};

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
    /// Lists the tools, resources, resource templates and prompts of a server.
    List(client::commands::list::Options),
    /// Calls a tool of a server.
    Call(client::commands::call::Options),
    /// Reads a resource of a server.
    Read(client::commands::read::Options),
    /// Gets a prompt of a server, with its arguments filled in.
    Prompt(client::commands::prompt::Options),
    /// Deletes the stored tokens of a server and revokes them if possible.
    Logout(client::commands::logout::Options),
}

impl Command {
    /// The log level unless `RUST_LOG` sets one. Users of a server cannot fix it, so warnings about it need `--verbose`.
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
            output::eprint_line(format_args!("steadfast: failed to start the async runtime: {error}"));
            return ExitStatus::NotSent.into();
        }
    };
    let code = runtime.block_on(run(arguments));
    // A blocked thread must not delay the exit.
    runtime.shutdown_background();
    log::finish();
    code
}

async fn run(arguments: Arguments) -> ExitCode {
    let result = match arguments.command {
        Command::Serve(options) => serve::run(options).await.map(|()| ExitStatus::Success).map_err(Failure::from),
        Command::List(options) => client::commands::list::run(options).await,
        Command::Call(options) => client::commands::call::run(options).await,
        Command::Read(options) => client::commands::read::run(options).await,
        Command::Prompt(options) => client::commands::prompt::run(options).await,
        Command::Logout(options) => client::commands::logout::run(options).await,
    };
    match result {
        Ok(status) => status.into(),
        Err(failure) => {
            output::eprint_line(failure.message());
            failure.exit_status().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }
}
