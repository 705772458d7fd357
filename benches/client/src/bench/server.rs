//! The server that is called: started by the client itself, or listening beside it.

use crate::contestants::Contestants;
use crate::options::Transport;
use bench_kit::endpoint::{Endpoint, PATH};
use bench_kit::era::Era;
use std::ffi::OsString;
use std::io;
use std::process::Command;
use std::time::Duration;

/// Where the server is.
pub(crate) enum Server {
    /// What the client has to start.
    Command(Vec<OsString>),
    /// What listens already.
    Listening(Endpoint),
}

impl Server {
    /// A bare one that speaks this era.
    pub(crate) fn start(
        contestants: &Contestants,
        transport: Transport,
        era: Era,
        patience: Duration,
    ) -> io::Result<Self> {
        let bare = contestants.bare.clone();
        match transport {
            Transport::Stdio => Ok(Self::Command(vec![bare.into(), "--era".into(), era.name().into()])),
            Transport::Http => {
                let mut command = Command::new(bare);
                Endpoint::start("bare", command.args(["--listen", "--era", era.name()]), patience).map(Self::Listening)
            }
        }
    }

    /// How a client program is told of it.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        match self {
            Self::Command(line) => std::iter::once("--".into()).chain(line.iter().cloned()).collect(),
            Self::Listening(endpoint) => vec!["--url".into(), format!("http://{}{PATH}", endpoint.address).into()],
        }
    }

    /// Ends it, unless that was the client's to do.
    pub(crate) fn end(self) -> io::Result<()> {
        match self {
            Self::Command(_) => Ok(()),
            Self::Listening(endpoint) => endpoint.end(),
        }
    }
}
