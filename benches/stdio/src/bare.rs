//! The limit: a server that does nothing but move lines.
//!
//! It never looks at the method (the first request is taken for the opening of the connection, whatever it says) and
//! never starts a thread; `bench_kit::bare` has the rest of what it does not do.

use bench_kit::bare::{Answers, CAPACITY, serve_lines};
use bench_kit::era::Era;
use clap::Parser;
use std::fs::File;
use std::io::{self, BufWriter};
use std::os::fd::AsFd;

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
}

fn main() -> io::Result<()> {
    let options = Options::parse();
    // Past std's own buffers: theirs is flushed at each newline.
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let answers = Answers::new(options.era, &options.text.repeat(options.times));
    serve_lines(input, BufWriter::with_capacity(CAPACITY, output), answers, options.unbatched)
}
