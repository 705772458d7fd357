//! The command as a child process: run to its end, or used interactively, through pipes or at a terminal.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

pub(crate) const STEADFAST: &str = env!("CARGO_BIN_EXE_steadfast");

/// Timeout of waiting for expected output. Only a failing test waits that long.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn run(arguments: &[&str]) -> Output {
    let command = Command::new(STEADFAST).args(arguments).stdin(Stdio::null()).output();
    command.expect("the command starts")
}

/// The reference server, as a command in quotes.
pub(crate) fn serve() -> String {
    format!("'{STEADFAST}' serve")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The reference server over HTTP, killed at the end.
pub(crate) struct HttpServer {
    child: Child,
    pub(crate) url: String,
}

impl HttpServer {
    pub(crate) fn new() -> Self {
        let mut command = Command::new(STEADFAST);
        command.args(["serve", "--http", "127.0.0.1:0"]).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the server starts");
        let lines = BufReader::new(child.stderr.take().expect("it has a standard error")).lines();
        let mut lines = lines.map_while(Result::ok);
        let url = lines.find_map(|line| line.split_once("listening on ").map(|(_, url)| url.trim().to_owned()));
        // Read to the end, so that the pipe never fills up.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url: url.expect("it says where it listens") }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        // An error means that it has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running command. Its text output is its standard error, or everything that the terminal shows.
pub(crate) struct RunningCommand {
    child: Child,
    said: Receiver<Vec<u8>>,
    so_far: String,
    /// How much of the output was consumed by `wait_for`.
    seen: usize,
}

impl RunningCommand {
    /// Without a terminal.
    pub(crate) fn through_pipes(arguments: &[&str]) -> Self {
        let mut command = Command::new(STEADFAST);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command starts");
        let errors = child.stderr.take().expect("it has a standard error");
        Self::new(child, errors)
    }

    pub(crate) fn new(child: Child, mut errors: impl Read + Send + 'static) -> Self {
        let (pieces, said) = channel();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // Reading from a terminal that was closed is an error, and the end.
            while let Ok(length @ 1..) = errors.read(&mut piece) {
                if pieces.send(piece[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, said, so_far: String::new(), seen: 0 }
    }

    /// Waits for this text after the last consumed position. Returns all output up to it.
    pub(crate) fn wait_for(&mut self, words: &str) -> String {
        loop {
            if let Some(place) = self.so_far[self.seen..].find(words) {
                let piece = self.so_far[self.seen..self.seen + place + words.len()].to_owned();
                self.seen += place + words.len();
                return piece;
            }
            match self.said.recv_timeout(PATIENCE) {
                Ok(piece) => self.so_far.push_str(&String::from_utf8_lossy(&piece)),
                Err(error) => panic!("no {words:?} in the output ({error}): {}", self.so_far),
            }
        }
    }

    pub(crate) fn interrupt(&self) {
        self.signal("INT");
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()));
    }

    /// Waits for its exit: the exit code, its standard output, and its text output.
    pub(crate) fn end(mut self) -> (Option<i32>, String, String) {
        let mut printed = String::new();
        let mut output = self.child.stdout.take().expect("it has a standard output");
        output.read_to_string(&mut printed).expect("it prints text");
        let status = self.child.wait().expect("it ends");
        while let Ok(piece) = self.said.recv_timeout(PATIENCE) {
            self.so_far.push_str(&String::from_utf8_lossy(&piece));
        }
        (status.code(), printed, std::mem::take(&mut self.so_far))
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        // An error means that it has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A temporary folder, deleted when dropped.
pub(crate) struct TempFolder(pub(crate) std::path::PathBuf);

impl TempFolder {
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("steadfast-cli-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("there is a place for files");
        Self(folder)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        // A leftover folder does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
