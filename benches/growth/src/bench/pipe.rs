//! A connection of revision 2025-11-25 to a server on pipes.

use bench_kit::misbehaved;
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};

/// All that a pipe of the usual size holds.
const PIPE_BYTES: usize = 1 << 16;

/// An open connection.
pub(crate) struct Pipe {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next_id: u64,
    request: Vec<u8>,
    answer: Vec<u8>,
}

/// A `tools/call` that is made again and again, each time under another id.
pub(crate) struct Call {
    /// What follows the id.
    tail: String,
    /// The text of the right answer.
    text: String,
}

impl Call {
    /// A call of `echo`, or of another tool that says its text back.
    pub(crate) fn echo(tool: &str, text: &str) -> Self {
        Self::new(tool, &json!({"text": text}), text)
    }

    pub(crate) fn new(tool: &str, arguments: &Value, text: &str) -> Self {
        let params = json!({"name": tool, "arguments": arguments});
        Self { tail: format!(",\"method\":\"tools/call\",\"params\":{params}}}\n"), text: text.to_owned() }
    }
}

impl Pipe {
    /// Does the handshake.
    pub(crate) fn open(input: ChildStdin, output: ChildStdout) -> io::Result<Self> {
        let output = BufReader::with_capacity(PIPE_BYTES, output);
        let mut pipe = Self { input, output, next_id: 1, request: Vec::new(), answer: Vec::new() };
        let opening = json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "bench", "version": "0"},
            },
        });
        pipe.input.write_all(format!("{opening}\n").as_bytes())?;
        let answer = pipe.receive()?;
        if answer["id"] != 0 || answer.get("result").is_none() {
            return Err(misbehaved(format!("initialize was answered with {answer}")));
        }
        pipe.input.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")?;
        Ok(pipe)
    }

    /// Sends a call that many times, and does not wait for the answers.
    pub(crate) fn send(&mut self, call: &Call, times: usize) -> io::Result<()> {
        self.request.clear();
        for id in (self.next_id..).take(times) {
            write!(self.request, "{{\"jsonrpc\":\"2.0\",\"id\":{id}{}", call.tail)?;
            self.next_id = id + 1;
        }
        self.input.write_all(&self.request)
    }

    /// Makes one call and waits for its answer, which has to be the next message.
    pub(crate) fn call(&mut self, call: &Call) -> io::Result<()> {
        let id = self.next_id;
        self.send(call, 1)?;
        let answer = self.receive()?;
        if answer["id"] == id && answer["result"]["content"][0]["text"] == call.text.as_str() {
            return Ok(());
        }
        let shown: String = answer.to_string().chars().take(300).collect();
        Err(misbehaved(format!("the next message after request {id} is {shown}")))
    }

    fn receive(&mut self) -> io::Result<Value> {
        self.answer.clear();
        if self.output.read_until(b'\n', &mut self.answer)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed its output"));
        }
        Ok(serde_json::from_slice(&self.answer)?)
    }
}
