//! Whether events wait for acknowledgements.
//!
//! A server that writes a second small piece while the first is not acknowledged, without TCP_NODELAY, waits for the
//! client's delayed acknowledgement: some 40 ms for each call that streams. Two tools take equally long, but one reports
//! before it answers. Without a stall the two calls take about as long.

use crate::contestants::Contestant;
use crate::line::Line;
use crate::options::Options;
use crate::request::{Call, FIRST_ID, Tool};
use bench_kit::endpoint::Endpoint;
use bench_kit::figures::Spread;
use bench_kit::http::Response;
use bench_kit::misbehaved;
use std::io;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// How calls that stream compare with those that do not.
#[derive(Clone, Copy, serde::Serialize)]
pub(crate) struct Streaming {
    /// The time of a call that streams, divided by that of the call before it, which does not.
    pub(crate) ratio: Spread,
    /// Reads that the client needed for such a response, which has a head, two events and an end.
    pub(crate) reads: f64,
}

/// By contestant.
pub(crate) fn measure(contestants: &[&Contestant], options: &Options) -> io::Result<Vec<Streaming>> {
    contestants.iter().map(|contestant| of(contestant, options.streamed_calls())).collect()
}

fn of(contestant: &Contestant, calls: usize) -> io::Result<Streaming> {
    let server = contestant.start(PATIENCE)?;
    let watch = server.subject.watch();
    let streaming = watch.end("calls that stream", compare(&server, calls))?;
    server.end()?;
    Ok(streaming)
}

fn compare(server: &Endpoint, calls: usize) -> io::Result<Streaming> {
    let mut line = Line::connect(server.address)?;
    line.check(server.address, Tool::Wait)?;
    line.check(server.address, Tool::Report)?;
    let mut plain = Call::new(server.address, Tool::Wait);
    let mut streamed = Call::new(server.address, Tool::Report);
    let mut ratios = Vec::new();
    let mut reads = Vec::new();
    for id in (FIRST_ID..).take(calls) {
        let (response, without) = timed(&mut line, plain.under(id))?;
        if response.events {
            return Err(misbehaved("a call that says nothing before its answer was answered with a stream"));
        }
        let (response, with) = timed(&mut line, streamed.under(id))?;
        let events = memchr::memmem::find_iter(&response.body, b"data:").count();
        if !response.events || events < 2 {
            return Err(misbehaved(format!("a stream of {events} events")));
        }
        ratios.push(with.as_secs_f64() / without.as_secs_f64());
        reads.push(line.reads as f64);
    }
    Ok(Streaming { ratio: Spread::of(ratios), reads: Spread::of(reads).median })
}

fn timed(line: &mut Line, request: &[u8]) -> io::Result<(Response, Duration)> {
    let began = Instant::now();
    let response = line.ask(request)?;
    Ok((response, began.elapsed()))
}
