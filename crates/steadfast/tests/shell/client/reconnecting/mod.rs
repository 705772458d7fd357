//! Clients whose connection is lost: what is retried, what is not, and every outcome (law L10).

mod attempts;
mod calls;
mod change_streams;
#[cfg(all(feature = "http", feature = "http-client"))]
mod http;
#[cfg(unix)]
pub(crate) mod processes;

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use steadfast::client::{ConnectBuilder, NegotiationMode, ReconnectPolicy};
use steadfast::model::TASKS_EXTENSION;
use steadfast::prelude::*;
use steadfast::transport::stream::StreamTransport;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::sync::watch;

use crate::{Signal, soon};

/// The response of a server to a request.
enum Reply {
    Result(Value),
    Error(i64),
    Silence,
    /// Nothing, and the connection ends.
    HangUp,
}

/// What happens to a new connection.
#[derive(Clone, Copy, PartialEq)]
enum OnConnect {
    Accept,
    Refuse,
    /// The connector never returns.
    Hang,
    /// The connector panics.
    Panic,
}

type EncodedResponse = Box<dyn Fn(usize, &Value) -> Reply + Send + Sync>;

/// A server that accepts any number of connections, and responds as the test decides.
struct FakeServer {
    answer: EncodedResponse,
    on_connect: Mutex<OnConnect>,
    /// Number of connections so far.
    connections: AtomicUsize,
    /// Messages received, with the number of their connection.
    received: Mutex<Vec<(usize, Value)>>,
    /// Changes when a message is received, or a connection is opened or ends.
    changed: watch::Sender<usize>,
    /// The number of the first connection that continues.
    cut: watch::Sender<usize>,
    ended: AtomicUsize,
}

impl FakeServer {
    /// `answer` decides the response to each request, given the number of its connection.
    fn new(answer: impl Fn(usize, &Value) -> Reply + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            answer: Box::new(answer),
            on_connect: Mutex::new(OnConnect::Accept),
            connections: AtomicUsize::new(0),
            received: Mutex::default(),
            changed: watch::Sender::new(0),
            cut: watch::Sender::new(0),
            ended: AtomicUsize::new(0),
        })
    }

    /// Responds to every request.
    fn willing() -> Arc<Self> {
        Self::new(|_, request| Reply::Result(done(request)))
    }

    fn connecting(self: &Arc<Self>) -> ConnectBuilder {
        let server = Arc::clone(self);
        let pauses = ReconnectPolicy::default().first_pause(Duration::from_millis(1));
        Client::connect(move || Arc::clone(&server).open()).negotiation(NegotiationMode::Stateless).reconnect(pauses)
    }

    async fn connect(self: &Arc<Self>) -> Client {
        soon(self.connecting().into_future()).await.unwrap()
    }

    fn open(self: Arc<Self>) -> Pin<Box<dyn Future<Output = io::Result<StreamTransport>> + Send>> {
        let number = self.connections.fetch_add(1, Ordering::SeqCst);
        self.ring();
        let on_connect = *self.on_connect.lock().unwrap();
        assert!(on_connect != OnConnect::Panic, "the connector panics");
        Box::pin(async move {
            match on_connect {
                OnConnect::Refuse => Err(io::ErrorKind::ConnectionRefused.into()),
                OnConnect::Hang => std::future::pending().await,
                _ => {
                    let (here, there) = tokio::io::duplex(1 << 16);
                    tokio::spawn(self.serve(number, there));
                    Ok(StreamTransport::duplex(here))
                }
            }
        })
    }

    async fn serve(self: Arc<Self>, number: usize, stream: DuplexStream) {
        let mut cut = self.cut.subscribe();
        tokio::select! {
            _ = cut.wait_for(|first| *first > number) => {}
            () = self.speak(number, stream) => {}
        }
        self.ended.fetch_add(1, Ordering::SeqCst);
        self.ring();
    }

    async fn speak(&self, number: usize, stream: DuplexStream) {
        let (input, mut output) = tokio::io::split(stream);
        let mut lines = BufReader::new(input).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let request: Value = serde_json::from_str(&line).unwrap();
            self.received.lock().unwrap().push((number, request.clone()));
            self.ring();
            let Some(id) = request.get("id") else { continue };
            let reply = match (self.answer)(number, &request) {
                Reply::Silence => continue,
                Reply::HangUp => return,
                Reply::Result(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                Reply::Error(code) => json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no"}}),
            };
            if output.write_all(format!("{reply}\n").as_bytes()).await.is_err() {
                return;
            }
        }
    }

    fn ring(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// Closes the open connections.
    fn cut(&self) {
        self.cut.send_replace(self.connections.load(Ordering::SeqCst));
    }

    fn set(&self, on_connect: OnConnect) {
        *self.on_connect.lock().unwrap() = on_connect;
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// The connections on which a method was called.
    fn asked(&self, method: &str) -> Vec<usize> {
        let heard = self.received.lock().unwrap();
        heard.iter().filter(|(_, request)| request["method"] == method).map(|(number, _)| *number).collect()
    }

    async fn until(&self, it_is_so: impl Fn(&Self) -> bool) {
        let mut changed = self.changed.subscribe();
        soon(changed.wait_for(|_| it_is_so(self))).await.unwrap();
    }
}

/// A result for any request of these tests.
fn done(request: &Value) -> Value {
    match request["method"].as_str().unwrap_or_default() {
        "server/discover" => json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}, "extensions": {TASKS_EXTENSION: {}}}}),
        "initialize" => json!({"protocolVersion": "2025-11-25", "serverInfo": {"name": "site", "version": "1"},
            "capabilities": {"tools": {}}}),
        "tools/list" => json!({"resultType": "complete", "tools": []}),
        _ => json!({"resultType": "complete", "content": []}),
    }
}

/// Closes the connection on the first request of this method, and responds to every other request.
fn losing(method: &'static str) -> Arc<FakeServer> {
    FakeServer::new(move |number, request| match number {
        0 if request["method"] == method => Reply::HangUp,
        _ => Reply::Result(done(request)),
    })
}
