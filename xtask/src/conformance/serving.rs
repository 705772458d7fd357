//! The server under test: built, started on a free port, and killed at the end whatever happens.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

use crate::cargo;
use crate::failure::{Context, Failure, Outcome};

const STARTING: Duration = Duration::from_secs(30);
const STOPPING: Duration = Duration::from_secs(5);

const CLIENT: &str = "conformance-client";

/// The `steadfast` command: the one that `STEADFAST_BIN` names, or built as users do.
pub(crate) async fn program() -> Outcome<PathBuf> {
    match std::env::var_os("STEADFAST_BIN") {
        Some(program) => Ok(program.into()),
        None => built("steadfast-cli", "steadfast").await,
    }
}

/// The client that is tested: the one beside what `STEADFAST_BIN` names, or built as users do.
pub(super) async fn client() -> Outcome<PathBuf> {
    let beside = std::env::var_os("STEADFAST_BIN").map(|program| PathBuf::from(program).with_file_name(CLIENT));
    match beside.filter(|program| program.exists()) {
        Some(program) => Ok(program),
        None => built("conformance", CLIENT).await,
    }
}

/// A program of ours, built for release.
async fn built(package: &str, binary: &str) -> Outcome<PathBuf> {
    cargo::build(cargo::command(), "release", package, binary).await
}

pub(crate) struct Serving {
    server: Child,
    url: String,
}

impl Serving {
    /// Starts it and waits until it says where it listens.
    pub(crate) async fn start(program: &Path) -> Outcome<Self> {
        let mut server = Command::new(program)
            .args(["serve", "--http", "127.0.0.1:0", "--conformance"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context(|| format!("starting {}", program.display()))?;
        let errors = server.stderr.take().ok_or_else(|| Failure::new("the server has no standard error"))?;
        let mut lines = BufReader::new(errors).lines();
        let announced = tokio::time::timeout(STARTING, announcement(&mut lines)).await;
        let url = announced.map_err(|_| Failure::new("the server did not say where it listens"))??;
        // Read to its end, so that the server is never short of room to complain; shown, because it is why something failed.
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                eprintln!("server: {line}");
            }
        });
        Ok(Self { server, url })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Whether it is still there.
    pub(crate) fn alive(&mut self) -> bool {
        matches!(self.server.try_wait(), Ok(None))
    }

    /// Kills it and sees it gone.
    pub(crate) async fn stop(mut self) {
        // One that is gone already is what is wanted; one that does not go is killed again when this is dropped.
        let _ = tokio::time::timeout(STOPPING, self.server.kill()).await;
    }
}

async fn announcement(lines: &mut Lines<BufReader<ChildStderr>>) -> Outcome<String> {
    let mut before = String::new();
    while let Some(line) = lines.next_line().await.context(|| "reading from the server".to_owned())? {
        if let Some((_, url)) = line.split_once("listening on ") {
            return Ok(url.trim().to_owned());
        }
        before.push_str(&line);
        before.push('\n');
    }
    Err(Failure::new(format!("the server ended before it listened:\n{before}")))
}
