//! The server over loopback, byte by byte.

use std::net::{SocketAddr, TcpListener};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;

pub(super) struct Running {
    pub(super) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<Result<(), steadfast::Error>>,
}

pub(super) fn serve(tools: impl IntoIterator<Item = ServerTool>, options: HttpServerOptions) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let serving = server(tools).serve_http_on(listener).options(options);
    let serving = serving.shutdown_when(async move { drop(stopped.await) });
    Running { address, stop: Some(stop), served: tokio::spawn(serving.run()) }
}

impl Running {
    pub(super) async fn stop(mut self) {
        drop(self.stop.take());
        soon(self.served).await.unwrap().unwrap();
    }
}

/// The bytes of a request.
fn bytes(address: SocketAddr, sent: Sent) -> Vec<u8> {
    let mut head = format!("{} /mcp HTTP/1.1\r\n", sent.method);
    for (name, value) in sent.without("host").with("host", &address.to_string()).headers {
        head.extend([&name, ": ", &value, "\r\n"].map(str::to_owned));
    }
    head.into_bytes()
}

async fn exchange(stream: &mut TcpStream, address: SocketAddr, sent: Sent) -> String {
    let body = sent.body.clone();
    let mut request = bytes(address, sent);
    request.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
    request.extend_from_slice(&body);
    stream.write_all(&request).await.unwrap();
    read_until(stream, |text| {
        let Some((head, rest)) = text.split_once("\r\n\r\n") else { return false };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).and_then(|it| it.parse().ok());
        length.map_or(rest.ends_with("0\r\n\r\n"), |length: usize| rest.len() >= length)
    })
    .await
}

pub(super) async fn read_until(stream: &mut TcpStream, enough: impl Fn(&str) -> bool) -> String {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if enough(&text) {
            return text;
        }
        let mut buffer = [0; 4096];
        let count = soon(stream.read(&mut buffer)).await.unwrap();
        if count == 0 {
            return text;
        }
        read.extend_from_slice(&buffer[..count]);
    }
}

fn add(id: i64) -> Sent {
    Sent::modern(id, "tools/call", json!({"name": "echo", "arguments": {"text": "hi"}}))
}

#[tokio::test]
async fn one_connection_serves_many_requests_at_its_path() {
    let running = serve([echo()], HttpServerOptions::new());
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    for id in 0..3 {
        let answer = exchange(&mut stream, running.address, add(id)).await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"text\":\"hi\""), "{answer}");
    }
    stream.write_all(b"GET /other HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    assert!(read_until(&mut stream, |text| text.ends_with("\r\n\r\n")).await.starts_with("HTTP/1.1 404"));
    running.stop().await;
}

#[tokio::test]
async fn a_foreign_host_header_is_refused_by_default() {
    let running = serve([echo()], HttpServerOptions::new());
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    let request = b"POST /mcp HTTP/1.1\r\nhost: evil.example.com\r\ncontent-length: 0\r\n\r\n";
    stream.write_all(request).await.unwrap();
    assert!(read_until(&mut stream, |text| text.contains("\r\n\r\n")).await.starts_with("HTTP/1.1 403"));
    running.stop().await;
}

#[tokio::test]
async fn a_client_that_closes_its_connection_has_cancelled() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let running = serve([forever(&begun, &dropped)], HttpServerOptions::new());
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    let sent = Sent::modern(1, "tools/call", json!({"name": "forever"}));
    let body = sent.body.clone();
    let mut request = bytes(running.address, sent);
    request.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
    request.extend_from_slice(&body);
    stream.write_all(&request).await.unwrap();
    soon(begun.wait()).await;
    drop(stream);
    soon(dropped.wait()).await;
    running.stop().await;
}

#[tokio::test]
async fn a_slow_head_and_a_slow_body_time_out() {
    let mut options = HttpServerOptions::new();
    options = options.head_timeout(Duration::from_millis(50));
    options = options.body_timeout(Duration::from_millis(50));
    let running = serve([echo()], options);
    let mut slow_head = TcpStream::connect(running.address).await.unwrap();
    slow_head.write_all(b"POST /mcp HTT").await.unwrap();
    let mut slow_body = TcpStream::connect(running.address).await.unwrap();
    let mut request = bytes(running.address, add(1));
    request.extend_from_slice(b"content-length: 100\r\n\r\n{");
    slow_body.write_all(&request).await.unwrap();
    // Both time out, and another client is served meanwhile.
    let mut other = TcpStream::connect(running.address).await.unwrap();
    assert!(exchange(&mut other, running.address, add(2)).await.starts_with("HTTP/1.1 200"));
    assert!(read_until(&mut slow_body, |text| text.contains("\r\n\r\n")).await.starts_with("HTTP/1.1 408"));
    read_until(&mut slow_head, |_| false).await;
    running.stop().await;
}

#[tokio::test]
async fn a_handler_that_blocks_its_thread_delays_no_other_request() {
    let (begun, gate) = (Signal::default(), std::sync::Arc::new(std::sync::Barrier::new(2)));
    let (signal, barrier) = (begun.clone(), gate.clone());
    let tool = ServerTool::new("block").handler(move || {
        let (signal, barrier) = (signal.clone(), barrier.clone());
        async move {
            signal.set();
            barrier.wait();
        }
    });
    // Handlers run in a runtime of their own, whose only thread is blocked.
    let handlers = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = server([tool, echo()]).serve_http_on(listener).shutdown_when(async move { drop(stopped.await) });
    let served = handlers.spawn(serving.run());
    let mut blocked = TcpStream::connect(address).await.unwrap();
    let sent = Sent::modern(1, "tools/call", json!({"name": "block"}));
    let body = sent.body.clone();
    let mut request = bytes(address, sent);
    request.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
    request.extend_from_slice(&body);
    blocked.write_all(&request).await.unwrap();
    soon(begun.wait()).await;
    let mut other = TcpStream::connect(address).await.unwrap();
    let answer = exchange(&mut other, address, Sent::modern(2, "tools/list", json!({}))).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    gate.wait();
    drop(stop);
    soon(served).await.unwrap().unwrap();
    handlers.shutdown_background();
}

#[tokio::test]
async fn a_shutdown_waits_for_the_cleanup_of_a_call_whose_client_left() {
    let (begun, cleaned) = (Signal::default(), Signal::default());
    let (beginning, cleaning) = (begun.clone(), cleaned.clone());
    let tool = ServerTool::new("cleaned").handler(move |ctx: Context| {
        let (begun, cleaned) = (beginning.clone(), cleaning.clone());
        async move {
            ctx.on_cancel(async move {
                // Longer than it takes a server without connections to go.
                for _ in 0..10_000 {
                    tokio::task::yield_now().await;
                }
                cleaned.set();
            });
            begun.set();
            std::future::pending::<()>().await;
        }
    });
    let running = serve([tool], HttpServerOptions::new());
    let address = running.address;
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"}});
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let mut stream = TcpStream::connect(address).await.unwrap();
    let opened = exchange(&mut stream, address, Sent::post(&message)).await;
    let session = opened.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap().to_owned();
    let sent = Sent::in_session(&session, &call(1, "cleaned", json!({})));
    let body = sent.body.clone();
    let mut request = bytes(address, sent);
    request.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
    request.extend_from_slice(&body);
    stream.write_all(&request).await.unwrap();
    soon(begun.wait()).await;
    drop(stream);
    running.stop().await;
    assert_eq!(cleaned.count(), 1);
}

#[tokio::test]
async fn a_shutdown_waits_for_responses_and_accepts_no_connections() {
    let gate = Signal::default();
    let running = serve([gated(&gate)], HttpServerOptions::new());
    let address = running.address;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut sent = Sent::modern(1, "tools/call", json!({"name": "gated", "_meta": {"progressToken": 1}}));
    let body = std::mem::take(&mut sent.body);
    let mut request = bytes(address, sent);
    request.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
    request.extend_from_slice(&body);
    stream.write_all(&request).await.unwrap();
    read_until(&mut stream, |text| text.contains("notifications/progress")).await;
    let stopping = tokio::spawn(running.stop());
    gate.set();
    let rest = read_until(&mut stream, |text| text.ends_with("0\r\n\r\n")).await;
    assert!(rest.contains("let go"), "{rest}");
    soon(stopping).await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

/// Writes a request, and gives the connection that its answer comes on.
async fn send(address: SocketAddr, sent: Sent) -> TcpStream {
    let body = sent.body.clone();
    let mut request = bytes(address, sent);
    request.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
    request.extend_from_slice(&body);
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&request).await.unwrap();
    stream
}

/// Its first request may have been on its way when the shutdown began. The response says that nothing was started, which a
/// closed connection does not say.
#[tokio::test]
async fn a_connection_without_a_request_yet_is_answered_while_the_server_drains() {
    let gate = Signal::default();
    let mut limits = steadfast::Limits::default();
    (limits.drain_window, limits.drain_deadline) = (Duration::from_secs(600), Duration::from_secs(601));
    let running = serve([gated(&gate), echo()], HttpServerOptions::new().limits(limits));
    let address = running.address;
    let params = json!({"name": "gated", "_meta": {"progressToken": 1}});
    let mut busy = send(address, Sent::modern(1, "tools/call", params)).await;
    read_until(&mut busy, |text| text.contains("notifications/progress")).await;
    let mut silent = TcpStream::connect(address).await.unwrap();
    // Connections are accepted in their order.
    let list = || Sent::modern(2, "tools/list", json!({}));
    let answer = exchange(&mut TcpStream::connect(address).await.unwrap(), address, list()).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let stopping = tokio::spawn(running.stop());
    loop {
        let mut other = TcpStream::connect(address).await.unwrap();
        if exchange(&mut other, address, list()).await.starts_with("HTTP/1.1 503") {
            break;
        }
    }
    let answer = exchange(&mut silent, address, list()).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer:?}");
    gate.set();
    read_until(&mut busy, |text| text.ends_with("0\r\n\r\n")).await;
    soon(stopping).await.unwrap();
}

/// A client responds to an input request on another connection, which it may have to open first.
#[tokio::test]
async fn a_response_is_accepted_on_a_new_connection_while_the_server_drains() {
    let asks = ServerTool::new("asks").handler(|ctx: Context| async move {
        let roots = ctx.roots().await?;
        Ok::<_, steadfast::Error>(format!("{} roots", roots.roots.len()))
    });
    let mut limits = steadfast::Limits::default();
    (limits.drain_window, limits.drain_deadline) = (Duration::from_secs(600), Duration::from_secs(601));
    let running = serve([asks], HttpServerOptions::new().limits(limits));
    let address = running.address;
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"roots": {}},
        "clientInfo": {"name": "t", "version": "1"}});
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let mut stream = TcpStream::connect(address).await.unwrap();
    let opened = exchange(&mut stream, address, Sent::post(&message)).await;
    let session = opened.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap().to_owned();
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let mut telling = send(address, Sent::in_session(&session, &initialized)).await;
    let told = read_until(&mut telling, |text| text.contains("\r\n\r\n")).await;
    assert!(told.starts_with("HTTP/1.1 202"), "{told}");
    let mut asking = send(address, Sent::in_session(&session, &call(1, "asks", json!({})))).await;
    let asked = read_until(&mut asking, |text| text.contains("roots/list") && text.ends_with("\n\n\r\n")).await;
    let question =
        asked.lines().find_map(|line| line.strip_prefix("data: ").filter(|data| data.contains("roots/list")));
    let question: Value = serde_json::from_str(question.unwrap()).unwrap();
    let stopping = tokio::spawn(running.stop());
    // It has begun when new requests are refused.
    soon(async {
        loop {
            let ping = json!({"jsonrpc": "2.0", "id": "p", "method": "ping"});
            let mut other = send(address, Sent::in_session(&session, &ping)).await;
            let answer = read_until(&mut other, |text| text.contains("\r\n\r\n")).await;
            if answer.starts_with("HTTP/1.1 503") {
                return;
            }
        }
    })
    .await;
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": [{"uri": "file:///one"}]}});
    let mut answering = send(address, Sent::in_session(&session, &answer)).await;
    let taken = read_until(&mut answering, |text| text.contains("\r\n\r\n")).await;
    assert!(taken.starts_with("HTTP/1.1 202"), "{taken}");
    let rest = read_until(&mut asking, |text| text.ends_with("0\r\n\r\n")).await;
    assert!(rest.contains("1 roots"), "{rest}");
    soon(stopping).await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

/// Bytes that a client wrote after its request hide the end of the connection from a reader.
#[tokio::test]
async fn a_hang_up_with_unread_bytes_in_the_socket_cancels() {
    let dropped = Signal::default();
    let dropping = dropped.clone();
    let tool = ServerTool::new("streams").handler(move |ctx: Context| {
        let guard = dropping.on_drop();
        async move {
            ctx.progress(0.5, "half way");
            std::future::pending::<()>().await;
            drop(guard);
        }
    });
    let mut options = HttpServerOptions::new();
    // Nothing is written, so that a failed write cannot reveal the hang-up.
    options = options.comment_interval(Duration::from_secs(3600));
    let running = serve([tool], options);
    let call = Sent::modern(1, "tools/call", json!({"name": "streams", "_meta": {"progressToken": 1}}));
    let mut stream = send(running.address, call).await;
    read_until(&mut stream, |text| text.contains("notifications/progress")).await;
    stream.write_all(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\n").await.unwrap();
    drop(stream);
    soon(dropped.wait()).await;
    running.stop().await;
}

#[tokio::test]
async fn durations_without_an_end_are_taken() {
    let mut limits = steadfast::Limits::default();
    limits.drain_deadline = std::time::Duration::MAX;
    let options = HttpServerOptions::new().limits(limits).head_timeout(std::time::Duration::MAX);
    let running = serve([echo()], options);
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    let answer = exchange(&mut stream, running.address, Sent::modern(1, "tools/list", json!({}))).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    running.stop().await;
}
