//! What one full run measured: the content of `performance.json`, raw enough to render the document again.
//!
//! It holds what the benches measured, round by round. It never holds a ratio: those are computed when they are shown.

use serde::{Deserialize, Serialize};

use super::machine::Machine;
use crate::failure::{Failure, Outcome};

/// Everything that one run measured. A part is absent if it did not run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Measurements {
    /// The command that measured it.
    pub(crate) command: String,
    /// Whether the run was too short to mean anything.
    pub(crate) smoke: bool,
    /// How often each server and client was measured.
    pub(crate) rounds: usize,
    /// Where it was measured.
    pub(crate) machine: Machine,
    /// Servers on stdio, a run for each revision.
    pub(crate) stdio: Option<Vec<StdioRun>>,
    /// Servers on HTTP.
    pub(crate) http: Option<HttpRun>,
    /// Clients on both transports.
    pub(crate) client: Option<Vec<Load>>,
    /// Instructions and allocations of servers.
    pub(crate) counts: Option<Counts>,
    /// Starting, and memory, of servers on stdio.
    pub(crate) start: Option<Vec<Start>>,
}

impl Measurements {
    /// Fails unless every part ran: a document without some of them would look as if there was nothing to show.
    pub(crate) fn require_all_parts(&self) -> Outcome<()> {
        let parts = [
            ("stdio", self.stdio.is_some()),
            ("http", self.http.is_some()),
            ("client", self.client.is_some()),
            ("counts", self.counts.is_some()),
            ("start", self.start.is_some()),
        ];
        match parts.into_iter().find(|(_, ran)| !ran) {
            None => Ok(()),
            Some((part, _)) => Err(Failure::new(format!("no document without the part `{part}`"))),
        }
    }
}

/// Servers on stdio in one revision of the protocol.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StdioRun {
    pub(crate) revision: String,
    /// How many requests are in flight in the pipelined loads.
    pub(crate) window: u32,
    pub(crate) loads: Vec<Load>,
}

/// Servers on HTTP.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HttpRun {
    pub(crate) loads: Vec<Load>,
    /// Memory for an open session with its stream.
    pub(crate) session_memory: Vec<Memory>,
}

/// One load, put on several servers or clients in interleaved rounds.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Load {
    /// What was asked, and how: `add serial`, `stateless add, 1 connection`, `stdio 2025-11-25 serial`.
    pub(crate) load: String,
    pub(crate) contestants: Vec<Contestant>,
}

/// A server or client that was measured in rounds.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Contestant {
    #[serde(alias = "server", alias = "client")]
    pub(crate) name: String,
    pub(crate) rounds: Vec<Round>,
}

/// What one contestant took in one round. The CPU time is its own, of all its threads, in user and kernel mode.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Round {
    pub(crate) requests: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) wall_seconds: f64,
    #[serde(default)]
    pub(crate) context_switches: Option<f64>,
    /// Absent where several requests are in flight: their latency is a matter of the window.
    #[serde(default)]
    pub(crate) p50_seconds: Option<f64>,
    #[serde(default)]
    pub(crate) p99_seconds: Option<f64>,
}

/// Bytes of memory.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Memory {
    #[serde(alias = "server")]
    pub(crate) name: String,
    pub(crate) bytes: f64,
}

/// What valgrind counted.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Counts {
    pub(crate) stdio: Vec<CountedLoad>,
    pub(crate) http: Vec<CountedLoad>,
}

/// One load, counted for several servers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CountedLoad {
    pub(crate) load: String,
    pub(crate) contestants: Vec<Counted>,
}

/// One server's counts.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Counted {
    #[serde(alias = "server")]
    pub(crate) name: String,
    pub(crate) per_request: Cost,
}

/// What a request costs, in user mode.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Cost {
    pub(crate) instructions: f64,
    pub(crate) allocations: f64,
    pub(crate) allocated_bytes: f64,
}

/// How a server starts, and what memory it takes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Start {
    #[serde(alias = "server")]
    pub(crate) name: String,
    pub(crate) rounds: Vec<StartRound>,
    /// Memory for a call in flight; absent where the server has no tool that waits.
    pub(crate) bytes_per_call: Option<f64>,
    /// The part of the memory for calls in flight that is kept after they were cancelled.
    pub(crate) kept_after_cancel: Option<f64>,
}

/// One start of one server.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StartRound {
    pub(crate) first_answer_seconds: f64,
    pub(crate) first_answer_cpu_seconds: f64,
    pub(crate) idle_bytes: f64,
}
