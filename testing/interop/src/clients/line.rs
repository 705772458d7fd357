//! A line of the table: one client, one transport, one revision, and the checks that are done in one process.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::check::Check;
use super::client::{Client, Kind};
use super::inspector;
use super::room::Room;
use crate::Result;
use crate::install::Installed;
use crate::process::finish;
use crate::report::{Cell, Row, Verdict};
use crate::transport::Transport;

/// For all checks of a line. A script has a shorter timeout for each of them.
const LIMIT: Duration = Duration::from_secs(300);

/// What one process does.
pub(crate) struct Line {
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

impl Line {
    /// Every line that clients and transports allow.
    pub(crate) fn all(transports: &[Transport], revisions: fn(&str) -> bool) -> impl Iterator<Item = Line> {
        Client::EVERY.iter().flat_map(move |client| {
            transports.iter().flat_map(move |&transport| {
                let carried = move |revision: &&&str| transport.carries(revision) && revisions(revision);
                client.revisions.iter().filter(carried).map(move |&revision| {
                    let mut line = Line { client, transport, revision, checks: Vec::new() };
                    line.checks = Check::ALL.iter().filter(|check| line.missing(check).is_none()).collect();
                    line
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

    /// Its line of the table. A client that could not be installed has failed.
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
        match self.rooms(&folder, program) {
            Err(words) => self.checks.iter().map(|_| Verdict::failed(words.clone())).collect(),
            Ok(mut rooms) => {
                let told = match self.client.kind {
                    Kind::Inspector => {
                        let lines =
                            inspector::observe(self, &rooms, |folder| installed.command(inspector::LAUNCHER, folder));
                        ClientReport { lines, failure: None }
                    }
                    Kind::Script(script) => self.observe(&rooms, &folder, installed.command(script, &folder)),
                };
                self.checks.iter().zip(&mut rooms).map(|(check, room)| self.verdict(check, room, &told)).collect()
            }
        }
    }

    fn rooms(&self, folder: &Path, program: &Path) -> Result<Vec<Room>> {
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        let room =
            |check: &&Check| Room::new(&folder.join(format!("room-{}", check.name)), program, self.transport, check);
        self.checks.iter().map(room).collect()
    }

    fn observe(&self, rooms: &[Room], folder: &Path, mut script: Command) -> ClientReport {
        let check = |(check, room): (&&Check, &Room)| json!({ "name": check.name, "target": room.target(), "cleanup_log": room.cleanup_log() });
        let checks: Vec<Value> = self.checks.iter().zip(rooms).map(check).collect();
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

    fn verdict(&self, check: &Check, room: &mut Room, told: &ClientReport) -> Verdict {
        let Some(seen) = told.lines.iter().find(|line| line.get("check").is_some_and(|name| name == check.name)) else {
            let words = told.failure.clone();
            return Verdict::failed(words.unwrap_or_else(|| "the client did not run this check".to_owned()));
        };
        // Also if it saw something else: it must not leave anything running.
        let left = room.leave(check.cleans_up);
        match check.judge(self.revision, seen).and(left) {
            Ok(()) => Verdict::passed_with_notes(seen),
            Err(words) => Verdict::failed(words),
        }
    }
}
