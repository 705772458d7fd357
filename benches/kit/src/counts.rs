//! Instructions and allocations per request, counted by valgrind.
//!
//! Each contestant runs twice, with fewer and with more requests: what is left of the difference is what a request costs,
//! without the start, the opening and the end. Only user mode is counted. An allocator of a program's own, linked in,
//! would hide its allocations from valgrind; none of these has one.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a request costs one contestant.
#[derive(Clone, Copy, serde::Serialize)]
pub struct Cost {
    /// In user mode.
    pub instructions: f64,
    /// How often memory is asked for.
    pub allocations: f64,
    /// And how much.
    pub allocated_bytes: f64,
}

/// One contestant under one load.
pub struct Count<'a> {
    /// Where valgrind writes.
    pub folder: &'a Folder,
    /// What tells its files from others.
    pub label: &'a str,
    /// The program and its arguments.
    pub command_line: &'a [OsString],
    /// The numbers of requests whose difference is taken.
    pub requests: (u64, u64),
}

impl Count<'_> {
    /// Starts the command that it is given as often as is needed; `drive` has it do that many requests and end.
    pub fn run(&self, drive: impl Fn(&mut Command, u64) -> io::Result<()>) -> io::Result<Cost> {
        let (fewer, more) = self.requests;
        let each = |less: u64, greater: u64| (greater as f64 - less as f64) / (more as f64 - fewer as f64);
        let instructions = each(self.instructions(fewer, &drive)?, self.instructions(more, &drive)?);
        let (least, most) = (self.heap(fewer, &drive)?, self.heap(more, &drive)?);
        Ok(Cost {
            instructions,
            allocations: each(least.allocations, most.allocations),
            allocated_bytes: each(least.bytes, most.bytes),
        })
    }

    fn instructions(&self, requests: u64, drive: impl Fn(&mut Command, u64) -> io::Result<()>) -> io::Result<u64> {
        let file = self.file("callgrind", requests);
        let log = option("--log-file=", &self.file("callgrind-log", requests));
        let mut command = self.command(&["--tool=callgrind".into(), option("--callgrind-out-file=", &file), log]);
        drive(&mut command, requests)?;
        let text = fs::read_to_string(&file)?;
        text.lines()
            .find_map(|line| line.strip_prefix("totals: ").or_else(|| line.strip_prefix("summary: ")))
            .and_then(|totals| totals.split_whitespace().next()?.parse().ok())
            .ok_or_else(|| unreadable(&file))
    }

    fn heap(&self, requests: u64, drive: impl Fn(&mut Command, u64) -> io::Result<()>) -> io::Result<Heap> {
        let file = self.file("memcheck", requests);
        let log = option("--log-file=", &file);
        let mut command =
            self.command(&["--tool=memcheck".into(), "--leak-check=no".into(), "--undef-value-errors=no".into(), log]);
        drive(&mut command, requests)?;
        let text = fs::read_to_string(&file)?;
        heap_usage(&text).ok_or_else(|| unreadable(&file))
    }

    fn command(&self, valgrind: &[OsString]) -> Command {
        let mut command = Command::new("valgrind");
        // Fair, because threads that wait for each other otherwise starve one another in a random measure.
        command.arg("--fair-sched=try").args(valgrind).args(self.command_line);
        command
    }

    fn file(&self, what: &str, requests: u64) -> PathBuf {
        self.folder.path.join(format!("{what}.{}.{requests}", self.label.replace(' ', "-")))
    }
}

fn option(name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push(path);
    option
}

struct Heap {
    allocations: u64,
    bytes: u64,
}

/// Reads `total heap usage: 1,234 allocs, 1,230 frees, 56,789 bytes allocated`.
fn heap_usage(log: &str) -> Option<Heap> {
    let (_, usage) = log.split_once("total heap usage: ")?;
    let mut figures = usage.lines().next()?.split(", ").map(|part| {
        let digits: String = part.chars().take_while(|c| !c.is_whitespace()).filter(char::is_ascii_digit).collect();
        digits.parse().ok()
    });
    Some(Heap { allocations: figures.next()??, bytes: figures.nth(1)?? })
}

fn unreadable(file: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("valgrind wrote no totals to {}", file.display()))
}

/// Where valgrind writes: kept if the user named it, else removed at the end.
pub struct Folder {
    path: PathBuf,
    kept: bool,
}

impl Folder {
    /// The folder that is to be kept, or one for this run.
    pub fn new(keep: Option<&Path>) -> io::Result<Self> {
        let path =
            keep.map_or_else(|| std::env::temp_dir().join(format!("bench-{}", std::process::id())), Path::to_path_buf);
        fs::create_dir_all(&path)?;
        Ok(Self { path: path.canonicalize()?, kept: keep.is_some() })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.kept {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::heap_usage;

    #[test]
    fn memcheck_totals_are_read_with_their_commas() {
        let log =
            "==1== HEAP SUMMARY:\n==1==   total heap usage: 1,234 allocs, 1,230 frees, 56,789 bytes allocated\n==1==\n";
        let heap = heap_usage(log).map(|heap| (heap.allocations, heap.bytes));
        assert_eq!(heap, Some((1234, 56_789)));
    }
}
