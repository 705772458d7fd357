//! The journal of a faulty server: what it saw.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::failure::{Verdict, ensure};
use crate::limits::CHECK_TIMEOUT;

pub(crate) struct Journal {
    file: PathBuf,
}

impl Journal {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file }
    }

    pub(crate) fn path(&self) -> String {
        self.file.display().to_string()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        std::fs::read_to_string(&self.file).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Waits for a line that begins like that, and gives the rest of it.
    pub(crate) fn wait(&self, beginning: &str) -> Verdict<String> {
        let start = Instant::now();
        loop {
            if let Some(rest) = self.lines().iter().find_map(|line| line.strip_prefix(beginning)) {
                return Ok(rest.trim().to_owned());
            }
            ensure!(start.elapsed() < CHECK_TIMEOUT, "the server never saw {beginning:?}, but {:?}", self.lines());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// How many lines begin like that.
    pub(crate) fn count(&self, beginning: &str) -> usize {
        self.lines().iter().filter(|line| line.starts_with(beginning)).count()
    }
}
