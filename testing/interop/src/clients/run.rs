//! One run: one client, one transport, one revision, and the checks that are done in one process.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::check::Check;
use super::client::{Client, Kind};
use super::fixture::Fixture;
use super::inspector;
use crate::Result;
use crate::install::Installed;
use crate::process::finish;
use crate::report::{Cell, Row, Verdict};
use crate::transport::Transport;

/// For all checks of a run. A script has a shorter timeout for each of them.
const LIMIT: Duration = Duration::from_secs(300);

/// What one process does.
pub(crate) struct ClientRun {
    pub(crate) client: &'static Client,
    pub(crate) transport: Transport,
    pub(crate) revision: &'static str,
    pub(crate) checks: Vec<&'static Check>,
}

/// What a client reported for each check, and how it ended if not well.
struct ClientReport {
    lines: Vec<Value>,
    failure: Option<String>,
}

impl ClientRun {
    /// Every combination that clients and transports support.
    pub(crate) fn all(transports: &[Transport], revisions: fn(&str) -> bool) -> impl Iterator<Item = ClientRun> {
        Client::EVERY.iter().flat_map(move |client| {
            transports.iter().flat_map(move |&transport| {
                let carried = move |revision: &&&str| transport.carries(revision) && revisions(revision);
                client.revisions.iter().filter(carried).map(move |&revision| {
                    let mut run = ClientRun { client, transport, revision, checks: Vec::new() };
                    run.checks = Check::ALL.iter().filter(|check| run.missing(check).is_none()).collect();
                    run
                })
            })
        })
    }

    pub(crate) fn name(&self) -> String {
        format!("{}/{}/{}", self.client.name(), self.transport.name(), self.revision)
    }

    /// Why a check is not among its own, if there is a reason.
    pub(crate) fn missing(&self, check: &Check) -> Option<&'static str> {
        check.missing(self.transport, self.revision).or_else(|| self.client.missing(check.name))
    }

    /// Its row of the table. A client that could not be installed has failed.
    pub(crate) fn row(&self, installed: &Result<Installed>, base: &Path, program: &Path) -> Row {
        let mut verdicts = match installed {
            Ok(installed) => self.run(installed, base, program),
            // A client that could not be installed counts as failed, because nothing was checked.
            Err(words) => self.checks.iter().map(|_| Verdict::failed(words.clone())).collect(),
        }
        .into_iter();
        let cell = |check: &'static Check| match self.missing(check) {
            Some(reason) => Cell::Missing(reason),
            None if self.checks.iter().any(|mine| mine.name == check.name) => verdicts.next().into(),
            None => Cell::NotAsked,
        };
        Row {
            peer: self.client.name(),
            wire: self.transport.name(),
            revision: self.revision,
            cells: Check::ALL.iter().map(cell).collect(),
        }
    }

    /// Does the checks; a verdict for each.
    fn run(&self, installed: &Installed, base: &Path, program: &Path) -> Vec<Verdict> {
        let folder = base.join("runs").join(self.name().replace('/', "-"));
        match self.fixtures(&folder, program) {
            Err(words) => self.checks.iter().map(|_| Verdict::failed(words.clone())).collect(),
            Ok(mut fixtures) => {
                let report = match self.client.kind {
                    Kind::Inspector => {
                        let lines = inspector::observe(self, &fixtures, |folder| {
                            installed.command(inspector::LAUNCHER, folder)
                        });
                        ClientReport { lines, failure: None }
                    }
                    Kind::Script(script) => self.observe(&fixtures, &folder, installed.command(script, &folder)),
                };
                self.checks
                    .iter()
                    .zip(&mut fixtures)
                    .map(|(check, fixture)| self.verdict(check, fixture, &report))
                    .collect()
            }
        }
    }

    fn fixtures(&self, folder: &Path, program: &Path) -> Result<Vec<Fixture>> {
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        let fixture = |check: &&Check| {
            Fixture::new(&folder.join(format!("check-{}", check.name)), program, self.transport, check)
        };
        self.checks.iter().map(fixture).collect()
    }

    fn observe(&self, fixtures: &[Fixture], folder: &Path, mut script: Command) -> ClientReport {
        let check = |(check, fixture): (&&Check, &Fixture)| json!({ "name": check.name, "target": fixture.target(), "cleanup_log": fixture.cleanup_log() });
        let checks: Vec<Value> = self.checks.iter().zip(fixtures).map(check).collect();
        let plan = folder.join("plan");
        let written = fs::write(&plan, json!({ "revision": self.revision, "checks": checks }).to_string());
        if let Err(error) = written {
            return ClientReport { lines: Vec::new(), failure: Some(format!("{}: {error}", plan.display())) };
        }
        let failure = finish(script.arg(&plan), LIMIT, folder).err();
        // A client that crashed has reported what it did before.
        let output = fs::read_to_string(folder.join("output")).unwrap_or_default();
        ClientReport { lines: output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(), failure }
    }

    fn verdict(&self, check: &Check, fixture: &mut Fixture, report: &ClientReport) -> Verdict {
        let Some(seen) = report.lines.iter().find(|line| line.get("check").is_some_and(|name| name == check.name))
        else {
            let words = report.failure.clone();
            return Verdict::failed(words.unwrap_or_else(|| "the client did not run this check".to_owned()));
        };
        // Also if it saw something else: it must not leave anything running.
        let left = fixture.leave(check.cleans_up);
        match check.judge(self.revision, seen).and(left) {
            Ok(()) => Verdict::passed_with_notes(seen),
            Err(words) => Verdict::failed(words),
        }
    }
}
