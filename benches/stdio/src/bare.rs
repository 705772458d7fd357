//! The limit: a server that does nothing but move lines.
//!
//! It finds a request's id and answers with fixed bytes under that id. It never parses JSON, never looks at the method
//! (the first request is taken for the opening of the connection, whatever it says) and never starts a thread, so no
//! server that reads its input can take less. It trusts the bench to write `"id":` before any other member of that name.

use clap::{Parser, ValueEnum};
use memchr::memmem::Finder;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
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

#[derive(Clone, Copy, ValueEnum)]
enum Era {
    #[value(name = "2025")]
    Initialize,
    #[value(name = "2026")]
    Stateless,
}

fn main() -> io::Result<()> {
    let options = Options::parse();
    // Past std's own buffers: theirs is flushed at each newline.
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    serve(input, BufWriter::with_capacity(CAPACITY, output), &options)
}

/// Also the size of a pipe, so a read takes what there is and answers larger than half of it are not copied.
const CAPACITY: usize = 1 << 16;

fn serve(mut input: impl Read, mut output: impl Write, options: &Options) -> io::Result<()> {
    let finder = Finder::new("\"id\":");
    let mut opening = Answer::new(options.era.opening());
    let mut answer = Answer::new(&options.era.result(&options.text.repeat(options.times)));
    let mut opened = false;

    let mut buffer = vec![0; CAPACITY];
    let mut held = 0;
    loop {
        if held == buffer.len() {
            buffer.resize(2 * held, 0);
        }
        let read = input.read(&mut buffer[held..])?;
        if read == 0 {
            return output.flush();
        }
        let filled = held + read;
        let mut start = 0;
        for newline in memchr::memchr_iter(b'\n', &buffer[..filled]) {
            let line = &buffer[start..newline];
            start = newline + 1;
            let Some(id) = id_of(&finder, line) else {
                continue;
            };
            let answer = if opened { &mut answer } else { &mut opening };
            opened = true;
            output.write_all(answer.under(id))?;
            if options.unbatched {
                output.flush()?;
            }
        }
        output.flush()?;
        buffer.copy_within(start..filled, 0);
        held = filled - start;
    }
}

fn id_of<'a>(finder: &Finder<'_>, line: &'a [u8]) -> Option<&'a [u8]> {
    let rest = &line[finder.find(line)? + finder.needle().len()..];
    let end = memchr::memchr2(b',', b'}', rest)?;
    Some(&rest[..end])
}

/// An answer kept ready, with room in front of it for the head and the id: one contiguous write, and no copy of a
/// large result.
struct Answer {
    bytes: Vec<u8>,
}

impl Answer {
    const HEAD: &'static [u8] = b"{\"jsonrpc\":\"2.0\",\"id\":";
    const ROOM: usize = Self::HEAD.len() + 64;

    fn new(result: &str) -> Self {
        let mut bytes = vec![0; Self::ROOM];
        bytes.extend_from_slice(b",\"result\":");
        bytes.extend_from_slice(result.as_bytes());
        bytes.extend_from_slice(b"}\n");
        Self { bytes }
    }

    fn under(&mut self, id: &[u8]) -> &[u8] {
        let id_start = Self::ROOM.saturating_sub(id.len());
        let start = id_start.saturating_sub(Self::HEAD.len());
        self.bytes[id_start..Self::ROOM].copy_from_slice(id);
        self.bytes[start..id_start].copy_from_slice(Self::HEAD);
        &self.bytes[start..]
    }
}

impl Era {
    const fn opening(self) -> &'static str {
        match self {
            Self::Initialize => {
                r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bare","version":"0"}}"#
            }
            Self::Stateless => {
                r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"bare","version":"0"}}}"#
            }
        }
    }

    /// `text` comes from the bench and needs no escaping.
    fn result(self, text: &str) -> String {
        match self {
            Self::Initialize => format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#),
            Self::Stateless => format!(
                r#"{{"resultType":"complete","content":[{{"type":"text","text":"{text}"}}],"_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"bare","version":"0"}}}}}}"#
            ),
        }
    }
}
