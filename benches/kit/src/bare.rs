//! A server that does nothing but move messages.
//!
//! It finds a request's id and answers with fixed bytes under that id. It never parses JSON, so no server that reads its
//! input can take less. It trusts whoever asks to write `"id":` before any other member of that name.

use crate::era::Era;
use memchr::memmem::Finder;
use std::io::{self, Read, Write};

/// Also the size of a pipe, so a read takes what there is and answers larger than half of it are not copied.
pub const CAPACITY: usize = 1 << 16;

/// Answers lines until they end. The first request is taken for the opening of the connection, whatever it says. All
/// answers that one read allows go out together, unless `unbatched`.
pub fn serve_lines(
    mut input: impl Read,
    mut output: impl Write,
    mut answers: Answers,
    unbatched: bool,
) -> io::Result<()> {
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
            let answer = if opened { answers.to_call(line) } else { answers.to_opening(line) };
            let Some(answer) = answer else {
                continue;
            };
            opened = true;
            output.write_all(answer)?;
            if unbatched {
                output.flush()?;
            }
        }
        output.flush()?;
        buffer.copy_within(start..filled, 0);
        held = filled - start;
    }
}

/// The two answers that there are, each a line.
#[derive(Clone)]
pub struct Answers {
    id: Finder<'static>,
    opening: Answer,
    call: Answer,
}

impl Answers {
    /// In the form of that era. `text` needs no escaping.
    pub fn new(era: Era, text: &str) -> Self {
        Self { id: Finder::new("\"id\":"), opening: Answer::new(opening(era)), call: Answer::new(&result(era, text)) }
    }

    /// What the request that opens a connection is answered with; nothing, if it is no request.
    pub fn to_opening(&mut self, message: &[u8]) -> Option<&[u8]> {
        let id = id_of(&self.id, message)?;
        Some(self.opening.under(id))
    }

    /// What a call is answered with; nothing, if it is no request.
    pub fn to_call(&mut self, message: &[u8]) -> Option<&[u8]> {
        let id = id_of(&self.id, message)?;
        Some(self.call.under(id))
    }
}

fn id_of<'a>(finder: &Finder<'_>, message: &'a [u8]) -> Option<&'a [u8]> {
    let rest = &message[finder.find(message)? + finder.needle().len()..];
    let end = memchr::memchr2(b',', b'}', rest)?;
    Some(&rest[..end])
}

/// An answer kept ready, with room in front of it for the head and the id: one contiguous write, and no copy of a
/// large result.
#[derive(Clone)]
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

/// The result of the request that opens a connection.
pub const fn opening(era: Era) -> &'static str {
    match era {
        Era::Initialize => {
            r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bare","version":"0"}}"#
        }
        Era::Stateless => {
            r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"bare","version":"0"}}}"#
        }
    }
}

/// The result of a call. `text` needs no escaping.
pub fn result(era: Era, text: &str) -> String {
    match era {
        Era::Initialize => format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#),
        Era::Stateless => format!(
            r#"{{"resultType":"complete","content":[{{"type":"text","text":"{text}"}}],"_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"bare","version":"0"}}}}}}"#
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{Answers, serve_lines};
    use crate::era::Era;
    use serde_json::Value;

    #[test]
    fn requests_are_answered_under_their_ids_and_notifications_are_not() {
        let input = b"{\"id\":0,\"method\":\"initialize\"}\n{\"method\":\"notifications/initialized\"}\n{\"id\":\"a\",\"method\":\"tools/call\"}\n";
        let mut output = Vec::new();
        let served = serve_lines(&input[..], &mut output, Answers::new(Era::Initialize, "hello"), false);
        let lines = output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let answers: Vec<Value> = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
        let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
        assert!(served.is_ok());
        assert_eq!(ids, [&Value::from(0), &Value::from("a")]);
        assert_eq!(answers[1]["result"]["content"][0]["text"], "hello");
    }
}
