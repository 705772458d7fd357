//! One client as a child process: connected, driven, its CPU time read, ended.

use bench_client::Order;
use bench_kit::process::Subject;
use bench_kit::rates::Taken;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command};
use std::time::Duration;

/// A client that is connected and waits for orders.
pub(crate) struct Client {
    subject: Subject,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Client {
    /// Starts the command and waits until it is connected. `patience` bounds each step from here on.
    pub(crate) fn connect(name: &str, command: &mut Command, patience: Duration) -> io::Result<Self> {
        // The way is over loopback, whatever is usual here.
        for proxy in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
            command.env_remove(proxy);
        }
        let (subject, input, output) = Subject::start(name, command, patience)?;
        let mut client = Self { subject, input, output: BufReader::new(output) };
        let watch = client.subject.watch();
        watch.end("its start", read_line(&mut client.output))?;
        Ok(client)
    }

    /// Has it make calls. The CPU time is its own: a server that it started is not in it.
    pub(crate) fn drive(&mut self, order: Order) -> io::Result<Taken> {
        let Self { subject, input, output } = self;
        let watch = subject.watch();
        let taken = subject.measure(|| Ok((follow(input, output, order)?, Vec::new())));
        watch.end("its calls", taken)
    }

    /// Closes its input and waits for its end.
    pub(crate) fn end(self) -> io::Result<()> {
        drop(self.input);
        self.subject.wait()
    }
}

/// Gives the order, and returns how many calls were answered.
fn follow(input: &mut ChildStdin, output: &mut BufReader<ChildStdout>, order: Order) -> io::Result<u64> {
    input.write_all(order.line().as_bytes())?;
    let line = read_line(output)?;
    match line.trim().parse() {
        Ok(requests) if requests > 0 => Ok(requests),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, format!("no calls, but {line:?}"))),
    }
}

fn read_line(output: &mut BufReader<ChildStdout>) -> io::Result<String> {
    let mut line = String::new();
    if output.read_line(&mut line)? == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it has ended"));
    }
    Ok(line)
}
