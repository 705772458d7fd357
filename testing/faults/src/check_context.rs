//! What one run of a check gets: the program, the era, seeded choices, a folder of its own, and its notes.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::limits::{PROMPT, RACE_BUDGET};
use crate::process::launch::Launch;
use crate::process::memory::mebibytes;
use crate::process::output::Transcript;
use crate::process::server::{Exit, Server};
use crate::process::standard_error::{self, StderrReader};
use crate::program::Programs;
use crate::random::Random;

/// How many of the servers of a check a failure report shows.
const SHOWN_SERVERS: usize = 1;
/// How many lines of each output a failure report shows.
const SHOWN_LINES: usize = 8;

static FOLDERS: AtomicU64 = AtomicU64::new(0);

pub(crate) struct CheckContext {
    pub(crate) era: Era,
    pub(crate) random: Random,
    /// This very program, able to play a client that gets killed.
    pub(crate) client_program: PathBuf,
    programs: Programs,
    races: usize,
    folder: PathBuf,
    files: u64,
    notes: Vec<String>,
    shown: VecDeque<Traces>,
}

/// The output of a server after its end: its lines, and its standard error. Of a client only the latter.
type Traces = (Option<Arc<Transcript>>, Arc<Mutex<Vec<u8>>>);

impl CheckContext {
    pub(crate) fn new(programs: Programs, client_program: PathBuf, era: Era, seed: u64, races: usize) -> Verdict<Self> {
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("faults-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Self {
            era,
            random: Random::new(seed),
            client_program,
            programs,
            races,
            folder,
            files: 0,
            notes: Vec::new(),
            shown: VecDeque::new(),
        })
    }

    pub(crate) fn program(&self) -> &Path {
        &self.programs.steadfast
    }

    /// The client under test.
    pub(crate) fn client_under_test(&self) -> &Path {
        &self.programs.subject
    }

    /// The folder of this run: it is in the arguments of every process that it starts as a fault server.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// `serve` with its defaults.
    pub(crate) fn launch(&self) -> Launch {
        Launch::new(&self.programs.steadfast)
    }

    /// A server with which the client has opened its conversation.
    pub(crate) fn open(&mut self) -> Verdict<Client> {
        let launch = self.launch();
        self.open_with(&launch)
    }

    pub(crate) fn open_with(&mut self, launch: &Launch) -> Verdict<Client> {
        let mut client = self.start(launch)?;
        client.open()?;
        Ok(client)
    }

    /// A server to which nothing has been sent.
    pub(crate) fn start(&mut self, launch: &Launch) -> Verdict<Client> {
        let client = Client::start(launch, self.era)?;
        self.show(&client.server);
        Ok(client)
    }

    /// Shows the last words of this server if the check fails.
    pub(crate) fn show(&mut self, server: &Server) {
        self.show_traces((Some(Arc::clone(&server.output.transcript)), server.errors.kept()));
    }

    /// The same for a client.
    pub(crate) fn show_errors(&mut self, errors: &StderrReader) {
        self.show_traces((None, errors.kept()));
    }

    fn show_traces(&mut self, traces: Traces) {
        self.shown.push_back(traces);
        if self.shown.len() > SHOWN_SERVERS {
            self.shown.pop_front();
        }
    }

    /// The name of a file that does not exist yet.
    pub(crate) fn new_file(&mut self) -> PathBuf {
        self.files += 1;
        self.folder.join(self.files.to_string())
    }

    /// Something seen that a reader of the table wants to know.
    pub(crate) fn note(&mut self, words: impl Into<String>) {
        self.notes.push(words.into());
    }

    pub(crate) fn note_exit(&mut self, ending: Exit) {
        let code = ending.status.code().map_or_else(|| ending.status.to_string(), |code| code.to_string());
        self.note(format!("exit {code} after {}", seconds(ending.took)));
    }

    pub(crate) fn note_memory(&mut self, what: &str, kib: u64) {
        self.note(format!("{what} {}", mebibytes(kib)));
    }

    pub(crate) fn notes(&self) -> String {
        self.notes.join(", ")
    }

    /// Runs a race again and again, with other choices each time.
    pub(crate) fn race(&mut self, mut round: impl FnMut(&mut Self) -> Verdict) -> Verdict {
        let start = Instant::now();
        for number in 0..self.races {
            round(self).map_err(|failure| failure.at(format!("round {number}")))?;
            let spent = start.elapsed();
            ensure!(spent < RACE_BUDGET, "{number} rounds took {spent:?}: does each of them wait for a timeout?");
        }
        self.note(format!("{} races in {}", self.races, seconds(start.elapsed())));
        Ok(())
    }

    /// The last output of the servers, for a failure.
    pub(crate) fn last_words(&self) -> String {
        let mut words = String::new();
        for (transcript, kept) in &self.shown {
            if let Some(transcript) = transcript {
                let seen = transcript.state();
                let _ = writeln!(words, "    {} lines on standard output, the last:", seen.messages.len());
                for message in seen.messages.iter().rev().take(SHOWN_LINES).rev() {
                    let _ = writeln!(words, "      {}", message.opening);
                }
            }
            let text = standard_error::text(kept);
            let _ = writeln!(words, "    {} bytes on standard error, the last lines:", text.len());
            let lines: Vec<&str> = text.lines().rev().take(SHOWN_LINES).collect();
            for line in lines.iter().rev() {
                let _ = writeln!(words, "      {line}");
            }
        }
        words
    }
}

impl Drop for CheckContext {
    fn drop(&mut self) {
        // A folder that remains in the temporary directory does no harm.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A time for notes.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}

/// The lines that cleanups have written.
pub(crate) fn cleanup_lines(file: &Path) -> usize {
    std::fs::read_to_string(file).map_or(0, |text| text.lines().count())
}

/// Waits without fuss until that many cleanups have written their line; gives how long that took.
pub(crate) fn wait_for_cleanups(file: &Path, count: usize) -> Verdict<Duration> {
    let start = Instant::now();
    while cleanup_lines(file) < count {
        ensure!(start.elapsed() < PROMPT, "{} of {count} cleanups within {PROMPT:?}", cleanup_lines(file));
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(start.elapsed())
}
