//! A server that listens on loopback: how it says where, how it is started, and how it is ended.
//!
//! None of it runs while something is measured.

use crate::process::Subject;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{ChildStdin, Command};
use std::time::Duration;

/// The path of the endpoint.
pub const PATH: &str = "/mcp";

/// Tells the bench where the server listens.
pub fn announce(address: SocketAddr) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{address}")?;
    output.flush()
}

/// Ends the process when its input ends, at once and in the same way for all: how they drain is not measured here.
pub fn end_with_input() {
    std::thread::spawn(|| {
        // An input that cannot be read has ended too.
        let _ = io::stdin().lock().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
}

/// A server that listens, as a child process.
pub struct Endpoint {
    /// The process.
    pub subject: Subject,
    /// Where it listens.
    pub address: SocketAddr,
    input: ChildStdin,
}

impl Endpoint {
    /// Starts the command, and waits until it says where it listens. `patience` bounds each step from here on.
    pub fn start(name: &str, command: &mut Command, patience: Duration) -> io::Result<Self> {
        let (subject, input, output) = Subject::start(name, command, patience)?;
        let mut line = String::new();
        let watch = subject.watch();
        watch.end("its start", BufReader::new(output).read_line(&mut line))?;
        let unreadable = |_| io::Error::new(io::ErrorKind::InvalidData, format!("{name}: no address in {line:?}"));
        let address = line.trim().parse().map_err(unreadable)?;
        Ok(Self { subject, address, input })
    }

    /// Closes the server's input and waits for its end.
    pub fn end(self) -> io::Result<()> {
        drop(self.input);
        self.subject.wait()
    }
}
