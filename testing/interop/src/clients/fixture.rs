//! The folder, the server and the traces of one check.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::check::Check;
use super::cutting_proxy::CuttingProxy;
use crate::Result;
use crate::process::is_gone_within;
use crate::transport::Transport;

/// How long a server may go on after its client. Its own limit is two seconds; the rest is for busy machines.
const GONE: Duration = Duration::from_secs(10);
/// How long a server may take to listen, and a cleanup to be written down.
const SOON: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(10);

/// What one check uses alone: its folder, its server, and the proxy in front of it.
pub(crate) struct Fixture {
    folder: PathBuf,
    target: String,
    listening: Option<Child>,
    proxy: Option<CuttingProxy>,
}

impl Fixture {
    /// Makes it. On HTTP the server is started.
    pub(crate) fn new(folder: &Path, program: &Path, transport: Transport, check: &Check) -> Result<Self> {
        let fail = |error: std::io::Error| format!("{}: {error}", folder.display());
        fs::create_dir_all(folder).map_err(fail)?;
        let mut fixture = Self { folder: folder.to_owned(), target: String::new(), listening: None, proxy: None };
        fixture.target = match transport {
            Transport::Stdio => fixture.script(program).map_err(fail)?,
            Transport::Http => {
                let mut address = fixture.listen(program)?;
                if check.is_cut {
                    let proxy = CuttingProxy::before(address).map_err(fail)?;
                    address = proxy.address();
                    fixture.proxy = Some(proxy);
                }
                format!("http://{address}/mcp")
            }
        };
        Ok(fixture)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The server that a client connects to: a command without arguments, or a URL.
    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    /// The file in which `slow_cleanup` writes that it was stopped.
    pub(crate) fn cleanup_log(&self) -> PathBuf {
        self.folder.join("cleanup")
    }

    /// The client has exited: so must its server, and a handler that was stopped has reported it once.
    pub(crate) fn leave(&mut self, cleans_up: bool) -> Result {
        let cleaned_up = self.lines_of_cleanup(usize::from(cleans_up));
        self.stop();
        for pid in fs::read_to_string(self.pids()).unwrap_or_default().lines() {
            let pid = pid.parse().map_err(|error| format!("pid {pid}: {error}"))?;
            if !is_gone_within(GONE, pid) {
                return Err("the server outlived its client".to_owned());
            }
        }
        if self.proxy.as_ref().is_some_and(|proxy| !proxy.has_cut()) {
            return Err("the connection was never cut".to_owned());
        }
        // Once more, because a second line would come last.
        let at_the_end = self.lines_of_cleanup(cleaned_up);
        if at_the_end == usize::from(cleans_up) {
            Ok(())
        } else {
            Err(format!("{at_the_end} handlers cleaned up after a cancellation"))
        }
    }

    fn lines_of_cleanup(&self, awaited: usize) -> usize {
        let lines = || fs::read_to_string(self.cleanup_log()).unwrap_or_default().lines().count();
        // What is there at the end counts, in time or not.
        let _ = wait_for(|| (lines() >= awaited).then_some(()));
        lines()
    }

    fn pids(&self) -> PathBuf {
        self.folder.join("pids")
    }

    /// A command that writes down its process id and becomes the server: some clients start it in a group of its own,
    /// and some start it twice.
    fn script(&self, program: &Path) -> std::io::Result<String> {
        let path = self.folder.join("serve");
        let [pids, cleanup_log, program] = [self.pids(), self.cleanup_log(), program.to_owned()].map(quoted);
        let text = format!("#!/bin/sh\necho $$ >> {pids}\nCLEANUP_LOG={cleanup_log} exec {program} serve\n");
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(path.display().to_string())
    }

    /// Starts a server on a port that the system chooses, and waits for it to say which.
    fn listen(&mut self, program: &Path) -> Result<SocketAddr> {
        let said = self.folder.join("server");
        let log = File::create(&said).map_err(|error| error.to_string())?;
        let server = Command::new(program)
            .args(["serve", "--http", "127.0.0.1:0"])
            .env("CLEANUP_LOG", self.cleanup_log())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        self.listening = Some(server);
        let address = wait_for(|| {
            let said = fs::read_to_string(&said).ok()?;
            let (_, url) = said.lines().find_map(|line| line.split_once("listening on http://"))?;
            url.strip_suffix("/mcp")?.parse().ok()
        });
        address.ok_or_else(|| "the server does not say where it listens".to_owned())
    }

    fn stop(&mut self) {
        if let Some(mut server) = self.listening.take() {
            // The server is ours, and how it stops is not checked here.
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.stop();
    }
}

fn wait_for<T>(mut happened: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        let found = happened();
        if found.is_some() || start.elapsed() > SOON {
            return found;
        }
        std::thread::sleep(PAUSE);
    }
}

/// For a shell.
fn quoted(path: impl AsRef<Path>) -> String {
    format!("'{}'", path.as_ref().display().to_string().replace('\'', r"'\''"))
}
