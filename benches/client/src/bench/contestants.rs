//! Who is measured, and where their programs come from.

use crate::options::{Options, Transport};
use crate::server::Server;
use bench_kit::era::Era;
use bench_kit::programs;
use bench_kit::report::Columns;
use clap::ValueEnum;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// A client that can take part.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// `Client::connect`.
    Steadfast,
    /// `Client::connect` of another commit: the `steadfast-client` of its bench, which `--before` names.
    #[value(skip)]
    SteadfastBefore,
    /// rmcp as its documentation has it.
    Rmcp,
    /// rmcp with an HTTP client that keeps connections, and without its limit of sixteen requests. Only on HTTP.
    RmcpPooled,
}

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Steadfast => "steadfast",
            Self::SteadfastBefore => "steadfast before",
            Self::Rmcp => "rmcp",
            Self::RmcpPooled => "rmcp pooled",
        }
    }
}

/// The programs, and who takes part.
pub(crate) struct Contestants {
    kinds: Vec<Kind>,
    steadfast: PathBuf,
    before: Option<PathBuf>,
    rmcp: PathBuf,
    /// The server that all of them call.
    pub(crate) bare: PathBuf,
}

impl Contestants {
    /// Finds or builds the programs.
    pub(crate) fn find(options: &Options) -> io::Result<Self> {
        let built = if options.running.no_build {
            Vec::new()
        } else {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
            programs::build(folder, &["--bin", "steadfast-client", "--bin", "rmcp-client", "--bin", "bare"])?
        };
        let find = |name: &str| programs::find(name, &built);
        let mut kinds = options.clients.clone();
        kinds.dedup();
        let before = options.before.clone().map(|path| programs::exists("--before", path)).transpose()?;
        kinds.extend(before.is_some().then_some(Kind::SteadfastBefore));
        let (steadfast, rmcp, bare) = (find("steadfast-client")?, find("rmcp-client")?, find("bare")?);
        Ok(Self { kinds, steadfast, before, rmcp, bare })
    }

    /// Who takes part on this transport.
    pub(crate) fn on(&self, transport: Transport) -> Vec<Kind> {
        let has_a_part = |kind: &Kind| transport == Transport::Http || *kind != Kind::RmcpPooled;
        self.kinds.iter().copied().filter(has_a_part).collect()
    }

    /// The program and its arguments, to be run as they are or under valgrind.
    pub(crate) fn command_line(&self, kind: Kind, era: Era, server: &Server) -> Vec<OsString> {
        let program = match kind {
            Kind::Steadfast => &self.steadfast,
            Kind::SteadfastBefore => self.before.as_ref().unwrap_or(&self.steadfast),
            Kind::Rmcp | Kind::RmcpPooled => &self.rmcp,
        };
        let mut line = vec![program.clone().into_os_string(), "--era".into(), era.name().into()];
        if kind == Kind::RmcpPooled {
            line.push("--pooled".into());
        }
        line.extend(server.arguments());
        line
    }
}

/// Those that take part in something, as columns of its table.
pub(crate) fn columns(kinds: &[Kind]) -> Columns {
    let rmcp = kinds.iter().enumerate().filter(|(_, kind)| matches!(kind, Kind::Rmcp | Kind::RmcpPooled));
    Columns {
        names: kinds.iter().map(|kind| kind.name().to_owned()).collect(),
        rmcp: rmcp.map(|(place, _)| place).collect(),
        bare: None,
        role: "client",
    }
}
