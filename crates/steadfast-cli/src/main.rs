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
use client::{CliCommandFailure, CliExitStatus};

/// Model Context Protocol servers and clients that keep their promises when connections do not.
#[derive(Parser)]
#[command(version, about, after_help = client::help("steadfast list './steadfast serve'"))]
struct CliArgs {
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Subcommand)]
enum CliCommand {
    /// Serves the bundled reference server: on standard input and output, or on a socket.
    Serve(serve::ServeArgs),
    /// Lists the tools, resources, resource templates and prompts of a server.
    List(client::commands::list::ListArgs),
    /// Calls a tool of a server.
    Call(client::commands::call::CallArgs),
    /// Reads a resource of a server.
    Read(client::commands::read::ReadArgs),
    /// Gets a prompt of a server, with its arguments filled in.
    Prompt(client::commands::prompt::PromptArgs),
    /// Deletes the stored tokens of a server and revokes them if possible.
    Logout(client::commands::logout::LogoutArgs),
}

impl CliCommand {
    /// The log level of the command, unless `RUST_LOG` sets one. Users of a server cannot fix the server, so warnings about it
    /// are logged only with `--verbose`.
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
    let arguments = CliArgs::parse();
    log::start(arguments.command.log_level());
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::eprint_line(format_args!("steadfast: failed to start the async runtime: {error}"));
            return CliExitStatus::NotSent.into();
        }
    };
    let code = runtime.block_on(run(arguments));
    // A blocked thread must not delay the exit.
    runtime.shutdown_background();
    log::finish();
    code
}

async fn run(arguments: CliArgs) -> ExitCode {
    let result = match arguments.command {
        CliCommand::Serve(options) => {
            serve::run(options).await.map(|()| CliExitStatus::Success).map_err(CliCommandFailure::from)
        }
        CliCommand::List(options) => client::commands::list::run(options).await,
        CliCommand::Call(options) => client::commands::call::run(options).await,
        CliCommand::Read(options) => client::commands::read::run(options).await,
        CliCommand::Prompt(options) => client::commands::prompt::run(options).await,
        CliCommand::Logout(options) => client::commands::logout::run(options).await,
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
        CliArgs::command().debug_assert();
    }
}
