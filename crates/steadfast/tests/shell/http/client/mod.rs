//! HTTP clients, with servers that are raw sockets or those of the library.

mod change_streams;
mod connections;
mod custom_fetch;
mod custom_headers;
mod cut_responses;
mod end_to_end;
mod faults;
mod legacy_sse;
mod limits;
mod ordering;
mod outcomes;
mod request_rate;
mod requests;
mod session_streams;
mod stuck_authorization;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::json;
use steadfast::Revision;
use steadfast::client::{NegotiationMode, ReconnectPolicy};
use steadfast::transport::http::HttpTarget;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::*;

/// A request as the server received it.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    pub(crate) method: String,
    pub(crate) head: String,
    pub(crate) body: serde_json::Value,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let of = |line: &'_ str| line.split_once(':').is_some_and(|(known, _)| known.eq_ignore_ascii_case(name));
        self.head.lines().find(|line| of(line)).and_then(|line| line.split_once(':')).map(|(_, value)| value.trim())
    }

    fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    pub(crate) fn is(&self, method: &str) -> bool {
        self.body["method"] == method
    }
}

/// A server that responds to each request with the bytes that `answer` returns, and then closes the connection.
pub(crate) async fn raw(
    answer: impl Fn(usize, &ReceivedRequest) -> Vec<u8> + Send + Sync + 'static,
) -> (String, Arc<Mutex<Vec<ReceivedRequest>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let requests = Arc::new(Mutex::new(Vec::new()));
    let (seen, answer) = (Arc::clone(&requests), Arc::new(answer));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
            tokio::spawn(async move {
                let mut stream = stream;
                let Some(request) = read(&mut stream).await else { return };
                let number = {
                    let mut seen = seen.lock().unwrap();
                    seen.push(request.clone());
                    seen.len() - 1
                };
                // The client may have gone.
                let _ = stream.write_all(&answer(number, &request)).await;
            });
        }
    });
    (format!("http://{address}/mcp"), requests)
}

async fn read(stream: &mut TcpStream) -> Option<ReceivedRequest> {
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 65536]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let mut request =
                ReceivedRequest { method: String::new(), head: head.to_owned(), body: serde_json::Value::Null };
            let length: usize = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
            if body.len() >= length {
                head.split(' ').next().unwrap_or_default().clone_into(&mut request.method);
                request.body = serde_json::from_str(body).unwrap_or_default();
                return Some(request);
            }
        }
        let count = stream.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&buffer[..count]);
    }
}

pub(crate) fn response(status: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let headers: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let (headers, length) = (headers.concat(), body.len());
    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}").into_bytes()
}

pub(crate) fn json_answer(request: &ReceivedRequest, result: &serde_json::Value) -> Vec<u8> {
    let body = serde_json::json!({"jsonrpc": "2.0", "id": request.body["id"], "result": result});
    response("200 OK", &[("content-type", "application/json")], &body.to_string())
}

/// The beginning of a stream that ends when the connection does.
pub(crate) fn events(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n{body}").into_bytes()
}

pub(crate) const OLDER: NegotiationMode = NegotiationMode::Handshake(Revision::V2025_11_25);

/// Answers the handshake of an older revision, and leaves the rest to `answer`.
pub(crate) fn older(request: &ReceivedRequest, answer: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    if request.is("initialize") {
        let result = json!({"protocolVersion": "2025-11-25", "serverInfo": {"name": "raw", "version": "1"},
            "capabilities": {"tools": {"listChanged": true}, "resources": {"subscribe": true, "listChanged": true}}});
        let body = json!({"jsonrpc": "2.0", "id": request.body["id"], "result": result}).to_string();
        return response("200 OK", &[("content-type", "application/json"), ("mcp-session-id", "s1")], &body);
    }
    if request.is("notifications/initialized") {
        return response("202 Accepted", &[], "");
    }
    answer()
}

pub(crate) fn modern(request: &ReceivedRequest, answer: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    if request.is("server/discover") {
        let result =
            json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}});
        return json_answer(request, &result);
    }
    answer()
}

/// An error with its causes.
fn why(error: &steadfast::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

pub(crate) async fn connect(url: &str, era: NegotiationMode) -> Client {
    soon(Client::connect(url).negotiation(era).into_future()).await.unwrap()
}

/// A client that neither reconnects nor retries.
async fn connect_once(target: HttpTarget, era: NegotiationMode) -> Client {
    soon(Client::connect(target).negotiation(era).reconnect(ReconnectPolicy::never()).into_future()).await.unwrap()
}

/// A hand-written server: `serve` gets each request, and its connection.
async fn by_hand<A>(serve: impl Fn(ReceivedRequest, TcpStream) -> A + Send + Sync + 'static) -> String
where
    A: Future<Output = ()> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let serve = Arc::new(serve);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let serve = Arc::clone(&serve);
            tokio::spawn(async move {
                if let Some(request) = read(&mut stream).await {
                    serve(request, stream).await;
                }
            });
        }
    });
    url
}
