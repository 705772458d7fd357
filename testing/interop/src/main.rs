//! Real MCP clients, as their registries have them, against `steadfast serve`.
//!
//! Every client runs every check that it can, on every transport and in every revision that it speaks. The clients' own
//! scripts, in `python` and `typescript`, only report what they saw; what they should have seen is said here.
#![forbid(unsafe_code)]

mod check;
mod client;
mod inspector;
mod install;
mod process;
mod program;
mod report;
mod room;
mod transport;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::check::Check;
use crate::client::Client;
use crate::install::{Installed, Node};
use crate::report::{Report, Verdict};
use crate::room::Room;
use crate::transport::Transport;

const USAGE: &str = "\
Runs real MCP clients against `steadfast serve` and prints a table.

Usage: interop [--filter TEXT] [--list]

  --filter TEXT  only what has TEXT in its client/transport/revision/check
  --list         print those names, run nothing

The clients are installed from PyPI and npm into target/interop, once. Needs python3 (or what PYTHON names) with venv, and
npm. The command is the one named by STEADFAST_BIN, or is built with cargo.";

/// Whatever went wrong, in words for a person.
type Result<T = (), E = String> = std::result::Result<T, E>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ran = match arguments.as_slice() {
        ["--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        [] => run("", false),
        ["--list"] => run("", true),
        ["--filter", text] => run(text, false),
        ["--filter", text, "--list"] | ["--list", "--filter", text] => run(text, true),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match ran {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(words) => {
            eprintln!("interop: {words}");
            ExitCode::FAILURE
        }
    }
}

/// True if everything that should pass did, and something ran.
fn run(filter: &str, only_list: bool) -> Result<bool> {
    let program = program::path()?;
    let transports = Transport::offered_by(&program)?;
    let runs: Vec<Run> = every_run(&transports).filter(|run| run.name().contains(filter)).collect();
    if only_list {
        for run in &runs {
            println!("{}", run.name());
        }
        return Ok(true);
    }
    let base = base()?;
    let node = Node::install(&base)?;
    let mut report = Report::default();
    for client in Client::ALL {
        let mut runs = runs.iter().filter(|run| run.client == client).peekable();
        if runs.peek().is_none() {
            continue;
        }
        match Installed::new(client, &base, &node) {
            Ok(installed) => {
                println!("{}", installed.name);
                for run in runs {
                    report.add(run, run.verdict(&installed, &base, &program));
                }
            }
            // Not to be had is not to be passed over: it was not checked.
            Err(words) => runs.for_each(|run| report.add(run, Verdict::failed(words.clone()))),
        }
    }
    print!("\n{report}");
    Ok(report.is_good())
}

/// One check by one client.
#[derive(Clone, Copy)]
struct Run {
    client: &'static Client,
    transport: Transport,
    revision: &'static str,
    check: &'static Check,
}

impl Run {
    fn name(&self) -> String {
        format!("{}/{}/{}/{}", self.client.name, self.transport.name(), self.revision, self.check.name)
    }

    fn verdict(&self, installed: &Installed, base: &Path, program: &Path) -> Verdict {
        Room::new(&base.join("run"), program, self.transport)
            .and_then(|mut room| {
                let told = installed.observe(self, &room);
                // Also if the client failed: nothing may be left behind by it.
                let left = room.leave(self.check.cleans_up);
                let told = told?;
                self.check.judge(self.revision, &told)?;
                left.map(|()| Verdict::passed(&told))
            })
            .unwrap_or_else(Verdict::failed)
    }
}

fn every_run(transports: &[Transport]) -> impl Iterator<Item = Run> {
    Client::ALL.iter().flat_map(move |client| {
        transports.iter().flat_map(move |&transport| {
            client.revisions.iter().filter(move |revision| transport.carries(revision)).flat_map(move |&revision| {
                let checks =
                    Check::ALL.iter().filter(move |check| client.can(check.name) && transport.shows(check.name));
                checks.map(move |check| Run { client, transport, revision, check })
            })
        })
    })
}

/// Where clients are installed and rooms are made: beside what cargo builds, so that it goes when that goes.
fn base() -> Result<PathBuf> {
    let this_program = std::env::current_exe().map_err(|error| error.to_string())?;
    let target = this_program.ancestors().nth(2).ok_or("this program is not in a target folder")?;
    Ok(target.join("interop"))
}
