//! The load: many connections that stay open, each with one call in flight.
//!
//! One thread waits for all of them and answers each response with the next call, so a server sees as much at once as it
//! lets pile up.

use crate::contestants::Contestant;
use crate::line::Line;
use crate::options::Options;
use crate::request::{Call, FIRST_ID, Tool};
use crate::response::broken;
use bench_kit::endpoint::Endpoint;
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

/// Drives everyone in rounds, each in a new process: where a process happens to lie in memory is worth a tenth and more.
pub(crate) fn measure(contestants: &[&Contestant], connections: u16, options: &Options) -> io::Result<Cell> {
    let slice = options.running.slice();
    Cell::measure(contestants.len(), options.running.rounds(), |turn| {
        let server = contestants[turn].start(PATIENCE + slice)?;
        let mut load = Load::connect(&server, connections)?;
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
    call: Call,
    next_id: u64,
}

struct Connection {
    stream: TcpStream,
    /// What arrived of the response that is due.
    arrived: Vec<u8>,
    /// The id of the call in flight.
    id: u64,
}

impl Load {
    /// Makes one call to see that the answer is right, then opens the connections.
    pub(crate) fn connect(server: &Endpoint, connections: u16) -> io::Result<Self> {
        let watch = server.subject.watch();
        watch.end("its first answer", Line::connect(server.address)?.check(server.address, Tool::Add))?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let open = |place: u16| -> io::Result<Connection> {
            let stream = TcpStream::connect(server.address)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            epoll.add(&stream, EpollEvent::new(EpollFlags::EPOLLIN, place.into()))?;
            Ok(Connection { stream, arrived: Vec::with_capacity(1024), id: 0 })
        };
        let connections = (0..connections).map(open).collect::<io::Result<_>>()?;
        Ok(Self { epoll, connections, call: Call::new(server.address, Tool::Add), next_id: FIRST_ID })
    }

    /// Keeps a call in flight on each connection until it is enough, then waits for the answers that are still due.
    pub(crate) fn drive(&mut self, server: &Endpoint, until: Until) -> io::Result<Taken> {
        let watch = server.subject.watch();
        let cpu = server.subject.cpu_time()?;
        let began = Instant::now();
        let requests = watch.end("under load", self.exchange(until, began))?;
        let wall = began.elapsed();
        Ok(Taken { requests, cpu: server.subject.cpu_time()?.saturating_sub(cpu), wall })
    }

    fn exchange(&mut self, until: Until, began: Instant) -> io::Result<u64> {
        let (mut sent, mut answered) = (0, 0);
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
                if self.connections[place].is_answered()? {
                    answered += 1;
                    if more(sent) {
                        self.send(place)?;
                        sent += 1;
                    }
                }
            }
        }
        Ok(answered)
    }

    fn send(&mut self, place: usize) -> io::Result<()> {
        let connection = &mut self.connections[place];
        connection.id = self.next_id;
        self.next_id += 1;
        // It never fills the buffer of a socket, so it never has to wait.
        connection.stream.write_all(self.call.under(connection.id))
    }
}

impl Connection {
    /// Reads once; whether the response is there whole, and the right one.
    fn is_answered(&mut self) -> io::Result<bool> {
        let mut piece = [0; 4096];
        let read = match self.stream.read(&mut piece) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            read => read?,
        };
        self.arrived.extend_from_slice(&piece[..read]);
        let Some(head) = memmem::find(&self.arrived, b"\r\n\r\n") else { return Ok(false) };
        let length = content_length(&self.arrived[..head]).ok_or_else(|| self.wrong())?;
        let end = head + 4 + length;
        if self.arrived.len() < end {
            return Ok(false);
        }
        let body = &self.arrived[head + 4..];
        let right = self.arrived.len() == end
            && self.arrived.starts_with(b"HTTP/1.1 200 ")
            && id_of(body) == Some(self.id)
            && memmem::find(body, b"\"text\":\"42\"").is_some();
        if !right {
            return Err(self.wrong());
        }
        self.arrived.clear();
        Ok(true)
    }

    fn wrong(&self) -> io::Error {
        broken(format!("request {} was answered with {}", self.id, String::from_utf8_lossy(&self.arrived)))
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
