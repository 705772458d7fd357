//! HTTP/2 by hand, as much of it as it takes to have many requests open on one connection: frames are written as they are, and
//! of the responses only the frames that keep the connection alive are read.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::wire::Request;
use crate::failure::{Verdict, ensure};
use crate::limits::CHECK_TIMEOUT;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;
/// The error code for a stream that is no longer needed (CANCEL).
const CANCEL: u32 = 8;

/// One connection of HTTP/2.
pub(super) struct Frames {
    stream: TcpStream,
    raw: Vec<u8>,
    /// The next stream of ours: odd numbers.
    next: u32,
    pongs: usize,
}

impl Frames {
    pub(super) fn connect(address: SocketAddr) -> Verdict<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_millis(20)))?;
        stream.set_write_timeout(Some(CHECK_TIMEOUT))?;
        let mut frames = Self { stream, raw: Vec::new(), next: 1, pongs: 0 };
        frames.stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")?;
        frames.write(SETTINGS, 0, 0, &[])?;
        Ok(frames)
    }

    /// Begins a request, and gives its stream.
    pub(super) fn send(&mut self, request: &Request) -> Verdict<u32> {
        let stream = self.next;
        self.next += 2;
        let mut head = Vec::new();
        let authority = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
        field(&mut head, ":method", request.method);
        field(&mut head, ":scheme", "http");
        field(&mut head, ":path", &request.target);
        field(&mut head, ":authority", authority.map_or("", |(_, value)| value));
        for (name, value) in request.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("host")) {
            field(&mut head, &name.to_lowercase(), value);
        }
        self.write(HEADERS, END_HEADERS, stream, &head)?;
        self.write(DATA, END_STREAM, stream, &request.body)?;
        Ok(stream)
    }

    /// Gives a request up.
    pub(super) fn cancel(&mut self, stream: u32) -> Verdict {
        self.write(RST_STREAM, 0, stream, &CANCEL.to_be_bytes())
    }

    /// There and back: everything that was written before is taken in.
    pub(super) fn ping(&mut self) -> Verdict {
        let before = self.pongs;
        self.write(PING, 0, 0, b"steadfas")?;
        let start = Instant::now();
        while self.pongs == before {
            ensure!(start.elapsed() < CHECK_TIMEOUT, "no answer to a ping within {CHECK_TIMEOUT:?}");
            self.read()?;
        }
        Ok(())
    }

    fn write(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Verdict {
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
        let mut frame = vec![length[1], length[2], length[3], kind, flags];
        frame.extend_from_slice(&stream.to_be_bytes());
        frame.extend_from_slice(payload);
        Ok(self.stream.write_all(&frame)?)
    }

    /// Reads what is there, and does what has to be done about it.
    fn read(&mut self) -> Verdict {
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(count) => {
                ensure!(count > 0, "the server closed the connection");
                self.raw.extend_from_slice(&buffer[..count]);
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error.into()),
        }
        while let Some(head) = self.raw.get(..9) {
            let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
            let (kind, flags) = (head[3], head[4]);
            let Some(payload) = self.raw.get(9..9 + length).map(<[u8]>::to_vec) else { break };
            self.raw.drain(..9 + length);
            match (kind, flags & ACK) {
                (SETTINGS, 0) => self.write(SETTINGS, ACK, 0, &[])?,
                (PING, 0) => self.write(PING, ACK, 0, &payload)?,
                (PING, _) => self.pongs += 1,
                _ => {}
            }
        }
        Ok(())
    }
}

/// A header as it is, in no table.
fn field(head: &mut Vec<u8>, name: &str, value: &str) {
    head.push(0);
    for text in [name, value] {
        // Seven bits for the length; what is longer goes on in the next bytes, seven bits each.
        let mut length = text.len();
        if length < 127 {
            head.extend(u8::try_from(length));
        } else {
            head.push(127);
            length -= 127;
            while length >= 128 {
                head.extend(u8::try_from(length % 128 + 128));
                length /= 128;
            }
            head.extend(u8::try_from(length));
        }
        head.extend_from_slice(text.as_bytes());
    }
}
