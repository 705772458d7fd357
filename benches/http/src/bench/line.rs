//! One connection to a server, on which one thing is asked at a time.

use crate::request::{self, Call, FIRST_ID, Tool};
use bench_kit::http::{Inbox, Response};
use bench_kit::misbehaved;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};

/// A connection on which one thing is asked at a time.
pub(crate) struct Line {
    stream: TcpStream,
    inbox: Inbox,
    /// How many reads the last response took.
    pub(crate) reads: usize,
}

impl Line {
    pub(crate) fn connect(to: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(to)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, inbox: Inbox::default(), reads: 0 })
    }

    /// Sends a request and waits for all of its response.
    pub(crate) fn ask(&mut self, request: &[u8]) -> io::Result<Response> {
        self.stream.write_all(request)?;
        self.reads = 0;
        loop {
            if let Some(response) = self.inbox.take()? {
                return Ok(response);
            }
            self.fill()?;
        }
    }

    /// Sends a request and waits for the head of a stream of events, which stays open as long as what this returns.
    pub(crate) fn open(mut self, request: &[u8]) -> io::Result<TcpStream> {
        self.stream.write_all(request)?;
        loop {
            match self.inbox.head()? {
                Some(head) if head.status == 200 && head.events => return Ok(self.stream),
                Some(head) => return Err(misbehaved(format!("a stream was refused with status {}", head.status))),
                None => self.fill()?,
            }
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        self.reads += 1;
        self.inbox.fill(&mut self.stream)
    }

    /// Opens a session, and returns its id.
    pub(crate) fn open_session(&mut self, to: SocketAddr) -> io::Result<String> {
        let response = self.ask(&request::initialize(to))?;
        let session = response.session.ok_or_else(|| misbehaved("initialize opened no session"))?;
        let accepted = self.ask(&request::initialized(to, &session))?;
        if accepted.status == 202 {
            return Ok(session);
        }
        Err(misbehaved(format!("the end of the handshake was answered with status {}", accepted.status)))
    }

    /// Makes one stateless call and checks all of its answer.
    pub(crate) fn check(&mut self, to: SocketAddr, tool: Tool) -> io::Result<Response> {
        self.check_call(&mut Call::new(to, tool), tool)
    }

    /// Makes this call and checks all of its answer.
    pub(crate) fn check_call(&mut self, call: &mut Call, tool: Tool) -> io::Result<Response> {
        let response = self.ask(call.under(FIRST_ID))?;
        let answer = response.message();
        let text = answer.as_ref().and_then(|answer| answer["result"]["content"][0]["text"].as_str());
        let id = answer.as_ref().map(|answer| answer["id"].clone());
        if response.status == 200 && text.is_some_and(|text| tool.is_answered_by(text)) && id == Some(FIRST_ID.into()) {
            return Ok(response);
        }
        Err(misbehaved(format!("{} was answered with {}", tool.name(), response.shown())))
    }
}
