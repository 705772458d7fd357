//! What an open session with its GET stream takes: the growth of the server's resident memory, divided by their number.
//!
//! The kernel's share, the buffers of sockets, is not in it: it is the same for all.

use crate::contestants::Contestant;
use crate::line::Line;
use crate::options::Options;
use crate::request;
use crate::response::broken;
use bench_kit::endpoint::Endpoint;
use bench_kit::process::Subject;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);

/// Sessions that are opened before the first look, so that what a server needs but once is there.
const BEFORE: u32 = 200;

/// Bytes for each session, by contestant.
pub(crate) fn measure(contestants: &[&Contestant], options: &Options) -> io::Result<Vec<f64>> {
    contestants.iter().map(|contestant| of(contestant, options.sessions())).collect()
}

fn of(contestant: &Contestant, sessions: u32) -> io::Result<f64> {
    let server = contestant.start(PATIENCE)?;
    let watch = server.subject.watch();
    let grown = watch.end("its sessions", growth(&server, sessions))?;
    server.end()?;
    Ok(grown as f64 / f64::from(sessions))
}

fn growth(server: &Endpoint, sessions: u32) -> io::Result<u64> {
    let mut line = Line::connect(server.address)?;
    let mut streams = Vec::new();
    let mut open = |count: u32| -> io::Result<u64> {
        for _ in 0..count {
            streams.push(session(server.address, &mut line)?);
        }
        settled(&server.subject)?;
        resident(&server.subject)
    };
    let before = open(BEFORE)?;
    Ok(open(sessions)?.saturating_sub(before))
}

/// Opens a session over `line`, and its stream over a connection of its own.
fn session(to: SocketAddr, line: &mut Line) -> io::Result<TcpStream> {
    let response = line.ask(&request::initialize(to))?;
    let session = response.session.ok_or_else(|| broken("initialize opened no session"))?;
    let accepted = line.ask(&request::initialized(to, &session))?;
    if accepted.status != 202 {
        return Err(broken(format!("the end of the handshake was answered with status {}", accepted.status)));
    }
    Line::connect(to)?.open(&request::listen(to, &session))
}

/// Waits until the server does nothing more.
fn settled(server: &Subject) -> io::Result<()> {
    let mut before = server.cpu_time()?;
    loop {
        std::thread::sleep(Duration::from_millis(50));
        let now = server.cpu_time()?;
        if now.saturating_sub(before) < Duration::from_millis(2) {
            return Ok(());
        }
        before = now;
    }
}

/// Bytes of the process that are in memory.
fn resident(server: &Subject) -> io::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kilobytes.map(|kilobytes| kilobytes * 1024).ok_or_else(|| broken("no VmRSS in the status of the process"))
}
