//! A room: the folder, the server and the traces of one run.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Result;
use crate::process::is_gone_within;
use crate::transport::Transport;

/// How long a server may go on after its client. Its own limit is two seconds; the rest is for busy machines.
const GONE: Duration = Duration::from_secs(10);
/// How long a server may take to listen, and a cleanup to be written down.
const SOON: Duration = Duration::from_secs(10);

/// One run's own place.
pub(crate) struct Room {
    folder: PathBuf,
    target: String,
    listening: Option<Child>,
}

impl Room {
    /// Makes it anew. On HTTP the server is started.
    pub(crate) fn new(folder: &Path, program: &Path, transport: Transport) -> Result<Self> {
        let fail = |error: std::io::Error| format!("{}: {error}", folder.display());
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(fail)?;
        }
        fs::create_dir_all(folder).map_err(fail)?;
        let mut room = Self { folder: folder.to_owned(), target: String::new(), listening: None };
        room.target = match transport {
            Transport::Stdio => room.script(program).map_err(fail)?,
            Transport::Http => room.listen(program)?,
        };
        Ok(room)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What a client is told to speak to: a command without arguments, or a URL.
    pub(crate) fn target(&self) -> [&str; 1] {
        [&self.target]
    }

    /// The file in which `slow_cleanup` writes that it was stopped.
    pub(crate) fn cleanup_log(&self) -> PathBuf {
        self.folder.join("cleanup")
    }

    /// The client is gone: so must be its server, and a handler that was stopped has said so once.
    pub(crate) fn leave(&mut self, cleans_up: bool) -> Result {
        let cleaned_up = self.lines_of_cleanup(usize::from(cleans_up));
        if let Some(mut server) = self.listening.take() {
            // It is ours, and nothing of what it does when it is told to stop is looked at here.
            let _ = server.kill();
            let _ = server.wait();
        }
        for pid in fs::read_to_string(self.pids()).unwrap_or_default().lines() {
            let pid = pid.parse().map_err(|error| format!("pid {pid}: {error}"))?;
            if !is_gone_within(GONE, pid) {
                return Err("the server outlived its client".to_owned());
            }
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
        let start = Instant::now();
        loop {
            let lines = fs::read_to_string(self.cleanup_log()).unwrap_or_default().lines().count();
            if lines >= awaited || start.elapsed() > SOON {
                return lines;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn pids(&self) -> PathBuf {
        self.folder.join("pids")
    }

    /// A command that writes down its process id and becomes the server: some clients start it in a group of its own,
    /// and some start it twice.
    fn script(&self, program: &Path) -> std::io::Result<String> {
        let path = self.folder.join("serve");
        let [pids, program] = [&self.pids(), program].map(|path| path.display().to_string().replace('\'', r"'\''"));
        fs::write(&path, format!("#!/bin/sh\necho $$ >> '{pids}'\nexec '{program}' serve\n"))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(path.display().to_string())
    }

    fn listen(&mut self, program: &Path) -> Result<String> {
        let address = free_address().map_err(|error| error.to_string())?;
        let log = File::create(self.folder.join("server")).map_err(|error| error.to_string())?;
        let server = Command::new(program)
            .args(["serve", "--http", &address.to_string()])
            .env("CLEANUP_LOG", self.cleanup_log())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        self.listening = Some(server);
        let start = Instant::now();
        while TcpStream::connect(address).is_err() {
            if start.elapsed() > SOON {
                return Err(format!("nobody listens on {address}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(format!("http://{address}/mcp"))
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if let Some(mut server) = self.listening.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// One that nobody listens on now. Another program may take it first; then the server says so and the run fails.
fn free_address() -> std::io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}
