//! Who is measured, and where their programs come from.

use crate::options::Options;
use bench_kit::endpoint::Endpoint;
use bench_kit::programs;
use bench_kit::report::Columns;
use clap::ValueEnum;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A server that can take part.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// `serve_http`.
    Steadfast,
    /// The tower service, mounted in axum.
    SteadfastAxum,
    /// `serve_http` of another commit: the `steadfast-server` of its bench, which `--before` names.
    #[value(skip)]
    SteadfastBefore,
    /// rmcp's tower service, mounted in axum.
    Rmcp,
    /// The same without TCP_NODELAY, as its examples have it. Only where stalls are looked for.
    RmcpNagle,
    /// An axum endpoint that knows nothing but the one call.
    Bare,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Steadfast => "steadfast",
            Self::SteadfastAxum => "steadfast in axum",
            Self::SteadfastBefore => "steadfast before",
            Self::Rmcp => "rmcp",
            Self::RmcpNagle => "rmcp, Nagle",
            Self::Bare => "bare",
        }
    }

    const fn program(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Steadfast | Self::SteadfastBefore => ("steadfast-server", &[]),
            Self::SteadfastAxum => ("steadfast-server", &["--mount", "axum"]),
            Self::Rmcp => ("rmcp-server", &[]),
            Self::RmcpNagle => ("rmcp-server", &["--nagle"]),
            Self::Bare => ("bare", &[]),
        }
    }

    /// Whether it answers calls like any other. One that only differs in how it streams does not take part twice.
    pub(crate) const fn is_loaded(self) -> bool {
        !matches!(self, Self::RmcpNagle)
    }

    pub(crate) const fn has_sessions(self) -> bool {
        matches!(self, Self::Steadfast | Self::SteadfastAxum | Self::SteadfastBefore | Self::Rmcp)
    }

    pub(crate) const fn streams(self) -> bool {
        !matches!(self, Self::Bare)
    }

    /// Whether the marks are about it.
    pub(crate) const fn is_ours(self) -> bool {
        matches!(self, Self::Steadfast | Self::SteadfastAxum)
    }
}

/// A server with its program.
pub(crate) struct Contestant {
    pub(crate) kind: Kind,
    program: PathBuf,
}

impl Contestant {
    pub(crate) const fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// The program and its arguments, to be run as they are or under valgrind.
    pub(crate) fn command_line(&self) -> Vec<OsString> {
        let mut line = vec![self.program.clone().into_os_string()];
        line.extend(self.kind.program().1.iter().map(OsString::from));
        line
    }

    /// Starts it, and waits until it listens. `patience` bounds each step from here on.
    pub(crate) fn start(&self, patience: Duration) -> io::Result<Endpoint> {
        let line = self.command_line();
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]);
        Endpoint::start(self.name(), &mut command, patience)
    }
}

/// Finds or builds the programs of all that take part.
pub(crate) fn contestants(options: &Options) -> io::Result<Vec<Contestant>> {
    let built = if options.running.no_build {
        Vec::new()
    } else {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        programs::build(folder, &["--bin", "steadfast-server", "--bin", "rmcp-server", "--bin", "bare"])?
    };
    let mut kinds = options.servers.clone();
    kinds.dedup();
    let find = |kind: Kind| programs::find(kind.program().0, &built).map(|program| Contestant { kind, program });
    let mut all = kinds.into_iter().map(find).collect::<io::Result<Vec<_>>>()?;
    if let Some(path) = &options.before {
        let program = programs::exists("--before", path.clone())?;
        all.push(Contestant { kind: Kind::SteadfastBefore, program });
    }
    Ok(all)
}

/// Those that take part in something, as columns of its table.
pub(crate) fn columns(contestants: &[&Contestant]) -> Columns {
    let places = |wanted: Kind| {
        let all = contestants.iter().enumerate();
        all.filter(move |(_, one)| one.kind == wanted).map(|(place, _)| place)
    };
    Columns {
        names: contestants.iter().map(|one| one.name().to_owned()).collect(),
        rmcp: places(Kind::Rmcp).collect(),
        bare: places(Kind::Bare).next(),
        role: "server",
    }
}
