//! A server that the test controls message by message.

pub(super) use std::sync::{Arc, Mutex};
pub(super) use std::time::Duration;

pub(super) use serde_json::{Value, json};
pub(super) use steadfast::client::{ConnectBuilder, NegotiationMode};
pub(super) use steadfast::prelude::*;
pub(super) use steadfast::runtime::{Runtime, RuntimeTask, Timer, TokioRuntime};
pub(super) use steadfast::transport::stream::StreamTransport;
pub(super) use steadfast::{Moment, Revision};
pub(super) use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
pub(super) use tokio::task::JoinHandle;

pub(super) use crate::soon;

pub(super) const HANDSHAKE: NegotiationMode = NegotiationMode::Handshake(Revision::V2025_11_25);

/// A server that the test controls: it reads and writes one message at a time.
pub(super) struct ManualServer {
    pub(super) lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
}

impl ManualServer {
    pub(super) fn new(transport: DuplexStream) -> Self {
        let (input, output) = tokio::io::split(transport);
        Self { lines: BufReader::new(input).lines(), output }
    }

    /// A client of 2026-07-28 and its server, which has everything.
    pub(super) async fn modern(settings: impl FnOnce(ConnectBuilder) -> ConnectBuilder) -> (Client, Self) {
        Self::connect(NegotiationMode::Stateless, settings).await
    }

    pub(super) async fn connect(
        era: NegotiationMode,
        settings: impl FnOnce(ConnectBuilder) -> ConnectBuilder,
    ) -> (Client, Self) {
        let (here, there) = tokio::io::duplex(1 << 20);
        let mut server = Self::new(there);
        let connecting = settings(Client::connect(StreamTransport::duplex(here)).negotiation(era)).into_future();
        let (client, ()) = soon(async { tokio::join!(connecting, server.open()) }).await;
        (client.unwrap(), server)
    }

    pub(super) async fn open(&mut self) {
        let opening = self.next().await;
        let capabilities = json!({"tools": {"listChanged": true}, "prompts": {}, "resources": {"subscribe": true},
            "logging": {}, "completions": {}, "tasks": {"list": {}, "cancel": {}},
            "extensions": {"io.modelcontextprotocol/tasks": {}}});
        let result = if opening["method"] == "initialize" {
            json!({"protocolVersion": opening["params"]["protocolVersion"], "capabilities": capabilities,
                "serverInfo": {"name": "manual", "version": "1"}})
        } else {
            json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities})
        };
        self.answer(&opening, result).await;
        if opening["method"] == "initialize" {
            assert_eq!(self.next().await["method"], "notifications/initialized");
        }
    }

    /// The next message of the client's.
    pub(super) async fn next(&mut self) -> Value {
        let line = soon(self.lines.next_line()).await.unwrap().expect("the client goes on");
        serde_json::from_str(&line).unwrap()
    }

    /// The next message, which is that request.
    pub(super) async fn asked(&mut self, method: &str) -> Value {
        let request = self.next().await;
        assert_eq!(request["method"], method, "{request}");
        request
    }

    pub(super) async fn send(&mut self, message: Value) {
        self.output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    pub(super) async fn answer(&mut self, request: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    pub(super) async fn refuse(&mut self, request: &Value, code: i64) {
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": "no"}})).await;
    }

    pub(super) async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Reads the next request, checks its method, and responds.
    pub(super) async fn serve(&mut self, method: &str, result: Value) {
        let request = self.asked(method).await;
        self.answer(&request, result).await;
    }
}

/// A list of tools of these names, with hints.
pub(super) fn listing(names: &[&str], ttl: u64, scope: &str) -> Value {
    let tools: Vec<_> = names.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}})).collect();
    json!({"resultType": "complete", "tools": tools, "ttlMs": ttl, "cacheScope": scope})
}

pub(super) fn contents(text: &str, ttl: u64) -> Value {
    json!({"resultType": "complete", "contents": [{"uri": "a:1", "text": text}], "ttlMs": ttl, "cacheScope": "private"})
}

/// The names of the tools, as the client lists them.
pub(super) fn names(client: &Client) -> JoinHandle<Vec<String>> {
    let client = client.clone();
    tokio::spawn(async move { client.list_tools().await.unwrap().into_iter().map(|tool| tool.name).collect() })
}

/// What the client reads there.
pub(super) fn read(client: &Client, uri: &str) -> JoinHandle<String> {
    let call = client.read_resource(uri);
    tokio::spawn(async move {
        let read = serde_json::to_value(call.await.unwrap()).unwrap();
        read["contents"][0]["text"].as_str().unwrap().to_owned()
    })
}

/// The result of a call that the cache answers: the server sends nothing.
pub(super) async fn at_once<T>(call: JoinHandle<T>) -> T {
    soon(call).await.unwrap()
}

/// A clock that the test puts forward.
#[derive(Clone)]
pub(super) struct OffsetClock {
    runtime: TokioRuntime,
    ahead: Arc<Mutex<Duration>>,
}

impl OffsetClock {
    pub(super) fn new() -> Self {
        Self { runtime: TokioRuntime::current().unwrap(), ahead: Arc::default() }
    }

    pub(super) fn forward(&self, by: Duration) {
        *self.ahead.lock().unwrap() += by;
    }

    pub(super) fn shared(&self) -> Arc<dyn Runtime> {
        Arc::new(self.clone())
    }
}

impl Runtime for OffsetClock {
    fn now(&self) -> Moment {
        self.runtime.now() + *self.ahead.lock().unwrap()
    }

    // Nothing here waits for a deadline.
    fn timer(&self) -> Box<dyn Timer> {
        self.runtime.timer()
    }

    fn spawn(&self, task: RuntimeTask) {
        self.runtime.spawn(task);
    }

    fn spawn_thread(&self, job: Box<dyn FnOnce() + Send>) {
        self.runtime.spawn_thread(job);
    }
}
