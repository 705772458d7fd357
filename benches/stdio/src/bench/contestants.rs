//! Who is measured, and where their programs come from.
//!
//! They are built unless told otherwise.

use crate::options::Options;
use crate::workload::Tool;
use bench_kit::era::Era;
use bench_kit::programs::{self, build};
use clap::ValueEnum;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// A server that can take part.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// `steadfast serve`.
    Steadfast,
    /// rmcp on its non-blocking pipes, the runtime of `#[tokio::main]`.
    RmcpPipes,
    /// rmcp on its usual `stdio`, the runtime of `#[tokio::main]`.
    RmcpStdio,
    /// rmcp on its non-blocking pipes, everything on one thread.
    RmcpPipesOneThread,
    /// The limit: all answers that one read allows, in one write.
    Bare,
    /// The limit of a server that writes each answer by itself.
    BareUnbatched,
    /// The limit of a server on tokio: as `Bare`, on a runtime with one thread.
    BareTokio,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Steadfast => "steadfast",
            Self::RmcpPipes => "rmcp pipes",
            Self::RmcpStdio => "rmcp stdio",
            Self::RmcpPipesOneThread => "rmcp 1 thread",
            Self::Bare => "bare",
            Self::BareUnbatched => "bare unbatched",
            Self::BareTokio => "bare tokio",
        }
    }

    const fn is_rmcp(self) -> bool {
        matches!(self, Self::RmcpPipes | Self::RmcpStdio | Self::RmcpPipesOneThread)
    }

    const fn program(self) -> &'static str {
        match self {
            Self::Steadfast => "steadfast",
            Self::RmcpPipes | Self::RmcpStdio | Self::RmcpPipesOneThread => "rmcp-server",
            Self::Bare | Self::BareUnbatched | Self::BareTokio => "bare",
        }
    }
}

/// A server of another SDK, which is started by a command.
#[derive(Clone)]
pub(crate) struct Peer {
    name: String,
    command: Vec<OsString>,
}

impl std::str::FromStr for Peer {
    type Err = &'static str;

    /// Reads `NAME=PROGRAM ARGUMENT ...`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, command) = text.split_once('=').ok_or("expected NAME=COMMAND")?;
        let command: Vec<OsString> = command.split_whitespace().map(OsString::from).collect();
        if name.is_empty() || command.is_empty() {
            return Err("expected NAME=COMMAND");
        }
        Ok(Self { name: name.to_owned(), command })
    }
}

/// A server that takes part.
pub(crate) enum Contestant {
    /// One that this bench knows, with its program.
    Known(Kind, PathBuf),
    /// One that was named on the command line.
    Peer(Peer),
}

impl Contestant {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Known(kind, _) => kind.name(),
            Self::Peer(peer) => &peer.name,
        }
    }

    pub(crate) fn is(&self, wanted: Kind) -> bool {
        matches!(self, Self::Known(kind, _) if *kind == wanted)
    }

    pub(crate) fn is_rmcp(&self) -> bool {
        matches!(self, Self::Known(kind, _) if kind.is_rmcp())
    }

    /// The program and its arguments, to be run as they are or under valgrind.
    pub(crate) fn command_line(&self, era: Era, tool: Tool) -> Vec<OsString> {
        let (kind, program) = match self {
            Self::Known(kind, program) => (*kind, program),
            Self::Peer(peer) => return peer.command.clone(),
        };
        let mut line: Vec<OsString> = vec![program.clone().into()];
        let mut with = |arguments: &[&str]| line.extend(arguments.iter().map(OsString::from));
        match kind {
            Kind::Steadfast => with(&["serve"]),
            Kind::RmcpPipes => with(&["--transport", "pipes"]),
            Kind::RmcpStdio => with(&["--transport", "stdio"]),
            Kind::RmcpPipesOneThread => with(&["--transport", "pipes", "--threads", "current"]),
            Kind::Bare | Kind::BareUnbatched | Kind::BareTokio => {
                let (text, times) = tool.text();
                with(&["--era", era.name(), "--text", text, "--times", &times.to_string()]);
                match kind {
                    Kind::BareUnbatched => with(&["--unbatched"]),
                    Kind::BareTokio => with(&["--tokio"]),
                    _ => {}
                }
            }
        }
        line
    }
}

/// Finds or builds the programs of all that take part.
pub(crate) fn contestants(options: &Options) -> io::Result<Vec<Contestant>> {
    let kinds = options.kinds();
    let bench = Path::new(env!("CARGO_MANIFEST_DIR"));

    let built =
        if options.running.no_build { Vec::new() } else { build(bench, &["--bin", "bare", "--bin", "rmcp-server"])? };
    let root = bench.join("../..");
    let given = options.steadfast.clone().or_else(|| std::env::var_os("STEADFAST_BIN").map(PathBuf::from));
    let steadfast = match given {
        Some(path) => Some(path),
        None if !kinds.contains(&Kind::Steadfast) => None,
        None if options.running.no_build => Some(root.join("target/release/steadfast")),
        None => build(&root, &["-p", "steadfast-cli"])
            .map_err(|error| io::Error::other(format!("{error}; --without-steadfast measures the others only")))?
            .into_iter()
            .find(|path| path.ends_with(Kind::Steadfast.program())),
    };

    let known = kinds.into_iter().map(|kind| {
        let program = match (kind, &steadfast) {
            (Kind::Steadfast, Some(path)) => programs::exists(kind.name(), path.clone()),
            _ => programs::find(kind.program(), &built),
        };
        program.map(|program| Contestant::Known(kind, program))
    });
    known.chain(options.peers.iter().cloned().map(|peer| Ok(Contestant::Peer(peer)))).collect()
}
