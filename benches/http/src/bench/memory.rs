//! What an open session with its GET stream takes: the growth of the server's resident memory, divided by their number.
//!
//! The kernel's share, the buffers of sockets, is not in it: it is the same for all.

use crate::contestants::Contestant;
use crate::line::Line;
use crate::options::Options;
use crate::request;
use bench_kit::endpoint::Endpoint;
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
        server.subject.settle()?;
        server.subject.resident_bytes()
    };
    let before = open(BEFORE)?;
    Ok(open(sessions)?.saturating_sub(before))
}

/// Opens a session over `line`, and its stream over a connection of its own.
fn session(to: SocketAddr, line: &mut Line) -> io::Result<TcpStream> {
    let session = line.open_session(to)?;
    Line::connect(to)?.open(&request::listen(to, &session))
}
