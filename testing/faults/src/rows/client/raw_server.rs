//! A server on HTTP that is a bare socket: it opens conversations as it should, answers `echo`, and does to every other call
//! what the check says.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::limits::CHECK_TIMEOUT;

/// A request as it was received.
#[derive(Clone, Debug)]
pub(super) struct ReceivedRequest {
    pub(super) method: String,
    head: String,
    pub(super) body: Value,
}

/// How the server responds to a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnAccept {
    /// The request is read.
    Serve,
    /// The connection is closed.
    Close,
    /// The same with a reset.
    Reset,
    /// The head is read, and no more.
    CloseAfterHead,
}

/// The requests that the check answers itself, besides calls of tools other than `echo`.
#[derive(Clone, Copy)]
enum FaultScope {
    Calls,
    Method(&'static str),
    Everything,
}

/// What a check does with a call.
type Fault = dyn Fn(&ReceivedRequest, &mut Connection) + Send + Sync;

/// One accepted connection.
pub(super) struct Connection {
    stream: TcpStream,
    /// Whether another request may come on it.
    keep: bool,
}

pub(super) struct RawServer {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    era: Era,
    requests: Mutex<Vec<ReceivedRequest>>,
    on_accept: Mutex<OnAccept>,
    connections: AtomicUsize,
    /// Whether a connection is good for one request only.
    one_request_each: AtomicBool,
    shut: AtomicBool,
    /// The requests that the check answers itself.
    fault_scope: FaultScope,
    fault: Box<Fault>,
}

impl RawServer {
    /// Opens conversations, answers `echo`, and leaves the rest to `fault`.
    pub(super) fn open(
        era: Era,
        fault: impl Fn(&ReceivedRequest, &mut Connection) + Send + Sync + 'static,
    ) -> Verdict<Self> {
        Self::start(era, FaultScope::Calls, Box::new(fault))
    }

    /// Leaves everything to `fault`.
    pub(super) fn bare(
        era: Era,
        fault: impl Fn(&ReceivedRequest, &mut Connection) + Send + Sync + 'static,
    ) -> Verdict<Self> {
        Self::start(era, FaultScope::Everything, Box::new(fault))
    }

    /// Leaves requests of that method of HTTP to `fault`, too.
    pub(super) fn with_fault_on(
        era: Era,
        method: &'static str,
        fault: impl Fn(&ReceivedRequest, &mut Connection) + Send + Sync + 'static,
    ) -> Verdict<Self> {
        Self::start(era, FaultScope::Method(method), Box::new(fault))
    }

    fn start(era: Era, fault_scope: FaultScope, fault: Box<Fault>) -> Verdict<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            era,
            requests: Mutex::default(),
            on_accept: Mutex::new(OnAccept::Serve),
            connections: AtomicUsize::new(0),
            one_request_each: AtomicBool::new(false),
            shut: AtomicBool::new(false),
            fault_scope,
            fault,
        });
        let inside = Arc::clone(&shared);
        std::thread::Builder::new().name("raw-server".to_owned()).spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if inside.shut.load(Ordering::SeqCst) {
                    return;
                }
                inside.connections.fetch_add(1, Ordering::SeqCst);
                let inside = Arc::clone(&inside);
                // Without a thread for it the connection is sent away, and the check fails.
                let _ =
                    std::thread::Builder::new().name("raw-connection".to_owned()).spawn(move || inside.receive(stream));
            }
        })?;
        Ok(Self { address, shared })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Has each connection be good for one request only, so that the next request comes on another.
    pub(super) fn close_after_each_response(&self) {
        self.shared.one_request_each.store(true, Ordering::SeqCst);
    }

    pub(super) fn set_on_accept(&self, on_accept: OnAccept) {
        *self.shared.on_accept.lock().unwrap_or_else(PoisonError::into_inner) = on_accept;
    }

    pub(super) fn requests(&self) -> MutexGuard<'_, Vec<ReceivedRequest>> {
        self.shared.requests()
    }

    /// How many connections were opened.
    pub(super) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// How many requests for this call were received.
    pub(super) fn count(&self, call: &str) -> usize {
        self.requests().iter().filter(|request| request.mark() == call).count()
    }

    /// Waits until something has come.
    pub(super) fn wait(&self, what: &str, look: impl Fn(&ReceivedRequest) -> bool) -> Verdict<ReceivedRequest> {
        let start = Instant::now();
        loop {
            if let Some(request) = self.requests().iter().find(|request| look(request)) {
                return Ok(request.clone());
            }
            ensure!(start.elapsed() < CHECK_TIMEOUT, "{what} never came");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for RawServer {
    fn drop(&mut self) {
        self.shared.shut.store(true, Ordering::SeqCst);
        // Wakes the listener. If the connect fails, there is no listener.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn requests(&self) -> MutexGuard<'_, Vec<ReceivedRequest>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receive(&self, stream: TcpStream) {
        let on_accept = *self.on_accept.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = stream.set_nodelay(true);
        let _ = stream.set_read_timeout(Some(CHECK_TIMEOUT));
        let mut connection = Connection { stream, keep: true };
        match on_accept {
            OnAccept::Close => return,
            OnAccept::Reset => return connection.reset(),
            OnAccept::Serve | OnAccept::CloseAfterHead => {}
        }
        while connection.keep {
            let Some(request) = connection.read(on_accept == OnAccept::CloseAfterHead) else { return };
            self.requests().push(request.clone());
            connection.keep = false;
            let in_scope = match self.fault_scope {
                FaultScope::Calls => false,
                FaultScope::Method(method) => request.method == method,
                FaultScope::Everything => true,
            };
            match self.usual(&request).filter(|_| !in_scope) {
                Some(answer) if self.one_request_each.load(Ordering::SeqCst) => {
                    let line = answer.windows(2).position(|two| two == b"\r\n").unwrap_or(0);
                    connection.write(&[&answer[..line], b"\r\nconnection: close", &answer[line..]].concat());
                    connection.close();
                }
                Some(answer) => {
                    connection.keep = true;
                    connection.write(&answer);
                }
                None => (self.fault)(&request, &mut connection),
            }
        }
    }

    /// What a server without faults answers, if it is nothing that the check sees to.
    fn usual(&self, request: &ReceivedRequest) -> Option<Vec<u8>> {
        let modern = self.era.is_stateless();
        match (request.method.as_str(), request.body["method"].as_str()) {
            ("POST", Some("initialize")) => {
                let result = json!({ "protocolVersion": self.era.revision(), "capabilities": { "tools": {} },
                    "serverInfo": { "name": "raw-server", "version": "1" } });
                let body = json!({ "jsonrpc": "2.0", "id": request.body["id"], "result": result }).to_string();
                let headers = [("content-type", "application/json"), ("mcp-session-id", "s1")];
                Some(response("200 OK", &headers, body.as_bytes()))
            }
            ("POST", Some("server/discover")) => Some(request.answer(&json!({ "resultType": "complete",
                "supportedVersions": [self.era.revision()], "capabilities": { "tools": {} } }))),
            ("POST", Some("notifications/initialized" | "notifications/cancelled")) => {
                Some(response("202 Accepted", &[], b""))
            }
            ("POST", Some("tools/call")) if request.tool() == "echo" => {
                Some(request.answer(&text(modern, request.argument("text").as_str().unwrap_or_default())))
            }
            ("GET", _) if request.header("last-event-id").is_none() => {
                Some(response("405 Method Not Allowed", &[], b""))
            }
            ("DELETE", _) => Some(response("200 OK", &[], b"")),
            _ => None,
        }
    }
}

impl ReceivedRequest {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().filter_map(|line| line.split_once(':'));
        fields.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// The place that was asked for.
    pub(super) fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    pub(super) fn is(&self, method: &str) -> bool {
        self.body["method"] == method
    }

    pub(super) fn tool(&self) -> &str {
        self.body["params"]["name"].as_str().unwrap_or_default()
    }

    pub(super) fn argument(&self, name: &str) -> &Value {
        &self.body["params"]["arguments"][name]
    }

    /// The name of the call.
    pub(super) fn mark(&self) -> &str {
        self.argument("mark").as_str().unwrap_or_default()
    }

    /// A result as a message.
    pub(super) fn message(&self, result: &Value) -> String {
        json!({ "jsonrpc": "2.0", "id": self.body["id"], "result": result }).to_string()
    }

    /// A response with a result.
    pub(super) fn answer(&self, result: &Value) -> Vec<u8> {
        response("200 OK", &[("content-type", "application/json")], self.message(result).as_bytes())
    }
}

impl Connection {
    /// Writes to a client that may have disconnected. False if so.
    pub(super) fn write(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Lets another request come on this connection.
    pub(super) fn keep(&mut self) {
        self.keep = true;
    }

    /// Ends the connection with a reset and not with an end.
    pub(super) fn reset(&mut self) {
        let _ = rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO));
        self.keep = false;
    }

    /// Ends our half, and reads what comes until the other half has ended.
    pub(super) fn close(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
        self.wait_for_end();
    }

    /// Waits until the client has closed the connection. False if it never does.
    pub(super) fn wait_for_end(&mut self) -> bool {
        loop {
            match self.stream.read(&mut [0; 4096]) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
            }
        }
    }

    /// The next request; `None` at the end of the connection, or if only its head was wanted.
    fn read(&mut self, head_only: bool) -> Option<ReceivedRequest> {
        let mut bytes = Vec::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                if head_only {
                    return None;
                }
                let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
                let method = head.split(' ').next().unwrap_or_default().to_owned();
                let mut request = ReceivedRequest { method, head, body: Value::Null };
                let length: usize =
                    request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
                if bytes.len() >= end + 4 + length {
                    request.body = serde_json::from_slice(&bytes[end + 4..]).unwrap_or_default();
                    return Some(request);
                }
            }
            let count = self.stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
            bytes.extend_from_slice(&buffer[..count]);
        }
    }
}

/// The result of a tool.
pub(super) fn text(modern: bool, text: &str) -> Value {
    let mut result = json!({ "content": [{ "type": "text", "text": text }] });
    if modern {
        result["resultType"] = Value::from("complete");
    }
    result
}

pub(super) fn response(status: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        head.extend([*name, ": ", *value, "\r\n"]);
    }
    head.push_str("\r\n");
    [head.as_bytes(), body].concat()
}

/// The head of a stream of events that ends when the connection does.
pub(super) const EVENTS: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// The same in chunks.
pub(super) const CHUNKED_EVENTS: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
