//! What the measured clients have in common: how the bench tells them whom to call and how often, and the calls that they
//! keep in flight.
//!
//! A client program is told on its command line where the server is. Then it reads orders from its standard input, a line
//! each, and answers each with a line that says how many calls it made. It ends with its input.

use bench_kit::era::Era;
use clap::{Args, Parser};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The tool that is called.
pub const TOOL: &str = "echo";
/// What it is given, and has to say back.
pub const TEXT: &str = "The quick brown fox jumps over the lazy dog";

/// Why a client could not go on.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Whom to call, and how.
#[derive(Parser)]
pub struct Options<More: Args> {
    /// The revision to speak.
    #[arg(long)]
    pub era: Era,
    /// The URL of the server; otherwise it is a command.
    #[arg(long)]
    pub url: Option<String>,
    /// What only this client can be told.
    #[command(flatten)]
    pub more: More,
    /// The server's program and its arguments.
    #[arg(trailing_var_arg = true)]
    pub server: Vec<OsString>,
}

/// A connected client.
pub trait Calls: Send + Sync + 'static {
    /// Calls the tool once, and fails unless the answer is right.
    fn call(&self) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// How many calls are in flight, and when it is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// How many tasks there are, each with one call at a time.
    pub window: u64,
    /// When to stop asking.
    pub until: Until,
}

/// When to stop asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// After that time.
    Elapsed(Duration),
    /// After so many answers.
    Answered(u64),
}

impl Order {
    /// As a line.
    pub fn line(self) -> String {
        let mut line = format!("{} ", self.window);
        let _ = match self.until {
            Until::Elapsed(time) => writeln!(line, "microseconds {}", time.as_micros()),
            Until::Answered(count) => writeln!(line, "calls {count}"),
        };
        line
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let window = words.next()?.parse().ok()?;
        let (unit, number) = (words.next()?, words.next()?.parse().ok()?);
        let until = match unit {
            "microseconds" => Until::Elapsed(Duration::from_micros(number)),
            "calls" => Until::Answered(number),
            _ => return None,
        };
        Some(Self { window, until })
    }
}

/// The whole life of a client program: connects, follows orders until there are no more, and closes.
///
/// The runtime is the one that `#[tokio::main]` gives.
pub fn run<C: Calls, More: Args>(
    connect: impl AsyncFnOnce(Options<More>) -> Result<C, Failure>,
    close: impl AsyncFnOnce(C) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let options = Options::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let client = Arc::new(runtime.block_on(connect(options))?);
    say("connected")?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let order = Order::parse(&line).ok_or_else(|| format!("no order: {line:?}"))?;
        let calls = runtime.block_on(follow(&client, order))?;
        say(&calls.to_string())?;
    }
    let client = Arc::into_inner(client).ok_or("a task has outlived its order")?;
    runtime.block_on(close(client))
}

fn say(line: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()
}

/// Keeps the window full until it is enough, and says how many calls were answered.
async fn follow<C: Calls>(client: &Arc<C>, order: Order) -> Result<u64, Failure> {
    let began = Instant::now();
    let begun = Arc::new(AtomicU64::new(0));
    let one_after_the_other = |client: Arc<C>, begun: Arc<AtomicU64>| async move {
        let mut answered: u64 = 0;
        loop {
            let enough = match order.until {
                Until::Elapsed(time) => began.elapsed() >= time,
                Until::Answered(count) => begun.fetch_add(1, Ordering::Relaxed) >= count,
            };
            if enough {
                return Ok::<u64, Failure>(answered);
            }
            client.call().await?;
            answered += 1;
        }
    };
    let tasks: Vec<_> =
        (0..order.window).map(|_| tokio::spawn(one_after_the_other(Arc::clone(client), Arc::clone(&begun)))).collect();
    let mut answered = 0;
    for task in tasks {
        answered += task.await??;
    }
    Ok(answered)
}

/// Whether the answer to a call is right.
pub fn check(text: Option<&str>) -> Result<(), Failure> {
    if text == Some(TEXT) { Ok(()) } else { Err(format!("{TOOL} was answered with {text:?}").into()) }
}

#[cfg(test)]
mod tests {
    use super::{Order, Until};
    use std::time::Duration;

    #[test]
    fn an_order_is_read_as_it_was_written() {
        for until in [Until::Elapsed(Duration::from_millis(30)), Until::Answered(2560)] {
            let order = Order { window: 64, until };
            assert_eq!(Order::parse(&order.line()), Some(order));
        }
    }
}
