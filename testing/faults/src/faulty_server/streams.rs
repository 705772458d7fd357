//! The streams of a server that misbehaves: read and written without a buffer.

use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};

use crate::failure::Verdict;

/// Standard input, a line at a time.
pub(super) struct LineReader {
    buffer: Vec<u8>,
    /// How much is read at once.
    bite: usize,
}

impl LineReader {
    pub(super) fn new(bite: usize) -> Self {
        Self { buffer: Vec::new(), bite }
    }

    /// The next line; `None` at the end.
    pub(super) fn line(&mut self) -> Verdict<Option<Vec<u8>>> {
        let mut looked = 0;
        loop {
            if let Some(end) = self.buffer[looked..].iter().position(|byte| *byte == b'\n') {
                let mut line: Vec<u8> = self.buffer.drain(..=looked + end).collect();
                line.pop();
                return Ok(Some(line));
            }
            looked = self.buffer.len();
            self.buffer.resize(looked + self.bite, 0);
            let read = rustix::io::read(rustix::stdio::stdin(), &mut self.buffer[looked..]);
            self.buffer.truncate(looked + read.unwrap_or(0));
            match read {
                Ok(0) => return Ok(None),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Writes to standard output.
pub(super) fn say(bytes: &[u8]) -> Verdict {
    write(rustix::stdio::stdout(), bytes)
}

/// Writes to standard error.
pub(super) fn complain(bytes: &[u8]) -> Verdict {
    write(rustix::stdio::stderr(), bytes)
}

fn write(to: rustix::fd::BorrowedFd<'_>, mut bytes: &[u8]) -> Verdict {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Ends this process, by itself or by SIGKILL.
pub(super) fn die(by: &str) -> Verdict {
    if by == "kill" {
        kill_process(getpid(), Signal::KILL)?;
        std::thread::park();
    }
    std::process::exit(0)
}
