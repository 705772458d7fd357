//! Responses of HTTP/1.1 out of the bytes that arrive: as much of HTTP as the servers here speak.

use crate::misbehaved;
use memchr::memmem;
use serde_json::Value;
use std::io;

/// Bytes that arrived and were not yet taken.
#[derive(Default)]
pub struct Inbox {
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// A whole response.
pub struct Response {
    /// Its status code.
    pub status: u16,
    /// Without the framing of its transfer coding.
    pub body: Vec<u8>,
    /// The session that it opens.
    pub session: Option<String>,
    /// Whether its body is a stream of events.
    pub events: bool,
}

/// The head of a response.
pub struct Head {
    /// The status code.
    pub status: u16,
    length: Length,
    session: Option<String>,
    /// Whether the body is a stream of events.
    pub events: bool,
    /// Of the head itself, with the empty line.
    bytes: usize,
}

enum Length {
    Known(usize),
    Chunked,
}

impl Response {
    /// The message in it, or the last one of its events.
    pub fn message(&self) -> Option<Value> {
        if !self.events {
            return serde_json::from_slice(&self.body).ok();
        }
        let text = std::str::from_utf8(&self.body).ok()?;
        let mut data = text.lines().filter_map(|line| line.strip_prefix("data:"));
        serde_json::from_str(data.next_back()?.trim()).ok()
    }

    /// The status and the beginning of the body, for an error message.
    pub fn shown(&self) -> String {
        let body: String = String::from_utf8_lossy(&self.body).chars().take(300).collect();
        format!("status {} and {body:?}", self.status)
    }
}

impl Inbox {
    /// Takes in what one read gives. The end of the stream is an error.
    pub fn fill(&mut self, from: &mut impl io::Read) -> io::Result<()> {
        let mut piece = [0; 16 * 1024];
        let read = from.read(&mut piece)?;
        if read == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"));
        }
        self.bytes.extend_from_slice(&piece[..read]);
        Ok(())
    }

    /// The response that is there whole, if one is.
    pub fn take(&mut self) -> io::Result<Option<Response>> {
        let Some(head) = self.head()? else { return Ok(None) };
        let rest = &self.bytes[head.bytes..];
        let (body, taken) = match head.length {
            Length::Known(length) if rest.len() < length => return Ok(None),
            Length::Known(length) => (rest[..length].to_vec(), length),
            Length::Chunked => match unchunk(rest)? {
                Some(unchunked) => unchunked,
                None => return Ok(None),
            },
        };
        self.bytes.drain(..head.bytes + taken);
        Ok(Some(Response { status: head.status, body, session: head.session, events: head.events }))
    }

    /// The head of the next response, if it is there whole.
    pub fn head(&self) -> io::Result<Option<Head>> {
        let Some(end) = memmem::find(&self.bytes, b"\r\n\r\n") else { return Ok(None) };
        let text = std::str::from_utf8(&self.bytes[..end]).map_err(|_| misbehaved("a head that is not text"))?;
        let mut lines = text.split("\r\n");
        let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok());
        let status = status.ok_or_else(|| misbehaved("no status line"))?;
        let mut head = Head { status, length: Length::Known(0), session: None, events: false, bytes: end + 4 };
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            if name.eq_ignore_ascii_case("content-length") {
                head.length = Length::Known(value.parse().map_err(|_| misbehaved("no content length"))?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                head.length = Length::Chunked;
            } else if name.eq_ignore_ascii_case("mcp-session-id") {
                head.session = Some(value.to_owned());
            } else if name.eq_ignore_ascii_case("content-type") {
                head.events = value.starts_with("text/event-stream");
            }
        }
        Ok(Some(head))
    }
}

/// The content of chunks and how many bytes they took, if the last one is there.
fn unchunk(mut rest: &[u8]) -> io::Result<Option<(Vec<u8>, usize)>> {
    let whole = rest.len();
    let mut body = Vec::new();
    loop {
        let Some(line) = memmem::find(rest, b"\r\n") else { return Ok(None) };
        let size = std::str::from_utf8(&rest[..line]).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
        let size = size.ok_or_else(|| misbehaved("no size of a chunk"))?;
        let Some(chunk) = rest.get(line + 2..line + 4 + size) else { return Ok(None) };
        body.extend_from_slice(&chunk[..size]);
        rest = &rest[line + 4 + size..];
        if size == 0 {
            return Ok(Some((body, whole - rest.len())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Inbox;

    #[test]
    fn responses_are_taken_whole_and_one_after_the_other() {
        let mut inbox = Inbox::default();
        let wire = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nabHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\ncd\r\n1\r\ne\r\n0\r\n\r\n";
        let mut bodies = Vec::new();
        for byte in wire {
            inbox.bytes.push(*byte);
            bodies.extend(inbox.take().ok().flatten().map(|response| response.body));
        }
        assert_eq!(bodies, [b"ab".to_vec(), b"cde".to_vec()]);
    }
}
