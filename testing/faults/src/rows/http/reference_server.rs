//! The reference server on HTTP, and conversations with it in the form of an era.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::wire::{Event, Head, Request, Wire};
use crate::check_context::CheckContext;
use crate::client::expect;
use crate::client::message::{Body, Id, Message};
use crate::client::{cancel_line, initialized_line, stateless_meta};
use crate::era::Era;
use crate::failure::{Failure, Verdict, ensure, fail};
use crate::limits::{CHECK_TIMEOUT, ENDING_ACCEPTED};
use crate::process::launch::Launch;
use crate::process::server::{Exit, Server};
use crate::process::standard_error::crash_line;

/// A drain window that nothing of a check outlasts: a server that ends sooner had nothing left to wait for.
const WINDOW_MS: u64 = 20_000;

/// A server that listens.
pub(super) struct ReferenceServer {
    pub(super) server: Server,
    pub(super) address: SocketAddr,
    pub(super) era: Era,
    /// A tool panics in this check, so the word may stand on standard error.
    pub(super) panics_expected: bool,
    next: AtomicU64,
}

/// `serve --http` with its defaults.
pub(super) fn launch(context: &CheckContext) -> Launch {
    context.launch().argument("--http").argument("127.0.0.1:0")
}

impl ReferenceServer {
    /// A server whose end shows whether a handler was left running.
    pub(super) fn open(context: &mut CheckContext) -> Verdict<Self> {
        let launch = launch(context);
        Self::watched(context, launch)
    }

    /// The same with other arguments.
    pub(super) fn watched(context: &mut CheckContext, launch: Launch) -> Verdict<Self> {
        Self::start(context, &launch.argument("--drain").argument(WINDOW_MS.to_string()))
    }

    pub(super) fn start(context: &mut CheckContext, launch: &Launch) -> Verdict<Self> {
        let server = Server::start(launch)?;
        context.show(&server);
        let start = Instant::now();
        let address = loop {
            if let Some(address) = listening(&server.errors.text()) {
                break address;
            }
            ensure!(start.elapsed() < CHECK_TIMEOUT, "the server does not say where it listens");
            std::thread::sleep(Duration::from_micros(500));
        };
        Ok(Self { server, address, era: context.era, panics_expected: false, next: AtomicU64::new(100_000) })
    }

    pub(super) fn connect(&self) -> Verdict<Wire> {
        Wire::connect(self.address)
    }

    pub(super) fn fresh_id(&self) -> Id {
        Id::number(self.next.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) fn request(&self, method: &'static str) -> Request {
        Request::new(method, &self.address.to_string())
    }

    /// Sends a request on a connection of its own, and gives the response to be read.
    pub(super) fn send(&self, request: &Request) -> Verdict<(Head, Wire)> {
        let mut wire = self.connect()?;
        wire.send(request)?;
        Ok((wire.head()?, wire))
    }

    /// The status of the response to a request.
    pub(super) fn status(&self, request: &Request) -> Verdict<u16> {
        Ok(self.send(request)?.0.status)
    }

    /// Opens a conversation as the era does.
    pub(super) fn session(&self) -> Verdict<HttpSession<'_>> {
        self.session_over(&mut self.connect()?)
    }

    /// The same over a connection that is there.
    pub(super) fn session_over(&self, wire: &mut Wire) -> Verdict<HttpSession<'_>> {
        let mut session = HttpSession { server: self, id: None };
        if self.era.is_stateless() {
            return Ok(session);
        }
        wire.send(&session.post(initialize(&self.fresh_id(), self.era)))?;
        let head = wire.head()?;
        ensure!(head.status == 200, "initialize was answered with {}", head.status);
        let answer = Message::parse(&wire.body()?);
        let agreed = expect::result(&answer)?.get("protocolVersion").and_then(Value::as_str);
        ensure!(agreed == Some(self.era.revision()), "asked for {}, got {agreed:?}", self.era);
        let id = head.header("mcp-session-id");
        ensure!(!id.is_empty(), "initialize opened no session");
        session.id = Some(id.to_owned());
        wire.send(&session.post(initialized_line()))?;
        let status = wire.head()?.status;
        ensure!(status == 202, "notifications/initialized was answered with {status}");
        Ok(session)
    }

    /// The server runs, and serves a new client.
    pub(super) fn alive(&self) -> Verdict {
        self.session()?.round_trip().map_err(|failure| failure.at("afterwards"))
    }

    /// Stops the server, which must not have to wait: no handler still runs.
    pub(super) fn finish(&mut self) -> Verdict<Exit> {
        self.alive()?;
        self.server.signal(Signal::TERM)?;
        self.ended(ENDING_ACCEPTED).map_err(|failure| failure.at("the end with nothing running"))
    }

    /// The server has to end by itself with code 0, on time, without a word that looks like a crash.
    pub(super) fn ended(&mut self, time: Duration) -> Verdict<Exit> {
        let ending = self.server.wait(time)?;
        self.server.errors.finish();
        if let Some(line) = crash_line(&self.server.errors.text()).filter(|_| !self.panics_expected) {
            fail!("standard error looks like a crash: {line}");
        }
        ensure!(ending.status.code() == Some(0), "ended with {} instead of exit code 0", ending.status);
        Ok(ending)
    }
}

/// Opens a session as a client that can answer everything that a server may ask.
fn initialize(id: &Id, era: Era) -> String {
    let params = json!({
        "protocolVersion": era.revision(),
        "capabilities": { "roots": {}, "sampling": {}, "elicitation": {} },
        "clientInfo": { "name": "faults", "version": "1" },
    });
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"initialize\",\"params\":{params}}}")
}

fn listening(errors: &str) -> Option<SocketAddr> {
    let (_, rest) = errors.split_once("listening on http://")?;
    rest.split_once("/mcp")?.0.parse().ok()
}

/// A conversation: a session, or nothing at all.
#[derive(Clone)]
pub(super) struct HttpSession<'a> {
    pub(super) server: &'a ReferenceServer,
    pub(super) id: Option<String>,
}

impl HttpSession<'_> {
    /// A request of HTTP that belongs to the conversation.
    pub(super) fn request(&self, method: &'static str) -> Request {
        let request = self.server.request(method).with("MCP-Protocol-Version", self.server.era.revision());
        match &self.id {
            Some(id) => request.with("Mcp-Session-Id", id),
            None => request,
        }
    }

    /// A message as it is.
    pub(super) fn post(&self, message: impl Into<Vec<u8>>) -> Request {
        let mut request = self.request("POST").with("Content-Type", "application/json");
        if self.id.is_none() && !self.server.era.is_stateless() {
            // What was negotiated is not known before the session.
            request = request.without("MCP-Protocol-Version");
        }
        request.body = message.into();
        request
    }

    /// A request of the protocol, with the headers that the era wants.
    pub(super) fn ask(&self, id: &Id, method: &str, mut params: Value) -> Request {
        let stateless = self.server.era.is_stateless();
        if stateless {
            let token = params["_meta"]["progressToken"].take();
            params["_meta"] = stateless_meta(self.server.era.revision());
            if !token.is_null() {
                params["_meta"]["progressToken"] = token;
            }
        }
        let name = ["name", "uri"].iter().find_map(|member| params[*member].as_str().map(str::to_owned));
        if params["_meta"].is_null()
            && let Some(members) = params.as_object_mut()
        {
            members.remove("_meta");
        }
        let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}");
        let request = self.post(text);
        match (stateless, name) {
            (true, Some(name)) => request.with("Mcp-Method", method).with("Mcp-Name", &name),
            (true, None) => request.with("Mcp-Method", method),
            (false, _) => request,
        }
    }

    /// A call of a tool.
    pub(super) fn call(&self, id: &Id, tool: &str, arguments: Value) -> Request {
        self.ask(id, "tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// A call that says what it is doing, so that its response is a stream from the first word on.
    pub(super) fn call_with_progress(&self, id: &Id, tool: &str, arguments: Value) -> Request {
        let meta = json!({ "progressToken": format!("token-{id}") });
        self.ask(id, "tools/call", json!({ "name": tool, "arguments": arguments, "_meta": meta }))
    }

    /// Sends a request of the protocol on a connection of its own, and gives the connection once its handler runs: the
    /// tool has to report progress.
    pub(super) fn begin(&self, id: &Id, tool: &str, arguments: Value) -> Verdict<Wire> {
        let (head, mut wire) = self.server.send(&self.call_with_progress(id, tool, arguments))?;
        ensure!(head.status == 200 && head.is_events(), "{tool} was answered with {}", head.status);
        loop {
            let event = wire.event()?.ok_or_else(|| Failure(format!("the stream of {tool} ended")))?;
            if message(&event)?.is_some_and(|message| message.progress.is_some()) {
                return Ok(wire);
            }
        }
    }

    /// Calls a tool and waits for its text.
    pub(super) fn text(&self, tool: &str, arguments: Value) -> Verdict<String> {
        let id = self.server.fresh_id();
        let (head, mut wire) = self.server.send(&self.call(&id, tool, arguments))?;
        expect::text(&answer(&head, &mut wire, &id)?, self.server.era)
    }

    /// An `echo` there and back.
    pub(super) fn round_trip(&self) -> Verdict {
        let text = self.text("echo", json!({ "text": "round trip" }))?;
        ensure!(text == "round trip", "echo gave {text:?}");
        Ok(())
    }

    /// Something that is answered without a handler, and how long it took.
    pub(super) fn quick(&self) -> Verdict<Duration> {
        let start = Instant::now();
        let id = self.server.fresh_id();
        let (head, mut wire) = self.server.send(&self.ask(&id, "tools/list", json!({})))?;
        expect::result(&answer(&head, &mut wire, &id)?)?;
        Ok(start.elapsed())
    }

    /// Cancels a call of a session.
    pub(super) fn cancel(&self, id: &Id) -> Verdict {
        let status = self.server.status(&self.post(cancel_line(id)))?;
        ensure!(status == 202, "a cancellation was answered with {status}");
        Ok(())
    }

    /// Ends the session.
    pub(super) fn delete(&self) -> Verdict<u16> {
        self.server.status(&self.request("DELETE"))
    }

    /// The stream of what belongs to no request, or the rest of one.
    pub(super) fn listen(&self, last_event: Option<&str>) -> Verdict<(Head, Wire)> {
        let request = self.request("GET");
        self.server.send(&match last_event {
            Some(id) => request.with("Last-Event-ID", id),
            None => request,
        })
    }
}

/// The JSON-RPC response to a request, whether its HTTP response is a message or a stream. Nothing may follow it.
pub(super) fn answer(head: &Head, wire: &mut Wire, id: &Id) -> Verdict<Message> {
    maybe_answer(head, wire, id)?.ok_or_else(|| Failure(format!("the response ended without an answer to {id}")))
}

/// The same for a request that may have ended without an answer.
pub(super) fn maybe_answer(head: &Head, wire: &mut Wire, id: &Id) -> Verdict<Option<Message>> {
    if !head.is_events() {
        let message = Message::parse(&wire.body()?);
        ensure!(message.answers() == Some(id), "not the answer to {id}: {}", message.opening);
        return Ok(Some(message));
    }
    rest(wire, id)
}

/// The answer that a stream ends with, if it does.
pub(super) fn rest(wire: &mut Wire, id: &Id) -> Verdict<Option<Message>> {
    let mut found: Option<Message> = None;
    while let Some(event) = wire.event()? {
        let Some(message) = message(&event)? else { continue };
        ensure!(found.is_none(), "something came behind the answer to {id}: {}", message.opening);
        if message.answers().is_some() {
            ensure!(message.answers() == Some(id), "not the answer to {id}: {}", message.opening);
            found = Some(message);
        }
    }
    Ok(found)
}

/// The message of an event; `None` for an event that only sets an id.
pub(super) fn message(event: &Event) -> Verdict<Option<Message>> {
    if event.data.is_empty() {
        return Ok(None);
    }
    let message = Message::parse(&event.data);
    if let Body::Garbage(why) = &message.body {
        fail!("an event is not protocol ({why}): {}", message.opening);
    }
    Ok(Some(message))
}
