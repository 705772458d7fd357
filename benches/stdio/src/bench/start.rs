//! What a server costs before it is asked much: the time to its first answer, its memory when idle, and the memory of calls that
//! wait.

use crate::child::{Server, Until};
use crate::contestants::{Contestant, Kind};
use crate::options::{Options, Part};
use crate::workload::Tool;
use bench_kit::era::Era;
use bench_kit::figures::{Spread, grouped, significant};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// One start of one server.
struct Start {
    first_answer: Duration,
    cpu: Duration,
    idle_bytes: u64,
}

/// The memory of calls that wait.
struct CallMemory {
    bytes_per_call: f64,
    /// Which part of it is still there after all of the calls were cancelled.
    kept: f64,
}

/// The table and the JSON of all contestants.
pub(crate) fn measure(contestants: &[Contestant], options: &Options) -> io::Result<(String, Value)> {
    let rounds = if options.has(Part::Start) { options.running.rounds() } else { 0 };
    let mut starts: Vec<Vec<Start>> = contestants.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for (contestant, starts) in contestants.iter().zip(&mut starts) {
            starts.push(start(contestant)?);
        }
    }
    let memory = |contestant: &Contestant| -> io::Result<Option<CallMemory>> {
        let has_slow_tool = contestant.is(Kind::Steadfast) || contestant.is_rmcp();
        if options.has(Part::Memory) && has_slow_tool { call_memory(contestant, options).map(Some) } else { Ok(None) }
    };
    let memories = contestants.iter().map(memory).collect::<io::Result<Vec<_>>>()?;
    let mut text = format!(
        "{:<18}{:>20}{:>16}{:>18}{:>22}\n",
        "", "first answer (ms)", "idle (bytes)", "per call (bytes)", "kept after cancelling"
    );
    let mut servers = Vec::new();
    for ((contestant, starts), memory) in contestants.iter().zip(&starts).zip(&memories) {
        let median = |figure: fn(&Start) -> f64| {
            let values: Vec<f64> = starts.iter().map(figure).collect();
            (!values.is_empty()).then(|| Spread::of(values).median)
        };
        let shown = |figure: Option<f64>, format: fn(f64) -> String| figure.map_or_else(|| "-".to_owned(), format);
        let _ = writeln!(
            text,
            "{:<18}{:>20}{:>16}{:>18}{:>22}",
            contestant.name(),
            shown(median(|start| start.first_answer.as_secs_f64() * 1e3), significant),
            shown(median(|start| start.idle_bytes as f64), grouped),
            shown(memory.as_ref().map(|memory| memory.bytes_per_call), grouped),
            shown(memory.as_ref().map(|memory| memory.kept), significant),
        );
        let rounds = starts.iter().map(|start| {
            json!({
                "first_answer_seconds": start.first_answer.as_secs_f64(),
                "first_answer_cpu_seconds": start.cpu.as_secs_f64(),
                "idle_bytes": start.idle_bytes,
            })
        });
        servers.push(json!({
            "server": contestant.name(),
            "rounds": rounds.collect::<Vec<Value>>(),
            "bytes_per_call": memory.as_ref().map(|memory| memory.bytes_per_call),
            "kept_after_cancel": memory.as_ref().map(|memory| memory.kept),
        }));
    }
    Ok((text, json!({"kind": "start", "smoke": options.running.smoke, "servers": servers})))
}

fn open(contestant: &Contestant) -> io::Result<Server> {
    let line = contestant.command_line(Era::Initialize, Tool::Add);
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]);
    Server::open(contestant.name(), &mut command, Era::Initialize, Tool::Add, PATIENCE)
}

fn start(contestant: &Contestant) -> io::Result<Start> {
    let began = Instant::now();
    let mut server = open(contestant)?;
    server.drive(1, Until::Answered(1))?;
    let first_answer = began.elapsed();
    let cpu = server.subject().cpu_time()?;
    server.subject().settle()?;
    let idle_bytes = server.subject().resident_bytes()?;
    server.end()?;
    Ok(Start { first_answer, cpu, idle_bytes })
}

fn call_memory(contestant: &Contestant, options: &Options) -> io::Result<CallMemory> {
    let calls = options.calls_in_flight();
    let mut server = open(contestant)?;
    server.drive(1, Until::Answered(64))?;
    let resident = |server: &Server| -> io::Result<f64> {
        server.subject().settle()?;
        Ok(server.subject().resident_bytes()? as f64)
    };
    let before = resident(&server)?;
    let ids = server.send_slow_calls(calls)?;
    let during = resident(&server)?;
    server.cancel(ids)?;
    let after = resident(&server)?;
    // The answer to one more call shows that the server has not simply ended.
    server.drive(1, Until::Answered(1))?;
    server.end()?;
    let grown = (during - before).max(1.0);
    Ok(CallMemory { bytes_per_call: grown / calls as f64, kept: (after - before).max(0.0) / grown })
}
