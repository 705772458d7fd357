//! One run: one server, one transport, one revision, and the checks that are done in one connection.

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use serde_json::Value;
use tokio::runtime::Runtime;

use super::check::{self, Check};
use super::host::Host;
use super::known_faults;
use super::peer::Peer;
use super::session::{self, Session};
use super::transport::TransportKind;
use crate::Result;
use crate::install::Installed;
use crate::package::Package;
use crate::report::{Cell, Row, Verdict};

/// For one check, on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// What is done with one server.
pub(crate) struct ServerRun {
    peer: &'static Peer,
    transport: TransportKind,
    revision: &'static str,
    checks: Vec<&'static Check>,
}

impl ServerRun {
    pub(crate) fn new(peer: &'static Peer, transport: TransportKind, revision: &'static str) -> Self {
        let mut run = Self { peer, transport, revision, checks: Vec::new() };
        run.checks = peer.checks.iter().filter(|check| run.missing(check.name).is_none()).collect();
        run
    }

    pub(crate) fn package(&self) -> &'static Package {
        self.peer.package
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

    /// Its row of the table. A server that could not be installed has failed.
    pub(crate) fn row(&self, installed: &Result<Installed>, base: &Path) -> Row {
        let mut verdicts = match installed {
            Ok(installed) => self.run(installed, base),
            Err(words) => self.fail_all(words),
        }
        .into_iter();
        let cell = |column: &'static Check| match self.missing(column.name) {
            Some(reason) => Cell::Missing(reason),
            None if self.checks.iter().any(|mine| mine.name == column.name) => verdicts.next().into(),
            None => Cell::NotAsked,
        };
        Row {
            peer: self.peer.name(),
            wire: self.transport.name(),
            revision: self.revision,
            cells: check::ALL.iter().map(cell).collect(),
        }
    }

    fn name(&self) -> String {
        format!("servers/{}/{}/{}", self.peer.name(), self.transport.name(), self.revision)
    }

    /// Why a check is not among its own, if there is a reason.
    fn missing(&self, check: &str) -> Option<&'static str> {
        check::missing(check, self.revision).or_else(|| self.peer.missing(check, self.transport, self.revision))
    }

    fn fail_all(&self, words: &str) -> Vec<Verdict> {
        self.checks.iter().map(|_| Verdict::failed(words.to_owned())).collect()
    }

    /// Does the checks; a verdict for each.
    fn run(&self, installed: &Installed, base: &Path) -> Vec<Verdict> {
        static RUNTIME: LazyLock<std::io::Result<Runtime>> = LazyLock::new(Runtime::new);
        let folder = base.join("runs").join(self.name().replace('/', "-"));
        let host = Host::new(self.peer, installed, self.transport, &folder);
        match (&*RUNTIME, host) {
            (Ok(runtime), Ok(host)) => runtime.block_on(self.run_with(&host)),
            (Err(error), _) => self.fail_all(&error.to_string()),
            (_, Err(words)) => self.fail_all(&words),
        }
    }

    /// One connection serves for all checks, as long as they pass.
    async fn run_with(&self, host: &Host<'_>) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        let mut kept = None;
        for check in &self.checks {
            let opened = match kept.take() {
                Some(session) => Ok(session),
                None => Session::open(host, self.revision).await,
            };
            let judged = match &opened {
                Ok(session) => self.judged(check, session).await,
                Err(words) => Err(words.clone()),
            };
            match opened {
                Ok(session) if judged.is_ok() && !check.is_last => kept = Some(session),
                // A connection in which something went wrong says nothing about the next check.
                Ok(session) => session.client.close().await,
                Err(_) => {}
            }
            let judged = judged.map_err(|words| format!("{words}\n{}", host.last_words()).trim_end().to_owned());
            verdicts.push(self.verdict(check, judged));
        }
        if let Some(session) = kept {
            session.client.close().await;
        }
        verdicts
    }

    async fn judged(&self, check: &Check, session: &Session) -> Result {
        let agreed = session.client.revision().as_str();
        if agreed != self.revision {
            return Err(format!("agreed on {agreed}"));
        }
        let seen: Result<Value> = match tokio::time::timeout(LIMIT, (check.see)(session)).await {
            Ok(seen) => seen.map_err(|error| session::describe(&error)),
            Err(_) => Err(format!("not done within {} s", LIMIT.as_secs())),
        };
        check.judge(&seen?)
    }

    fn verdict(&self, check: &Check, judged: Result) -> Verdict {
        let fault = known_faults::fault(self.peer.name(), check.name, self.transport, self.revision);
        match (judged, fault) {
            (Ok(()), None) => Verdict::passed(),
            (Ok(()), Some(reason)) => Verdict::failed(format!("passes, and should not: {reason}")),
            (Err(_), Some(reason)) => Verdict::known(reason),
            (Err(words), None) => Verdict::failed(words),
        }
    }
}
