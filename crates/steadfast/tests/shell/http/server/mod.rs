//! Streamable HTTP: the service called as tower calls it, and the server over loopback.

mod http2;
mod legacy_sse;
mod mirrored_headers;
mod ownership;
mod principals;
mod refusals;
mod session_messages;
mod sessions;
mod sockets;
mod stateless;
mod stateless_messages;
mod subscriptions;

use std::task::Poll;

use ::http::{Request, Response};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use steadfast::prelude::*;
use steadfast::transport::http::{HttpServerOptions, HttpService, HttpServiceBody};
use steadfast_proto::frame::sse::{ReceivedSseEvent, SseDecoder, SseDecoderOutput};
use tower_service::Service;

use crate::*;

/// A request as clients write it, to be changed.
struct Sent {
    method: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Sent {
    fn new(method: &'static str) -> Self {
        let headers = [("host", "localhost"), ("accept", "application/json, text/event-stream")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Self { method, path: "/mcp".to_owned(), headers, body: Vec::new() }
    }

    /// A POST of a message of an older revision.
    fn post(message: &Value) -> Self {
        let mut sent = Self::new("POST").with("content-type", "application/json");
        sent.body = message.to_string().into_bytes();
        sent
    }

    /// A request of 2026-07-28, with the headers that it has to have.
    fn modern(id: i64, method: &str, params: Value) -> Self {
        let mut params = params;
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        let name = ["name", "uri", "taskId"].into_iter().find_map(|member| params[member].as_str().map(str::to_owned));
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let sent = Self::post(&message).with("mcp-protocol-version", "2026-07-28").with("mcp-method", method);
        if let Some(name) = name { sent.with("mcp-name", &name) } else { sent }
    }

    /// A message of a session.
    fn in_session(session: &str, message: &Value) -> Self {
        Self::post(message).with("mcp-session-id", session)
    }

    /// To another path.
    fn at(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self
    }

    /// A call of 2026-07-28 of a client with these capabilities.
    fn capable(name: &str, capabilities: Value, meta: Value) -> Self {
        let sent = Self::modern(1, "tools/call", json!({"name": name, "arguments": {}, "_meta": meta}));
        sent.changed(|message| {
            message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
        })
    }

    /// With another body and the same headers.
    fn changed(mut self, change: impl FnOnce(&mut Value)) -> Self {
        let mut message = serde_json::from_slice(&self.body).unwrap();
        change(&mut message);
        self.body = message.to_string().into_bytes();
        self
    }

    fn with_body(mut self, body: &str) -> Self {
        self.body = body.into();
        self
    }

    async fn to(self, service: &HttpService) -> Response<HttpServiceBody> {
        self.begin(service).await
    }

    /// The future of the response, not polled.
    fn begin(self, service: &HttpService) -> impl Future<Output = Response<HttpServiceBody>> + use<> {
        let mut request = Request::builder().method(self.method).uri(self.path);
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(Bytes::from(self.body))).unwrap();
        let response = service.clone().call(request);
        async move { soon(response).await.unwrap_or_else(|never| match never {}) }
    }
}

fn service(tools: impl IntoIterator<Item = ServerTool>) -> HttpService {
    HttpService::new(server(tools), HttpServerOptions::new())
}

fn status(response: &Response<HttpServiceBody>) -> u16 {
    response.status().as_u16()
}

fn header<'a>(response: &'a Response<HttpServiceBody>, name: &str) -> &'a str {
    response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// The whole body, as JSON.
async fn body(response: Response<HttpServiceBody>) -> Value {
    let bytes = soon(response.into_body().collect()).await.unwrap().to_bytes();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// Events as they come.
struct Events {
    body: HttpServiceBody,
    decoder: SseDecoder,
    rest: Bytes,
}

impl Events {
    fn of(response: Response<HttpServiceBody>) -> Self {
        assert_eq!((status(&response), header(&response, "content-type")), (200, "text/event-stream"));
        Self { body: response.into_body(), decoder: SseDecoder::new(1 << 20), rest: Bytes::new() }
    }

    async fn next(&mut self) -> Option<ReceivedSseEvent> {
        loop {
            let mut input = &*self.rest;
            let found = self.decoder.next(&mut input);
            let used = self.rest.len() - input.len();
            drop(self.rest.split_to(used));
            match found {
                Some(SseDecoderOutput::Message(message)) => return Some(message),
                Some(SseDecoderOutput::TooLong) => panic!("an event was too long"),
                None => self.rest = soon(self.body.frame()).await?.unwrap().into_data().unwrap(),
            }
        }
    }

    /// The next message, without the events that only set an id.
    async fn message(&mut self) -> Option<Value> {
        loop {
            let event = self.next().await?;
            if !event.data.is_empty() {
                return Some(serde_json::from_slice(&event.data).unwrap());
            }
        }
    }

    async fn all(mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Some(message) = self.message().await {
            messages.push(message);
        }
        messages
    }

    /// Whether nothing more can be read right now.
    async fn is_silent(&mut self) -> bool {
        let frame = std::future::poll_fn(|cx| Poll::Ready(std::pin::Pin::new(&mut self.body.frame()).poll(cx))).await;
        frame.is_pending()
    }
}

/// Opens a session of a revision.
async fn open(service: &HttpService, revision: &str) -> String {
    let params = json!({"protocolVersion": revision, "capabilities": {"roots": {}},
        "clientInfo": {"name": "test", "version": "1"}});
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let response = Sent::post(&message).to(service).await;
    assert_eq!(status(&response), 200);
    let session = header(&response, "mcp-session-id").to_owned();
    assert_eq!(body(response).await["result"]["protocolVersion"], revision);
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(status(&Sent::in_session(&session, &initialized).to(service).await), 202);
    session
}

/// A tool that waits in a shield, which goes on although the call is cancelled.
fn shielded(begun: &Signal, release: &Signal) -> ServerTool {
    let (begun, release) = (begun.clone(), release.clone());
    ServerTool::new("shielded").handler(move |ctx: Context| {
        let (begun, release) = (begun.clone(), release.clone());
        async move {
            let shield = async move {
                begun.set();
                release.wait().await;
            };
            ctx.shield(shield).await;
        }
    })
}

fn call(id: i64, name: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
}

/// Reports progress, waits to be let go, and answers.
fn gated(gate: &Signal) -> ServerTool {
    let gate = gate.clone();
    ServerTool::new("gated").handler(move |ctx: Context| {
        let gate = gate.clone();
        async move {
            ctx.progress(0.5, "half way");
            gate.wait().await;
            "let go"
        }
    })
}

fn cases() -> Vec<&'static str> {
    vec!["2025-03-26", "2025-06-18", "2025-11-25"]
}

/// Sends its argument `who` as progress and as a log message, and waits to be released.
fn talker(gate: &Signal) -> ServerTool {
    let gate = gate.clone();
    ServerTool::new("talk").handler(move |arguments: JsonObject, ctx: Context| {
        let gate = gate.clone();
        async move {
            let who = arguments["who"].as_str().unwrap_or_default().to_owned();
            ctx.progress(0.5, who.clone());
            ctx.log(steadfast::LoggingLevel::Error, who.clone());
            gate.wait().await;
            who
        }
    })
}

/// The `who` that a message is about.
fn about(message: &Value) -> &str {
    let places = ["/params/message", "/params/data", "/result/content/0/text"];
    places.iter().find_map(|place| message.pointer(place)?.as_str()).unwrap_or_default()
}
