//! Responses of HTTP/1.1 out of the bytes that arrive: as much of HTTP as the servers here speak.

use memchr::memmem;
use std::io;

/// Bytes that arrived and were not yet taken.
#[derive(Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
}

/// A whole response.
pub(crate) struct Response {
    pub(crate) status: u16,
    /// Without the framing of its transfer coding.
    pub(crate) body: Vec<u8>,
    pub(crate) session: Option<String>,
    /// Whether its body is a stream of events.
    pub(crate) events: bool,
}

/// The head of a response.
pub(crate) struct Head {
    pub(crate) status: u16,
    length: Length,
    session: Option<String>,
    pub(crate) events: bool,
    /// Of the head itself, with the empty line.
    pub(crate) bytes: usize,
}

enum Length {
    Known(usize),
    Chunked,
}

impl Inbox {
    /// Takes in what one read gives; false at the end of the stream.
    pub(crate) fn fill(&mut self, from: &mut impl io::Read) -> io::Result<bool> {
        let mut piece = [0; 16 * 1024];
        let read = from.read(&mut piece)?;
        self.bytes.extend_from_slice(&piece[..read]);
        Ok(read > 0)
    }

    /// The response that is there whole, if one is.
    pub(crate) fn take(&mut self) -> io::Result<Option<Response>> {
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
    pub(crate) fn head(&self) -> io::Result<Option<Head>> {
        let Some(end) = memmem::find(&self.bytes, b"\r\n\r\n") else { return Ok(None) };
        let text = std::str::from_utf8(&self.bytes[..end]).map_err(|_| broken("a head that is not text"))?;
        let mut lines = text.split("\r\n");
        let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok());
        let status = status.ok_or_else(|| broken("no status line"))?;
        let mut head = Head { status, length: Length::Known(0), session: None, events: false, bytes: end + 4 };
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            if name.eq_ignore_ascii_case("content-length") {
                head.length = Length::Known(value.parse().map_err(|_| broken("no content length"))?);
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
        let size = size.ok_or_else(|| broken("no size of a chunk"))?;
        let Some(chunk) = rest.get(line + 2..line + 4 + size) else { return Ok(None) };
        body.extend_from_slice(&chunk[..size]);
        rest = &rest[line + 4 + size..];
        if size == 0 {
            return Ok(Some((body, whole - rest.len())));
        }
    }
}

pub(crate) fn broken(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
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
