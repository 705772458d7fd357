//! The load: many connections that stay open, each with one call in flight.
//!
//! One thread waits for all of them and answers each response with the next call, so a server sees as much at once as it
//! lets pile up.

use crate::contestants::Contestant;
use crate::line::Line;
use crate::options::Options;
use crate::request::{BLOB_BYTES, Call, FIRST_ID, Tool};
use bench_kit::endpoint::Endpoint;
use bench_kit::misbehaved;
use bench_kit::rates::{Cell, Taken};
use memchr::memmem;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// When to stop asking.
#[derive(Clone, Copy)]
pub(crate) enum Until {
    Elapsed(Duration),
    Answered(u64),
}

/// A server hung if a step takes longer than this.
const PATIENCE: Duration = Duration::from_secs(20);

/// What is asked, over how many connections.
#[derive(Clone, Copy)]
pub(crate) struct LoadKind {
    pub(crate) tool: Tool,
    /// Whether each connection has a session of its own, or the calls are stateless.
    pub(crate) sessions: bool,
    pub(crate) connections: u16,
}

impl LoadKind {
    /// What it is called in a table.
    pub(crate) fn label(self) -> String {
        let form = if self.sessions { "session" } else { "stateless" };
        let plural = if self.connections == 1 { "" } else { "s" };
        format!("{form} {}, {} connection{plural}", self.tool.name(), self.connections)
    }

    /// Whether that server can take part.
    pub(crate) fn is_for(self, contestant: &Contestant) -> bool {
        contestant.kind.is_loaded() && (contestant.kind.has_sessions() || !self.sessions && self.tool == Tool::Add)
    }
}

/// Drives everyone in rounds, each in a new process: where a process happens to lie in memory is worth a tenth and more.
pub(crate) fn measure(contestants: &[&Contestant], kind: LoadKind, options: &Options) -> io::Result<Cell> {
    let slice = options.running.slice();
    Cell::measure(contestants.len(), options.running.rounds(), |turn| {
        let server = contestants[turn].start(PATIENCE + slice)?;
        let mut load = Load::connect(&server, kind)?;
        load.drive(&server, Until::Elapsed(slice / 3))?;
        let taken = load.drive(&server, Until::Elapsed(slice))?;
        drop(load);
        server.end()?;
        Ok(taken)
    })
}

/// Connections to one server.
pub(crate) struct Load {
    epoll: Epoll,
    connections: Vec<Connection>,
    tool: Tool,
    next_id: u64,
}

struct Connection {
    stream: TcpStream,
    call: Call,
    /// What arrived of the response that is due.
    arrived: Vec<u8>,
    /// The id of the call in flight.
    id: u64,
}

impl Load {
    /// Makes one call to see that the answer is right, then opens the connections.
    pub(crate) fn connect(server: &Endpoint, kind: LoadKind) -> io::Result<Self> {
        let (to, tool) = (server.address, kind.tool);
        let watch = server.subject.watch();
        let mut line = Line::connect(to)?;
        let call = |line: &mut Line| -> io::Result<Call> {
            if !kind.sessions {
                return Ok(Call::new(to, tool));
            }
            Ok(Call::in_session(to, tool, &line.open_session(to)?))
        };
        let first = call(&mut line).and_then(|mut first| line.check_call(&mut first, tool));
        watch.end("its first answer", first)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let mut open = |place: u16| -> io::Result<Connection> {
            let call = call(&mut line)?;
            let stream = TcpStream::connect(to)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            epoll.add(&stream, EpollEvent::new(EpollFlags::EPOLLIN, place.into()))?;
            Ok(Connection { stream, call, arrived: Vec::with_capacity(1024), id: 0 })
        };
        let connections = (0..kind.connections).map(&mut open).collect::<io::Result<_>>()?;
        Ok(Self { epoll, connections, tool, next_id: FIRST_ID })
    }

    /// Keeps a call in flight on each connection until it is enough, then waits for the answers that are still due.
    pub(crate) fn drive(&mut self, server: &Endpoint, until: Until) -> io::Result<Taken> {
        let watch = server.subject.watch();
        let taken = server.subject.measure(|| self.exchange(until));
        watch.end("under load", taken)
    }

    /// How many calls were answered and, with one at a time, how long each took.
    fn exchange(&mut self, until: Until) -> io::Result<(u64, Vec<Duration>)> {
        let (mut sent, mut answered) = (0, 0);
        let began = Instant::now();
        let (mut times, mut asked) = (Vec::new(), began);
        let one_at_a_time = self.connections.len() == 1;
        let more = |sent: u64| match until {
            Until::Elapsed(time) => began.elapsed() < time,
            Until::Answered(count) => sent < count,
        };
        for place in 0..self.connections.len() {
            if more(sent) {
                self.send(place)?;
                sent += 1;
            }
        }
        let mut events = vec![EpollEvent::empty(); self.connections.len()];
        while answered < sent {
            let ready = match self.epoll.wait(&mut events, EpollTimeout::NONE) {
                Err(nix::errno::Errno::EINTR) => 0,
                ready => ready?,
            };
            for event in &events[..ready] {
                let place = usize::try_from(event.data()).unwrap_or(0);
                if self.connections[place].is_answered(self.tool)? {
                    answered += 1;
                    if one_at_a_time {
                        times.push(asked.elapsed());
                    }
                    if more(sent) {
                        asked = Instant::now();
                        self.send(place)?;
                        sent += 1;
                    }
                }
            }
        }
        Ok((answered, times))
    }

    fn send(&mut self, place: usize) -> io::Result<()> {
        let connection = &mut self.connections[place];
        connection.id = self.next_id;
        self.next_id += 1;
        // It never fills the buffer of a socket, so it never has to wait.
        connection.stream.write_all(connection.call.under(connection.id))
    }
}

impl Connection {
    /// Reads what is there; whether the response is there whole, and the right one.
    fn is_answered(&mut self, tool: Tool) -> io::Result<bool> {
        let mut piece = [0; 16 * 1024];
        let read = match self.stream.read(&mut piece) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            read => read?,
        };
        self.arrived.extend_from_slice(&piece[..read]);
        let Some(head) = memmem::find(&self.arrived, b"\r\n\r\n") else { return Ok(false) };
        let body = &self.arrived[head + 4..];
        let is_whole = match content_length(&self.arrived[..head]) {
            Some(length) if body.len() > length => return Err(self.wrong()),
            Some(length) => body.len() == length,
            // A stream of events in chunks, the last of which is empty.
            None => body.ends_with(b"\r\n0\r\n\r\n"),
        };
        if !is_whole {
            return Ok(false);
        }
        let has_text = match tool {
            Tool::Blob => body.len() > BLOB_BYTES,
            _ => memmem::find(body, b"\"text\":\"42\"").is_some(),
        };
        if !(has_text && self.arrived.starts_with(b"HTTP/1.1 200 ") && id_of(body) == Some(self.id)) {
            return Err(self.wrong());
        }
        self.arrived.clear();
        Ok(true)
    }

    fn wrong(&self) -> io::Error {
        misbehaved(format!("request {} was answered with {}", self.id, String::from_utf8_lossy(&self.arrived)))
    }
}

fn content_length(head: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"\r\ncontent-length: ";
    let start = memmem::find(head, NAME)? + NAME.len();
    let digits = head.get(start..)?.iter().take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |length, digit| 10 * length + usize::from(digit - b'0')))
}

fn id_of(body: &[u8]) -> Option<u64> {
    const NAME: &[u8] = b"\"id\":";
    let start = memmem::find(body, NAME)? + NAME.len();
    let digits = body.get(start..)?.iter().take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |id, digit| 10 * id + u64::from(digit - b'0')))
}
