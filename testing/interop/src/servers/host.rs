//! The server of a run: how it is started and reached.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use steadfast::transport::child;

use super::peer::Peer;
use super::transport::TransportKind;
use crate::Result;
use crate::install::{Installed, NOT_KEPT};
use crate::process::last_lines;

/// How long a server may take to listen on a busy machine.
const LISTENING: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(10);

/// The server of a run. Over HTTP it runs until this is dropped; else each session starts its own.
pub(crate) struct Host<'a> {
    peer: &'static Peer,
    installed: &'a Installed,
    folder: PathBuf,
    listening: Option<Listening>,
}

struct Listening {
    process: Child,
    url: String,
}

/// How a session reaches a server.
pub(crate) enum ServerAddress {
    /// As a process of its own, to be started.
    Process(Box<child::Command>),
    /// Where it listens, and which process that is.
    Url(String, u32),
}

impl<'a> Host<'a> {
    pub(crate) fn new(
        peer: &'static Peer,
        installed: &'a Installed,
        transport: TransportKind,
        folder: &Path,
    ) -> Result<Self> {
        let fail = |error: std::io::Error| format!("{}: {error}", folder.display());
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(fail)?;
        }
        fs::create_dir_all(folder).map_err(fail)?;
        let mut host = Self { peer, installed, folder: folder.to_owned(), listening: None };
        if transport != TransportKind::Stdio {
            host.listening = Some(host.listen(transport)?);
        }
        Ok(host)
    }

    pub(crate) fn peer(&self) -> &'static Peer {
        self.peer
    }

    /// The file in which a tool that was stopped says so.
    pub(crate) fn cleanup_log(&self) -> PathBuf {
        self.folder.join("cleanup")
    }

    pub(crate) fn address(&self) -> Result<ServerAddress> {
        if let Some(listening) = &self.listening {
            return Ok(ServerAddress::Url(listening.url.clone(), listening.process.id()));
        }
        let said = self.said();
        let mut log = OpenOptions::new().create(true).append(true).open(&said).map_err(|error| error.to_string())?;
        let command = child::Command::new(self.installed.program())
            .args(self.arguments(TransportKind::Stdio))
            .envs(self.installed.variables())
            .env("CLEANUP_LOG", self.cleanup_log())
            .env_remove(NOT_KEPT)
            .current_dir(&self.folder)
            // What cannot be written down is not worth a failure.
            .on_stderr_line(move |line| drop(writeln!(log, "{line}")));
        Ok(ServerAddress::Process(Box::new(command)))
    }

    /// The end of the server's standard error.
    pub(crate) fn last_words(&self) -> String {
        last_lines(&fs::read_to_string(self.said()).unwrap_or_default())
    }

    fn said(&self) -> PathBuf {
        self.folder.join("server")
    }

    fn arguments(&self, transport: TransportKind) -> Vec<PathBuf> {
        let first = self.peer.loaded_first().map(|script| [PathBuf::from("--import"), self.installed.path(script)]);
        let rest = [self.installed.path(self.peer.script), PathBuf::from(transport.word(self.peer.package))];
        first.into_iter().flatten().chain(rest).collect()
    }

    /// Starts the server on a port that the system chooses, and waits for it to say which.
    fn listen(&self, transport: TransportKind) -> Result<Listening> {
        let log = File::create(self.said()).map_err(|error| error.to_string())?;
        let process = std::process::Command::new(self.installed.program())
            .args(self.arguments(transport))
            .envs(self.installed.variables())
            .env("CLEANUP_LOG", self.cleanup_log())
            .env("PORT", "0")
            .env_remove(NOT_KEPT)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut listening = Listening { process, url: String::new() };
        let start = Instant::now();
        while start.elapsed() < LISTENING {
            let said = fs::read_to_string(self.said()).unwrap_or_default();
            // A line that is not whole yet may have half of the port.
            let whole = said.rsplit_once('\n').map_or("", |(whole, _)| whole);
            if let Some((_, url)) = whole.lines().find_map(|line| line.split_once("listening on ")) {
                url.clone_into(&mut listening.url);
                return Ok(listening);
            }
            std::thread::sleep(PAUSE);
        }
        Err(format!("the server does not say where it listens\n{}", self.last_words()))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // Also if it was killed by a check: it has to be waited for.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
