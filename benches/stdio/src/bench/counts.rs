//! Instructions and allocations per request, counted by valgrind.
//!
//! Each server runs twice, with fewer and with more requests: what is left of the difference is what a request costs,
//! without the start, the opening and the end. Only user mode is counted. An allocator of a server's own, linked in,
//! would hide its allocations from valgrind; none of these has one.

use crate::child::{Server, Until};
use crate::contestants::Contestant;
use crate::options::Options;
use crate::workload::{Mode, Tool};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What a request costs one server.
#[derive(Clone, Copy, serde::Serialize)]
pub(crate) struct Cost {
    pub(crate) instructions: f64,
    pub(crate) allocations: f64,
    pub(crate) allocated_bytes: f64,
}

/// One tool asked in one way, of everyone.
pub(crate) struct Cell {
    pub(crate) tool: Tool,
    pub(crate) mode: Mode,
    /// By contestant.
    pub(crate) costs: Vec<Cost>,
}

const PATIENCE: Duration = Duration::from_secs(300);

pub(crate) fn count(contestants: &[Contestant], options: &Options) -> io::Result<Vec<Cell>> {
    let folder = Folder::new(options.keep.as_deref())?;
    let mut cells = Vec::new();
    for &tool in &options.tools {
        for mode in Mode::ALL {
            let costs = contestants
                .iter()
                .map(|contestant| {
                    cost(&Subject {
                        contestant,
                        options,
                        tool,
                        mode,
                        folder: &folder.path,
                    })
                })
                .collect::<io::Result<Vec<_>>>()?;
            cells.push(Cell { tool, mode, costs });
        }
    }
    Ok(cells)
}

struct Subject<'a> {
    contestant: &'a Contestant,
    options: &'a Options,
    tool: Tool,
    mode: Mode,
    folder: &'a Path,
}

fn cost(subject: &Subject<'_>) -> io::Result<Cost> {
    let (fewer, more) = match (subject.options.smoke, subject.tool) {
        (true, _) => (64, 128),
        (false, Tool::Blob) => (128, 512),
        (false, _) => (512, 2560),
    };
    let each =
        |less: u64, greater: u64| (greater as f64 - less as f64) / (more as f64 - fewer as f64);
    let instructions = each(subject.instructions(fewer)?, subject.instructions(more)?);
    let (least, most) = (subject.heap(fewer)?, subject.heap(more)?);
    Ok(Cost {
        instructions,
        allocations: each(least.allocations, most.allocations),
        allocated_bytes: each(least.bytes, most.bytes),
    })
}

struct Heap {
    allocations: u64,
    bytes: u64,
}

impl Subject<'_> {
    fn instructions(&self, requests: u64) -> io::Result<u64> {
        let file = self.file("callgrind", requests);
        let log = option("--log-file=", &self.file("callgrind-log", requests));
        self.run(
            &[
                "--tool=callgrind".into(),
                option("--callgrind-out-file=", &file),
                log,
            ],
            requests,
        )?;
        let text = fs::read_to_string(&file)?;
        text.lines()
            .find_map(|line| {
                line.strip_prefix("totals: ")
                    .or_else(|| line.strip_prefix("summary: "))
            })
            .and_then(|totals| totals.split_whitespace().next()?.parse().ok())
            .ok_or_else(|| unreadable(&file))
    }

    fn heap(&self, requests: u64) -> io::Result<Heap> {
        let file = self.file("memcheck", requests);
        let log = option("--log-file=", &file);
        self.run(
            &[
                "--tool=memcheck".into(),
                "--leak-check=no".into(),
                "--undef-value-errors=no".into(),
                log,
            ],
            requests,
        )?;
        let text = fs::read_to_string(&file)?;
        heap_usage(&text).ok_or_else(|| unreadable(&file))
    }

    fn run(&self, valgrind: &[OsString], requests: u64) -> io::Result<()> {
        let mut command = Command::new("valgrind");
        // Fair, because threads that wait for each other otherwise starve one another in a random measure.
        command.arg("--fair-sched=try").args(valgrind);
        command.args(self.contestant.command_line(self.options.era, self.tool));
        let mut server = Server::open(
            self.contestant.name(),
            &mut command,
            self.options.era,
            self.tool,
            PATIENCE,
        )?;
        server.drive(
            self.mode.window(self.options.window.into()),
            Until::Answered(requests),
        )?;
        server.end()
    }

    fn file(&self, what: &str, requests: u64) -> PathBuf {
        let name = self.contestant.name().replace(' ', "-");
        self.folder.join(format!(
            "{what}.{name}.{}.{}.{requests}",
            self.tool.name(),
            self.mode.name()
        ))
    }
}

fn option(name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push(path);
    option
}

/// Reads `total heap usage: 1,234 allocs, 1,230 frees, 56,789 bytes allocated`.
fn heap_usage(log: &str) -> Option<Heap> {
    let (_, usage) = log.split_once("total heap usage: ")?;
    let mut figures = usage.lines().next()?.split(", ").map(|part| {
        let digits: String = part
            .chars()
            .take_while(|c| !c.is_whitespace())
            .filter(char::is_ascii_digit)
            .collect();
        digits.parse().ok()
    });
    Some(Heap {
        allocations: figures.next()??,
        bytes: figures.nth(1)??,
    })
}

fn unreadable(file: &Path) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("valgrind wrote no totals to {}", file.display()),
    )
}

/// Where valgrind writes: kept if the user named it, else removed at the end.
struct Folder {
    path: PathBuf,
    kept: bool,
}

impl Folder {
    fn new(keep: Option<&Path>) -> io::Result<Self> {
        let path = keep.map_or_else(
            || std::env::temp_dir().join(format!("bench-stdio-{}", std::process::id())),
            Path::to_path_buf,
        );
        fs::create_dir_all(&path)?;
        Ok(Self {
            path: path.canonicalize()?,
            kept: keep.is_some(),
        })
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
        let log = "==1== HEAP SUMMARY:\n==1==   total heap usage: 1,234 allocs, 1,230 frees, 56,789 bytes allocated\n==1==\n";
        let heap = heap_usage(log).map(|heap| (heap.allocations, heap.bytes));
        assert_eq!(heap, Some((1234, 56_789)));
    }
}
