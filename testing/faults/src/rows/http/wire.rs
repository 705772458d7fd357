//! HTTP/1.1 by hand: a request as arbitrary bytes, and the response, read as it comes.
//!
//! It is no well-behaved client: it writes exactly what the check wants, stops where the check wants, and never opens, closes or
//! repeats anything by itself.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use crate::failure::{Failure, Verdict, ensure, fail};
use crate::limits::CHECK_TIMEOUT;

/// A request, to be changed before it is written.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) method: &'static str,
    pub(super) target: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Request {
    pub(super) fn new(method: &'static str, host: &str) -> Self {
        let request = Self { method, target: "/mcp".to_owned(), headers: Vec::new(), body: Vec::new() };
        request.with("Host", host).with("Accept", "application/json, text/event-stream")
    }

    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    /// The same header with another value.
    pub(super) fn replacing(self, name: &str, value: &str) -> Self {
        self.without(name).with(name, value)
    }

    /// The head, with the length of the body unless a header says how long it is.
    pub(super) fn head(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        for (name, value) in &self.headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        let known =
            |(name, _): &(String, String)| ["content-length", "transfer-encoding"].contains(&&*name.to_lowercase());
        if self.method == "POST" && !self.headers.iter().any(known) {
            head.extend(["Content-Length: ", &self.body.len().to_string(), "\r\n"]);
        }
        head.push_str("\r\n");
        head.into_bytes()
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.head();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// The head of a response.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
}

impl Head {
    /// A header, by its name in small letters.
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    pub(super) fn is_events(&self) -> bool {
        self.header("content-type").starts_with("text/event-stream")
    }
}

/// One event of a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Event {
    pub(super) id: Option<String>,
    pub(super) data: Vec<u8>,
}

/// How the end of the body that is being read is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunked,
    Over,
}

/// One TCP connection.
pub(super) struct Wire {
    stream: TcpStream,
    /// Bytes that came and were not looked at.
    raw: Vec<u8>,
    /// Bytes of the body that were not taken.
    body: Vec<u8>,
    framing: Framing,
}

impl Wire {
    pub(super) fn connect(address: SocketAddr) -> Verdict<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(CHECK_TIMEOUT))?;
        stream.set_write_timeout(Some(CHECK_TIMEOUT))?;
        Ok(Self { stream, raw: Vec::new(), body: Vec::new(), framing: Framing::Over })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Verdict {
        Ok(self.stream.write_all(bytes)?)
    }

    /// Writes to a server that may have had enough of it: that it does not read all of it is not our failure.
    pub(super) fn write_regardless(&mut self, bytes: &[u8]) {
        // Refused bytes are what some checks are about; the answer, or the end, is judged and not this.
        let _ = self.stream.write_all(bytes);
    }

    pub(super) fn send(&mut self, request: &Request) -> Verdict {
        self.write(&request.bytes())
    }

    /// Closes one direction: nothing more is written. A server that was quicker has closed it already.
    pub(super) fn stop_writing(&self) -> Verdict {
        match self.stream.shutdown(Shutdown::Write) {
            Err(error) if error.kind() != ErrorKind::NotConnected => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Closes the connection so that the peer gets a reset and not an end.
    pub(super) fn reset(self) -> Verdict {
        rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO))?;
        Ok(())
    }

    /// The head of the next response.
    pub(super) fn head(&mut self) -> Verdict<Head> {
        self.maybe_head()?.ok_or_else(|| Failure("the connection was closed instead of an answer".to_owned()))
    }

    /// The head of the next response, or `None` if the server closes the connection instead.
    pub(super) fn maybe_head(&mut self) -> Verdict<Option<Head>> {
        self.body.clear();
        let end = loop {
            if let Some(end) = find(&self.raw, b"\r\n\r\n") {
                break end;
            }
            if !self.fill()? {
                ensure!(self.raw.is_empty(), "half a head: {}", String::from_utf8_lossy(&self.raw));
                return Ok(None);
            }
        };
        let text = String::from_utf8_lossy(&self.raw[..end]).into_owned();
        self.raw.drain(..end + 4);
        let mut lines = text.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|status| status.parse().ok());
        let Some(status) = status else { fail!("not a response: {text}") };
        let headers = lines.filter_map(|line| line.split_once(':'));
        let headers = headers.map(|(name, value)| (name.to_lowercase(), value.trim().to_owned())).collect();
        let head = Head { status, headers };
        self.framing = match head.header("content-length").parse() {
            Ok(length) => Framing::Length(length),
            Err(_) if head.header("transfer-encoding").eq_ignore_ascii_case("chunked") => Framing::Chunked,
            Err(_) => Framing::Over,
        };
        Ok(Some(head))
    }

    /// The rest of the body, once all of it is there.
    pub(super) fn body(&mut self) -> Verdict<Vec<u8>> {
        while self.more_body()? {}
        Ok(std::mem::take(&mut self.body))
    }

    /// The next event of the body, or `None` if it has ended.
    pub(super) fn event(&mut self) -> Verdict<Option<Event>> {
        loop {
            while let Some(end) = find(&self.body, b"\n\n") {
                let text: Vec<u8> = self.body.drain(..end + 2).collect();
                if let Some(event) = read_event(&text) {
                    return Ok(Some(event));
                }
            }
            if !self.more_body()? {
                ensure!(self.body.is_empty(), "half an event: {}", String::from_utf8_lossy(&self.body));
                return Ok(None);
            }
        }
    }

    /// Whether nothing comes within that time.
    pub(super) fn is_silent(&mut self, time: Duration) -> Verdict<bool> {
        if !self.raw.is_empty() || !self.body.is_empty() {
            return Ok(false);
        }
        self.stream.set_read_timeout(Some(time))?;
        let peeked = self.stream.peek(&mut [0]).map_err(|error| error.kind());
        let silent = matches!(peeked, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut));
        self.stream.set_read_timeout(Some(CHECK_TIMEOUT))?;
        Ok(silent)
    }

    /// Waits until the server closes the connection, whatever it says before.
    pub(super) fn closed(&mut self) -> Verdict {
        while self.fill()? {
            self.raw.clear();
        }
        Ok(())
    }

    /// Takes more of the body. False: it has ended.
    fn more_body(&mut self) -> Verdict<bool> {
        loop {
            match self.framing {
                Framing::Over | Framing::Length(0) => {
                    self.framing = Framing::Over;
                    return Ok(false);
                }
                Framing::Length(left) if !self.raw.is_empty() => {
                    let count = left.min(self.raw.len());
                    self.body.extend(self.raw.drain(..count));
                    self.framing = Framing::Length(left - count);
                    return Ok(true);
                }
                Framing::Chunked => {
                    if let Some(took) = self.take_chunk()? {
                        return Ok(took);
                    }
                }
                Framing::Length(_) => {}
            }
            ensure!(self.fill()?, "the connection was closed in the middle of a body");
        }
    }

    /// Takes a chunk that is there: whether it was not the last.
    fn take_chunk(&mut self) -> Verdict<Option<bool>> {
        let Some(line) = find(&self.raw, b"\r\n") else { return Ok(None) };
        let size = std::str::from_utf8(&self.raw[..line]).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
        let Some(size) = size else { fail!("not a chunk: {}", String::from_utf8_lossy(&self.raw)) };
        if self.raw.len() < line + 2 + size + 2 {
            return Ok(None);
        }
        self.body.extend_from_slice(&self.raw[line + 2..line + 2 + size]);
        self.raw.drain(..line + 2 + size + 2);
        if size == 0 {
            self.framing = Framing::Over;
        }
        Ok(Some(size > 0))
    }

    /// Reads what is there. False: the server has closed its end, in whatever way.
    fn fill(&mut self) -> Verdict<bool> {
        let start = self.raw.len();
        self.raw.resize(start + 64 * 1024, 0);
        let read = self.stream.read(&mut self.raw[start..]);
        self.raw.truncate(start + read.as_ref().map_or(0, |count| *count));
        match read {
            Ok(count) => Ok(count > 0),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(false),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                fail!("nothing came within {CHECK_TIMEOUT:?}")
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = wanted.first()?;
    let mut start = 0;
    // By its first byte: answers are megabytes, and tests are built without optimisation.
    while let Some(place) = bytes[start..].iter().position(|byte| byte == first) {
        if bytes[start + place..].starts_with(wanted) {
            return Some(start + place);
        }
        start += place + 1;
    }
    None
}

/// An event of its lines; `None` for a comment.
fn read_event(text: &[u8]) -> Option<Event> {
    let mut event = Event::default();
    let mut any = false;
    for line in text.split(|byte| *byte == b'\n') {
        if let Some(id) = line.strip_prefix(b"id: ") {
            event.id = Some(String::from_utf8_lossy(id).into_owned());
            any = true;
        } else if let Some(data) = line.strip_prefix(b"data: ").or_else(|| line.strip_prefix(b"data:")) {
            event.data.extend_from_slice(data);
            any = true;
        }
    }
    any.then_some(event)
}
