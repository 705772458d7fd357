//! All seeded worlds, each under one name: what the command, the sweeps and the tests run seeds with.

use std::fmt;

use crate::client::{self, TransportKind};
use crate::law::Violation;
use crate::panics;
use crate::seed::Seed;
use crate::{http, pair, shell};

/// A world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum World {
    /// A client's and a server's core, joined by a link that misbehaves.
    Cores,
    /// The real server over a stream, on the simulator's executor.
    Shell,
    /// The real HTTP service on the simulator's executor.
    Http,
    /// The real client, over a stream of bytes.
    Client,
    /// The real client, over HTTP.
    HttpClient,
}

/// What a run came to, or many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests and calls.
    pub requests: u64,
    /// Cancellations.
    pub cancels: u64,
    /// Connections and sessions that ended.
    pub closes: u64,
    /// Messages.
    pub messages: u64,
    /// The hash of everything that was seen.
    pub trace: u64,
}

impl std::ops::AddAssign for Counts {
    /// The hashes are mixed in the order in which they are added.
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.cancels += other.cancels;
        self.closes += other.closes;
        self.messages += other.messages;
        self.trace = self.trace.rotate_left(5).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ other.trace;
    }
}

/// A failing run made as small as it gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shrunk {
    /// What it breaks.
    pub violation: Violation,
    /// The kinds of steps that are left, in order.
    pub steps: Vec<String>,
    /// The script and what happens in it, for people.
    pub text: String,
}

impl World {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Cores, Self::Shell, Self::Http, Self::Client, Self::HttpClient];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cores => "cores",
            Self::Shell => "shell",
            Self::Http => "http",
            Self::Client => "client",
            Self::HttpClient => "http-client",
        }
    }

    /// The world of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|world| world.name() == name)
    }

    /// Runs a seed, and checks every law.
    ///
    /// # Errors
    ///
    /// The first law that was broken. A panic of the simulator itself, or of what it calls outside of a task, is one too.
    pub fn run(self, seed: Seed) -> Result<Counts, Violation> {
        panics::catch(|| self.run_unguarded(seed))?
    }

    fn run_unguarded(self, seed: Seed) -> Result<Counts, Violation> {
        match self {
            Self::Cores => {
                let pair::Run { violations, hash, requests, cancels, closes, messages } = pair::run(seed);
                let counts = Counts { requests, cancels, closes, messages, trace: hash };
                violations.into_iter().next().map_or(Ok(counts), Err)
            }
            Self::Shell => shell::run_seed(seed).map(|all| Counts {
                requests: all.requests,
                cancels: all.cancellations,
                closes: all.runs,
                messages: all.messages,
                trace: all.trace,
            }),
            Self::Http => http::run_seed(seed).map(|all| Counts {
                requests: all.requests,
                cancels: all.cancellations,
                closes: all.sessions,
                messages: all.events,
                trace: all.trace,
            }),
            Self::Client => client::run_seed(TransportKind::Stream, seed).map(of_client),
            Self::HttpClient => client::run_seed(TransportKind::Http, seed).map(of_client),
        }
    }

    /// Makes the script of a seed that fails as small as it gets. `None` if it does not fail, or panics.
    pub fn shrink(self, seed: Seed) -> Option<Shrunk> {
        let shrunk = panics::catch(|| match self {
            Self::Cores => pair::examine(seed, None).map(|failure| failure.shrunk()),
            Self::Shell => shell::shrink(seed),
            Self::Http => http::shrink(seed),
            Self::Client => client::shrink(TransportKind::Stream, seed),
            Self::HttpClient => client::shrink(TransportKind::Http, seed),
        });
        shrunk.ok().flatten()
    }

    /// What happens under a seed, for people to read. Of a run that panics only the panic is known.
    pub fn lines(self, seed: Seed) -> Vec<String> {
        let lines = panics::catch(|| match self {
            Self::Cores => pair::trace(seed),
            Self::Shell => shell::lines(seed),
            Self::Http => http::lines(seed),
            Self::Client => client::lines(TransportKind::Stream, seed),
            Self::HttpClient => client::lines(TransportKind::Http, seed),
        });
        lines.unwrap_or_else(|violation| vec![violation.to_string()])
    }
}

/// Runs only these parts of the script of a seed of [`World::Cores`], and returns how that fails, for people. `None` if it does
/// not fail.
pub fn examine_parts(seed: Seed, keep: &[usize]) -> Option<String> {
    match panics::catch(|| pair::examine(seed, Some(keep))) {
        Ok(failure) => failure.map(|failure| failure.to_string()),
        Err(panicked) => Some(format!("{panicked}\n")),
    }
}

fn of_client(all: client::Totals) -> Counts {
    Counts {
        requests: all.calls,
        cancels: all.cancellations,
        closes: all.runs,
        messages: all.messages,
        trace: all.trace,
    }
}

impl fmt::Display for World {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl fmt::Display for Shrunk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}\n{}", self.violation, self.text)
    }
}
