//! The servers that are measured, and where their programs come from.

use crate::options::Options;
use bench_kit::programs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A server with its program.
pub(crate) struct Server {
    name: &'static str,
    program: PathBuf,
}

/// Where a server waits for its client.
#[derive(Clone, Copy)]
pub(crate) enum Transport {
    /// One client, on the pipes of the process.
    Stdio,
    /// Any number of clients, on a port of loopback.
    Http,
}

impl Server {
    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// The command that starts it with that many tools, besides those that are always there.
    pub(crate) fn command(&self, transport: Transport, tools: usize) -> Command {
        let transport = match transport {
            Transport::Stdio => "stdio",
            Transport::Http => "http",
        };
        let mut command = Command::new(&self.program);
        command.args(["--transport", transport, "--tools"]).arg(tools.to_string());
        command
    }
}

/// Finds or builds the programs of all servers that take part.
pub(crate) fn servers(options: &Options) -> io::Result<Vec<Server>> {
    let mut programs = vec![("steadfast", "steadfast-growth-server")];
    if !options.without_rmcp {
        programs.push(("rmcp", "rmcp-growth-server"));
    }
    let built = if options.no_build {
        Vec::new()
    } else {
        let what: Vec<&str> = programs.iter().flat_map(|(_, program)| ["--bin", program]).collect();
        programs::build(Path::new(env!("CARGO_MANIFEST_DIR")), &what)?
    };
    let find = |(name, program)| programs::find(program, &built).map(|program| Server { name, program });
    programs.into_iter().map(find).collect()
}
