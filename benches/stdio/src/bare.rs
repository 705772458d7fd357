//! The limits: a server that does nothing but move lines, and one on tokio that only reads the id.
//!
//! It never looks at the method (the first request is taken for the opening of the connection, whatever it says) and
//! never starts a thread; `bench_kit::bare` has the rest of what it does not do.

use bench_kit::bare::{self, Answers, CAPACITY, serve_lines};
use bench_kit::era::Era;
use clap::Parser;
use serde_json::Value;
use std::fs::File;
use std::io::{self, BufWriter};
use std::os::fd::AsFd;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;

#[derive(Parser)]
struct Options {
    /// The revision whose form the answers have.
    #[arg(long, default_value = "2025")]
    era: Era,
    /// The text that every call is answered with.
    #[arg(long, default_value = "")]
    text: String,
    /// How often that text is repeated.
    #[arg(long, default_value_t = 1)]
    times: usize,
    /// Writes each answer by itself, as a server does that has no outbox.
    #[arg(long)]
    unbatched: bool,
    /// Reads and writes on a tokio runtime with one thread.
    #[arg(long, conflicts_with = "unbatched")]
    tokio: bool,
}

fn main() -> io::Result<()> {
    let options = Options::parse();
    let text = options.text.repeat(options.times);
    if options.tokio {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        return runtime.block_on(serve_on_tokio(options.era, text));
    }
    let answers = Answers::new(options.era, &text);
    // Past std's own buffers: theirs is flushed at each newline.
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    serve_lines(input, BufWriter::with_capacity(CAPACITY, output), answers, options.unbatched)
}

/// A plain server on tokio: it reads a line, parses all of it as JSON, takes its id, and writes the answer.
async fn serve_on_tokio(era: Era, text: String) -> io::Result<()> {
    let input = pipe::Receiver::from_owned_fd(io::stdin().as_fd().try_clone_to_owned()?)?;
    let mut output = pipe::Sender::from_owned_fd(io::stdout().as_fd().try_clone_to_owned()?)?;
    let mut lines = tokio::io::BufReader::new(input).lines();
    let (opening, call) = (bare::opening(era), bare::result(era, &text));
    let mut result = opening;
    while let Some(line) = lines.next_line().await? {
        let message: Value = serde_json::from_str(&line)?;
        let Some(id) = message.get("id") else { continue };
        let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n");
        output.write_all(answer.as_bytes()).await?;
        result = &call;
    }
    Ok(())
}
