//! A keep-alive connection, on which one request is in flight at a time.

use super::request::{self, Tool};
use bench_kit::http::{Inbox, Response};
use bench_kit::misbehaved;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};

/// How many connections are opened at once: no more than fit into the backlog of any listening socket.
pub(crate) const BATCH: usize = 64;

/// An open connection.
pub(crate) struct Connection {
    pub(super) stream: TcpStream,
    pub(super) inbox: Inbox,
    pub(super) to: SocketAddr,
    next_id: u64,
}

impl Connection {
    pub(crate) fn open(to: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(to)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, inbox: Inbox::default(), to, next_id: 1 })
    }

    /// Opens that many connections and makes one call on each, so that a server has done all that a connection needs.
    pub(crate) fn open_idle(to: SocketAddr, count: usize) -> io::Result<Vec<Self>> {
        let mut idle = Vec::with_capacity(count);
        while idle.len() < count {
            let size = BATCH.min(count - idle.len());
            let mut batch = (0..size).map(|_| Self::open(to)).collect::<io::Result<Vec<_>>>()?;
            for connection in &mut batch {
                connection.send(&request::call(to, Tool::Echo, 0))?;
            }
            for connection in &mut batch {
                answered(&connection.receive()?, Tool::Echo, 0)?;
            }
            idle.append(&mut batch);
        }
        Ok(idle)
    }

    pub(crate) fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.stream.write_all(request)
    }

    /// Waits for all of the next response.
    pub(crate) fn receive(&mut self) -> io::Result<Response> {
        loop {
            if let Some(response) = self.inbox.take()? {
                return Ok(response);
            }
            self.inbox.fill(&mut self.stream)?;
        }
    }

    /// Makes one stateless call and waits for its answer.
    pub(crate) fn call(&mut self, tool: Tool) -> io::Result<()> {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&request::call(self.to, tool, id))?;
        answered(&self.receive()?, tool, id)
    }

    /// Makes one call in a session and waits for its answer. The ids of all calls over one connection differ.
    pub(crate) fn session_call(&mut self, session: &str, tool: Tool) -> io::Result<()> {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&request::session_call(self.to, session, tool, id))?;
        answered(&self.receive()?, tool, id)
    }
}

/// Whether this is the right answer to that call.
fn answered(response: &Response, tool: Tool, id: u64) -> io::Result<()> {
    let message = response.message().unwrap_or_default();
    if response.status == 200 && message["id"] == id && message["result"]["content"][0]["text"] == tool.text() {
        return Ok(());
    }
    Err(misbehaved(format!("a call was answered with {}", response.shown())))
}
