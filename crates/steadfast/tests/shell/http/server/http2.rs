//! HTTP/2 with prior knowledge: many requests on one connection, and some that are reset.

use std::net::SocketAddr;

use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use tokio::net::TcpStream;

use super::sockets::serve;
use super::*;

struct Client {
    requests: SendRequest<Bytes>,
    address: SocketAddr,
}

impl Client {
    async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let (requests, connection) = h2::client::handshake(stream).await.unwrap();
        // It ends when the last handle on it is dropped.
        tokio::spawn(async move { drop(connection.await) });
        Self { requests, address }
    }

    /// Sends a request, and leaves the rest to the caller.
    async fn begin(&mut self, sent: Sent) -> (ResponseFuture, SendStream<Bytes>) {
        let mut request = Request::builder().method(sent.method).uri(format!("http://{}{}", self.address, sent.path));
        for (name, value) in sent.headers.iter().filter(|(name, _)| name != "host") {
            request = request.header(name, value);
        }
        let mut requests = soon(self.requests.clone().ready()).await.unwrap();
        let (response, mut body) = requests.send_request(request.body(()).unwrap(), sent.body.is_empty()).unwrap();
        if !sent.body.is_empty() {
            body.send_data(sent.body.into(), true).unwrap();
        }
        (response, body)
    }

    async fn send(&mut self, sent: Sent) -> Response<RecvStream> {
        let (response, _) = self.begin(sent).await;
        soon(response).await.unwrap()
    }
}

/// Reads until the text is long enough, or ends.
async fn read_until(body: &mut RecvStream, enough: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    while !enough(&text) {
        let Some(data) = soon(body.data()).await else { break };
        let data = data.unwrap();
        body.flow_control().release_capacity(data.len()).unwrap();
        text.push_str(std::str::from_utf8(&data).unwrap());
    }
    text
}

fn watched(id: i64) -> Sent {
    Sent::modern(id, "tools/call", json!({"name": "gated", "_meta": {"progressToken": id}}))
}

#[tokio::test]
async fn a_stream_of_events_and_other_calls_share_a_connection() {
    let gate = Signal::default();
    let running = serve([gated(&gate), echo()], HttpServerOptions::new());
    let mut client = Client::connect(running.address).await;
    let mut events = client.send(watched(1)).await;
    assert_eq!(events.headers()["content-type"], "text/event-stream");
    read_until(events.body_mut(), |text| text.contains("notifications/progress")).await;
    let echo = Sent::modern(2, "tools/call", json!({"name": "echo", "arguments": {"text": "hi"}}));
    let mut answer = client.send(echo).await;
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["content-type"]),
        (200, &"application/json".parse().unwrap())
    );
    assert!(read_until(answer.body_mut(), |_| false).await.contains("\"hi\""));
    gate.set();
    assert!(read_until(events.body_mut(), |_| false).await.contains("let go"));
    drop((client, events, answer));
    running.stop().await;
}

/// Resets a call before it has a response, or while it is read.
async fn reset(options: HttpServerOptions, responded: bool) {
    let (begun, dropped, gate) = (Signal::default(), Signal::default(), Signal::default());
    let running = serve([forever(&begun, &dropped), gated(&gate)], options);
    let mut client = Client::connect(running.address).await;
    let mut neighbour = client.send(watched(1)).await;
    let (response, mut body) = client.begin(Sent::modern(2, "tools/call", json!({"name": "forever"}))).await;
    soon(begun.wait()).await;
    let response = if responded { Ok(soon(response).await.unwrap()) } else { Err(response) };
    body.send_reset(Reason::CANCEL);
    soon(dropped.wait()).await;
    gate.set();
    assert!(read_until(neighbour.body_mut(), |_| false).await.contains("let go"));
    drop((client, neighbour, response));
    running.stop().await;
}

#[tokio::test]
async fn a_reset_request_of_2026_is_cancelled_and_others_continue() {
    reset(HttpServerOptions::new(), false).await;
    let mut options = HttpServerOptions::new();
    options = options.stream_after(Duration::ZERO);
    reset(options, true).await;
}

#[tokio::test]
async fn a_reset_request_of_a_session_continues() {
    let (begun, gate, dropped, finished) = (Signal::default(), Signal::default(), Signal::default(), Signal::default());
    let signals = (begun.clone(), gate.clone(), dropped.clone(), finished.clone());
    let tool = ServerTool::new("work").handler(move |ctx: Context| {
        let (begun, gate, cancelled, finished) = signals.clone();
        async move {
            ctx.on_cancel(async move { cancelled.set() });
            begun.set();
            gate.wait().await;
            finished.set();
        }
    });
    let running = serve([tool], HttpServerOptions::new());
    let mut client = Client::connect(running.address).await;
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let opened = client.send(Sent::post(&initialize)).await;
    let session = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let (response, mut body) = client.begin(Sent::in_session(&session, &call(1, "work", json!({})))).await;
    soon(begun.wait()).await;
    body.send_reset(Reason::CANCEL);
    drop(response);
    // Whatever the reset does has been done once a later request of the connection was answered.
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    assert_eq!(client.send(Sent::in_session(&session, &ping)).await.status(), 200);
    gate.set();
    soon(finished.wait()).await;
    assert_eq!(dropped.count(), 0);
    drop((client, opened, body));
    running.stop().await;
}

#[tokio::test]
async fn a_foreign_host_header_is_refused() {
    let running = serve([echo()], HttpServerOptions::new());
    let mut client = Client::connect(running.address).await;
    client.address = "192.0.2.1:80".parse().unwrap();
    assert_eq!(client.send(Sent::modern(1, "tools/list", json!({}))).await.status(), 403);
    drop(client);
    running.stop().await;
}

#[tokio::test]
async fn a_connection_without_a_request_times_out() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let mut options = HttpServerOptions::new();
    options = options.head_timeout(Duration::from_millis(50));
    let running = serve([echo()], options);
    // Nothing at all; what both begin with; and HTTP/2 without a request.
    for beginning in ["", "P", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"] {
        let mut stream = TcpStream::connect(running.address).await.unwrap();
        stream.write_all(beginning.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        // Reset or closed: it is over either way.
        let _ = soon(stream.read_to_end(&mut rest)).await;
    }
    running.stop().await;
}
