//! One server as a child process: opened, driven, its CPU time read, ended.
//!
//! The driver is one thread that never blocks on a write: all requests of a window fit into a pipe, so it reads what
//! there is, and answers that with one write: as many requests as answers came in.

use crate::inbox::Inbox;
use crate::workload::{self, Call, Tool};
use bench_kit::era::Era;
use bench_kit::process::Subject;
use bench_kit::rates::Taken;
use serde_json::Value;
use std::io::{self, Write};
use std::process::{ChildStdin, ChildStdout, Command};
use std::time::{Duration, Instant};

/// A server that was opened and is ready for calls.
pub(crate) struct Server {
    subject: Subject,
    input: ChildStdin,
    output: ChildStdout,
    inbox: Inbox,
    call: Call,
    tool: Tool,
    next_id: u64,
    outgoing: Vec<u8>,
}

/// When to stop asking.
#[derive(Clone, Copy)]
pub(crate) enum Until {
    Elapsed(Duration),
    Answered(u64),
}

impl Server {
    /// Starts the command and opens the connection. `patience` bounds each step from here on.
    pub(crate) fn open(
        name: &str,
        command: &mut Command,
        era: Era,
        tool: Tool,
        patience: Duration,
    ) -> io::Result<Self> {
        let (subject, input, output) = Subject::start(name, command, patience)?;
        let mut server = Self {
            subject,
            input,
            output,
            inbox: Inbox::new(),
            call: Call::new(era, tool),
            tool,
            next_id: 1,
            outgoing: Vec::new(),
        };
        server.watched(|server| server.handshake(era))?;
        Ok(server)
    }

    /// Keeps `window` calls in flight until it is enough, then waits for the answers that are still due.
    pub(crate) fn drive(&mut self, window: u64, until: Until) -> io::Result<Taken> {
        let Self { subject, input, output, inbox, call, tool, next_id, outgoing } = self;
        let mut exchange = Exchange { input, output, inbox, call, tool: *tool, next_id, outgoing };
        let watch = subject.watch();
        let taken = subject.measure(|| exchange.run(window, until));
        watch.end(tool.name(), taken)
    }

    /// The process.
    pub(crate) fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Sends so many calls of a tool that answers much later, and returns their ids.
    pub(crate) fn send_slow_calls(&mut self, count: u64) -> io::Result<std::ops::Range<u64>> {
        let first = self.next_id;
        self.next_id += count;
        let ids = first..self.next_id;
        self.send_lines(ids.clone(), workload::slow_call)?;
        Ok(ids)
    }

    /// Cancels calls.
    pub(crate) fn cancel(&mut self, ids: std::ops::Range<u64>) -> io::Result<()> {
        self.send_lines(ids, workload::cancellation)
    }

    fn send_lines(&mut self, ids: std::ops::Range<u64>, line: fn(u64) -> String) -> io::Result<()> {
        self.watched(|server| {
            for id in ids {
                server.input.write_all(line(id).as_bytes())?;
            }
            Ok(())
        })
    }

    /// Closes the server's input and waits for its end.
    pub(crate) fn end(self) -> io::Result<()> {
        drop(self.input);
        // Its output is not closed before the process ends: a server may be writing still.
        let ended = self.subject.wait();
        drop(self.output);
        ended
    }

    fn handshake(&mut self, era: Era) -> io::Result<()> {
        self.input.write_all(workload::opening(era).as_bytes())?;
        let line = self.inbox.line(&mut self.output)?;
        let answer: Value = serde_json::from_slice(&line)?;
        if answer.get("id") != Some(&Value::from(0)) || answer.get("result").is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("the opening was refused: {answer}")));
        }
        self.input.write_all(workload::opened(era).as_bytes())
    }

    /// Runs a step under the watchdog, and says whose failure it was.
    fn watched<T>(&mut self, step: impl FnOnce(&mut Self) -> io::Result<T>) -> io::Result<T> {
        let watch = self.subject.watch();
        let outcome = step(self);
        watch.end(self.tool.name(), outcome)
    }
}

/// The calls and answers of one drive.
struct Exchange<'a> {
    input: &'a mut ChildStdin,
    output: &'a mut ChildStdout,
    inbox: &'a mut Inbox,
    call: &'a Call,
    tool: Tool,
    next_id: &'a mut u64,
    outgoing: &'a mut Vec<u8>,
}

impl Exchange<'_> {
    /// How many calls were answered and, with one at a time, how long each took.
    fn run(&mut self, window: u64, until: Until) -> io::Result<(u64, Vec<Duration>)> {
        let began = Instant::now();
        let mut times = Vec::new();
        let first = *self.next_id;
        let mut in_flight = 0;
        let mut id_sum: u64 = 0;
        loop {
            let sent = *self.next_id - first;
            let room = window - in_flight;
            let wanted = match until {
                Until::Elapsed(time) if began.elapsed() >= time => 0,
                Until::Elapsed(_) => room,
                Until::Answered(count) => room.min(count.saturating_sub(sent)),
            };
            self.outgoing.clear();
            for _ in 0..wanted {
                self.call.write_under(*self.next_id, self.outgoing);
                id_sum = id_sum.wrapping_add(*self.next_id);
                *self.next_id += 1;
            }
            in_flight += wanted;
            if in_flight == 0 {
                break;
            }
            let asked = Instant::now();
            self.input.write_all(self.outgoing)?;
            let arrived = loop {
                let arrived = self.inbox.answers(self.output, self.tool)?;
                // With one call in flight there is nothing to do before its answer is whole.
                if window > 1 || arrived.answers > 0 {
                    break arrived;
                }
            };
            if window == 1 {
                times.push(asked.elapsed());
            }
            id_sum = id_sum.wrapping_sub(arrived.id_sum);
            in_flight = in_flight
                .checked_sub(arrived.answers)
                .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "more answers than requests"))?;
        }
        if id_sum == 0 {
            Ok((*self.next_id - first, times))
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidData, "some request was answered twice and another not at all"))
        }
    }
}
