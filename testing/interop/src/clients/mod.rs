//! Real clients against `steadfast serve`.
//!
//! The clients' own scripts, in `python` and `typescript`, only report what they saw; what they should have seen is here.

mod check;
mod client;
mod cutting_proxy;
mod fixture;
mod inspector;
mod program;
mod run;

use std::path::PathBuf;

pub(crate) use run::ClientRun;

use crate::Result;
use crate::package::Package;
use crate::transport::Transport;

/// The columns of the table.
pub(crate) fn columns() -> Vec<&'static str> {
    check::Check::ALL.iter().map(|check| check.name).collect()
}

/// Everything that could be done, in the order of the table, and with what.
pub(crate) fn runs(revisions: fn(&str) -> bool) -> Result<(Vec<ClientRun>, PathBuf)> {
    let program = program::path()?;
    let transports = Transport::offered_by(&program)?;
    Ok((ClientRun::all(&transports, revisions).collect(), program))
}

impl ClientRun {
    pub(crate) fn package(&self) -> &'static Package {
        self.client.package
    }

    /// Leaves only the checks whose names are wanted.
    pub(crate) fn keep(&mut self, wanted: impl Fn(&str) -> bool) {
        let name = self.name();
        self.checks.retain(|check| wanted(&format!("{name}/{}", check.name)));
    }

    /// The names of its checks.
    pub(crate) fn names(&self) -> Vec<String> {
        self.checks.iter().map(|check| format!("{}/{}", self.name(), check.name)).collect()
    }
}
