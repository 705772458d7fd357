//! The command as a child process: run to its end, or spoken with, through pipes or at a terminal.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

pub(crate) const STEADFAST: &str = env!("CARGO_BIN_EXE_steadfast");

/// How long something may take that always comes. Only a failure waits for it.
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
pub(crate) struct Served {
    child: Child,
    pub(crate) url: String,
}

impl Served {
    pub(crate) fn new() -> Self {
        let mut command = Command::new(STEADFAST);
        command.args(["serve", "--http", "127.0.0.1:0"]).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the server starts");
        let lines = BufReader::new(child.stderr.take().expect("it has a standard error")).lines();
        let mut lines = lines.map_while(Result::ok);
        let url = lines.find_map(|line| line.split_once("listening on ").map(|(_, url)| url.trim().to_owned()));
        // Read to its end, so that it is never short of room to complain.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url: url.expect("it says where it listens") }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // One that is gone already is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command that is spoken with. What it says is its standard error, or all that a terminal shows.
pub(crate) struct Spoken {
    child: Child,
    said: Receiver<Vec<u8>>,
    so_far: String,
    /// How much of it was waited for already.
    seen: usize,
}

impl Spoken {
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
            // A terminal that nobody has open any more is an error, and the end.
            while let Ok(length @ 1..) = errors.read(&mut piece) {
                if pieces.send(piece[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, said, so_far: String::new(), seen: 0 }
    }

    /// Waits until it has said this, after what was waited for before. Gives back all that came with it.
    pub(crate) fn wait_for(&mut self, words: &str) -> String {
        loop {
            if let Some(place) = self.so_far[self.seen..].find(words) {
                let piece = self.so_far[self.seen..self.seen + place + words.len()].to_owned();
                self.seen += place + words.len();
                return piece;
            }
            match self.said.recv_timeout(PATIENCE) {
                Ok(piece) => self.so_far.push_str(&String::from_utf8_lossy(&piece)),
                Err(error) => panic!("it never said {words:?} ({error}), only: {}", self.so_far),
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

    /// Waits for its end: its exit code, what it printed, and all that it said.
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

impl Drop for Spoken {
    fn drop(&mut self) {
        // One that is gone already is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder that is gone afterwards.
pub(crate) struct Scratch(pub(crate) std::path::PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("steadfast-cli-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("there is a place for files");
        Self(folder)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Left behind, it would only be in the way.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
