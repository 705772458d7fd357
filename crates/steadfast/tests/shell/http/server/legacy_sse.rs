//! HTTP+SSE, the transport of 2024-11-05: one stream is the connection, and messages come in POSTs.

use super::*;

fn options() -> HttpServerOptions {
    HttpServerOptions::new().legacy_sse("/sse")
}

fn legacy(tools: impl IntoIterator<Item = ServerTool>) -> HttpService {
    HttpService::new(server(tools), options())
}

fn get() -> Sent {
    Sent::new("GET").at("/sse").without("accept").with("accept", "text/event-stream")
}

/// A client of that time: its stream, and where it POSTs to.
struct Client {
    service: HttpService,
    events: Events,
    endpoint: String,
}

impl Client {
    /// Opens the stream, and nothing else.
    async fn connect(service: &HttpService) -> Self {
        Self::answered(service, get().to(service).await).await
    }

    async fn answered(service: &HttpService, response: Response<HttpServiceBody>) -> Self {
        let mut events = Events::of(response);
        let first = events.next().await.unwrap();
        assert_eq!(first.name, "endpoint");
        Self { service: service.clone(), events, endpoint: String::from_utf8(first.data).unwrap() }
    }

    /// Opens the stream, and does the handshake.
    async fn open(service: &HttpService, revision: &str) -> Self {
        let mut client = Self::connect(service).await;
        client.initialize(revision).await;
        client
    }

    async fn initialize(&mut self, revision: &str) {
        let params = json!({"protocolVersion": revision, "capabilities": {"roots": {}},
            "clientInfo": {"name": "test", "version": "1"}});
        self.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})).await;
        assert_eq!(self.message().await["result"]["protocolVersion"], revision);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    }

    fn post(&self, message: &Value) -> Sent {
        Sent::post(message).at(&self.endpoint).without("accept")
    }

    /// Sends a message that is accepted.
    async fn send(&self, message: &Value) {
        let response = self.post(message).to(&self.service).await;
        assert_eq!(status(&response), 202);
    }

    /// What a message is answered with that is not taken.
    async fn refused(&self, message: &Value) -> u16 {
        status(&self.post(message).to(&self.service).await)
    }

    /// The next event, which has to be a message.
    async fn message(&mut self) -> Value {
        let event = self.events.next().await.unwrap();
        assert_eq!(event.name, "message");
        serde_json::from_slice(&event.data).unwrap()
    }
}

fn ping(id: i64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "ping"})
}

fn revisions() -> [&'static str; 4] {
    ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
}

#[tokio::test]
async fn the_first_event_is_an_endpoint_that_cannot_be_guessed() {
    let service = legacy([]);
    let (first, second) = (Client::connect(&service).await, Client::connect(&service).await);
    assert_ne!(first.endpoint, second.endpoint);
    let id = first.endpoint.strip_prefix("/sse?session_id=").unwrap();
    assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
}

#[tokio::test]
async fn responses_are_sent_on_the_stream_in_every_older_revision() {
    let service = legacy([echo()]);
    for revision in revisions() {
        let mut client = Client::open(&service, revision).await;
        client.send(&call(1, "echo", json!({"text": "hi"}))).await;
        let answer = client.message().await;
        assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(1), &json!("hi")), "{answer}");
    }
}

#[tokio::test]
async fn progress_and_log_messages_precede_the_response() {
    let tool = ServerTool::new("talk").handler(|ctx: Context| async move {
        ctx.log(steadfast::LoggingLevel::Warning, "mind the step");
        ctx.progress(0.5, "half way");
        "done"
    });
    let service = HttpService::new(Server::builder("test", "1.0.0").tools([tool]).build(), options());
    let mut client = Client::open(&service, "2024-11-05").await;
    let mut message = call(1, "talk", json!({}));
    message["params"]["_meta"] = json!({"progressToken": "t"});
    client.send(&message).await;
    let mut methods = vec![client.message().await["method"].clone(), client.message().await["method"].clone()];
    methods.sort_by_key(ToString::to_string);
    assert_eq!(methods, ["notifications/message", "notifications/progress"]);
    assert_eq!(client.message().await["result"]["content"][0]["text"], "done");
}

#[tokio::test]
async fn an_input_request_is_on_the_stream_and_its_response_is_posted() {
    let tool = ServerTool::new("look").handler(|ctx: Context| async move {
        let roots = ctx.roots().await?;
        Ok::<_, ToolError>(format!("{}", roots.roots.len()))
    });
    let service = legacy([tool]);
    let mut client = Client::open(&service, "2024-11-05").await;
    client.send(&call(1, "look", json!({}))).await;
    let asked = client.message().await;
    assert_eq!(asked["method"], "roots/list");
    let result = json!({"roots": [{"uri": "file:///a"}, {"uri": "file:///b"}]});
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})).await;
    assert_eq!(client.message().await["result"]["content"][0]["text"], "2");
}

#[tokio::test]
async fn a_cancelled_call_is_not_answered() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let service = legacy([forever(&begun, &dropped)]);
    let mut client = Client::open(&service, "2024-11-05").await;
    client.send(&call(1, "forever", json!({}))).await;
    soon(begun.wait()).await;
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    client.send(&cancelled).await;
    soon(dropped.wait()).await;
    client.send(&ping(2)).await;
    assert_eq!(client.message().await["id"], 2);
}

#[tokio::test]
async fn posting_to_an_unknown_session_is_not_found() {
    let service = legacy([]);
    let mut client = Client::open(&service, "2024-11-05").await;
    let good = client.endpoint.clone();
    for (endpoint, expected) in [
        ("/sse?session_id=00000000000000000000000000000000", 404),
        ("/sse?session_id=", 404),
        ("/sse", 400),
        (&format!("{good}&session_id=1"), 400),
    ] {
        endpoint.clone_into(&mut client.endpoint);
        assert_eq!(client.refused(&ping(1)).await, expected, "{endpoint}");
    }
    client.endpoint = good;
    client.send(&ping(2)).await;
    assert_eq!(client.message().await["id"], 2);
}

#[tokio::test]
async fn sessions_of_the_two_transports_are_separate() {
    let service = legacy([]);
    let client = Client::open(&service, "2025-06-18").await;
    let id = client.endpoint.strip_prefix("/sse?session_id=").unwrap();
    assert_eq!(status(&Sent::in_session(id, &ping(1)).to(&service).await), 404);
    let session = open(&service, "2025-06-18").await;
    let endpoint = format!("/sse?session_id={session}");
    assert_eq!(status(&Sent::post(&ping(1)).at(&endpoint).to(&service).await), 404);
}

#[tokio::test]
async fn closing_the_stream_ends_the_session() {
    let service = legacy([]);
    let client = Client::open(&service, "2024-11-05").await;
    assert_eq!(service.sessions(), 1);
    let post = client.post(&ping(1));
    drop(client);
    assert_eq!(service.sessions(), 0);
    assert_eq!(status(&post.to(&service).await), 404);
}

#[tokio::test]
async fn closing_the_stream_stops_handlers_and_runs_cleanups() {
    let (begun, dropped, cleaned) = (Signal::default(), Signal::default(), Signal::default());
    let signals = (begun.clone(), dropped.clone(), cleaned.clone());
    let tool = ServerTool::new("forever").handler(move |ctx: Context| {
        let (begun, dropped, cleaned) = signals.clone();
        async move {
            let _dropped = dropped.on_drop();
            ctx.on_cancel(async move { cleaned.set() });
            begun.set();
            std::future::pending::<()>().await;
        }
    });
    let service = legacy([tool]);
    let client = Client::open(&service, "2024-11-05").await;
    client.send(&call(1, "forever", json!({}))).await;
    soon(begun.wait()).await;
    drop(client);
    soon(dropped.wait()).await;
    soon(cleaned.wait()).await;
    assert_eq!((dropped.count(), cleaned.count()), (1, 1));
}

#[tokio::test]
async fn a_call_that_waits_for_its_client_ends_when_the_stream_closes() {
    let ended = Signal::default();
    let signal = ended.clone();
    let tool = ServerTool::new("look").cooperative().handler(move |ctx: Context| {
        let signal = signal.clone();
        async move {
            let lost = ctx.roots().await.is_err();
            assert!(lost);
            signal.set();
        }
    });
    let service = legacy([tool]);
    let mut client = Client::open(&service, "2024-11-05").await;
    client.send(&call(1, "look", json!({}))).await;
    assert_eq!(client.message().await["method"], "roots/list");
    drop(client);
    soon(ended.wait()).await;
}

#[tokio::test]
async fn the_legacy_stream_is_off_by_default() {
    let service = HttpService::new(server([]), HttpServerOptions::new());
    assert_eq!(status(&get().to(&service).await), 400);
    assert_eq!(service.sessions(), 0);
}

#[tokio::test]
async fn a_wrong_origin_or_host_is_refused_at_both_ends() {
    let service =
        HttpService::new(server([]), options().origin_policy(steadfast::transport::http::OriginPolicy::loopback()));
    assert_eq!(status(&get().with("origin", "https://evil.example.com").to(&service).await), 403);
    let elsewhere = get().without("host").with("host", "evil.example.com");
    assert_eq!(status(&elsewhere.to(&service).await), 403);
    assert_eq!(service.sessions(), 0);
    let mut client = Client::open(&service, "2024-11-05").await;
    let post = client.post(&ping(1)).with("origin", "https://evil.example.com");
    assert_eq!(status(&post.to(&service).await), 403);
    client.send(&ping(2)).await;
    assert_eq!(client.message().await["id"], 2);
}

#[tokio::test]
async fn an_endpoint_is_unknown_to_another_principal() {
    let identify = |parts: &::http::request::Parts| Some(parts.headers.get("x-user")?.to_str().ok()?.to_owned());
    let service = HttpService::new(server([]), options().identify(identify));
    let mut client = Client::answered(&service, get().with("x-user", "alice").to(&service).await).await;
    assert_eq!(client.refused(&ping(1)).await, 404);
    assert_eq!(status(&client.post(&ping(1)).with("x-user", "mallory").to(&service).await), 404);
    assert_eq!(status(&client.post(&ping(2)).with("x-user", "alice").to(&service).await), 202);
    assert_eq!(client.message().await["id"], 2);
}

#[tokio::test]
async fn an_invalid_message_is_refused_in_the_response_of_its_post() {
    let mut limits = steadfast::Limits::default();
    limits.message_bytes = 1_000;
    let service = HttpService::new(server([]), options().limits(limits));
    let mut client = Client::open(&service, "2024-11-05").await;
    let mut garbage = client.post(&ping(1));
    garbage.body = b"{\"jsonrpc\":".to_vec();
    assert_eq!(status(&garbage.to(&service).await), 400);
    let mut long = client.post(&ping(1));
    long.body = vec![b' '; 1_001];
    assert_eq!(status(&long.to(&service).await), 413);
    let plain = client.post(&ping(1)).without("content-type").with("content-type", "text/plain");
    assert_eq!(status(&plain.to(&service).await), 415);
    assert_eq!(status(&get().without("accept").with("accept", "text/html").to(&service).await), 406);
    let modern = Sent::modern(1, "tools/list", json!({})).at(&client.endpoint);
    assert_eq!(status(&modern.to(&service).await), 400);
    let delete = Sent::new("DELETE").at(&client.endpoint).to(&service).await;
    assert_eq!((status(&delete), header(&delete, "allow")), (405, "GET, POST"));
    // No message of it was sent on the stream.
    client.send(&ping(2)).await;
    assert_eq!(client.message().await["id"], 2);
}

#[tokio::test]
async fn an_id_in_flight_is_refused() {
    let gate = Signal::default();
    let service = legacy([gated(&gate)]);
    let mut client = Client::open(&service, "2024-11-05").await;
    client.send(&call(1, "gated", json!({}))).await;
    assert_eq!(client.refused(&call(1, "gated", json!({}))).await, 400);
    gate.set();
    assert_eq!(client.message().await["result"]["content"][0]["text"], "let go");
    assert!(client.events.is_silent().await);
}

#[tokio::test]
async fn an_unread_stream_buffers_a_bounded_amount() {
    let mut limits = steadfast::Limits::default();
    limits.outbox_bytes = 4_096;
    let service = HttpService::new(server([]), options().limits(limits));
    let mut client = Client::open(&service, "2024-11-05").await;
    let mut taken = 0_i64;
    loop {
        match status(&client.post(&ping(taken)).to(&service).await) {
            202 => taken += 1,
            503 => break,
            other => panic!("{other}"),
        }
        assert!(taken < 1_000, "there is no limit");
    }
    // Somebody else is served meanwhile.
    let mut other = Client::open(&service, "2024-11-05").await;
    other.send(&ping(1)).await;
    assert_eq!(other.message().await["id"], 1);
    // What was taken is answered once it is read, and then there is room again.
    for id in 0..taken {
        assert_eq!(client.message().await["id"], id);
    }
    client.send(&ping(taken)).await;
    assert_eq!(client.message().await["id"], taken);
}

#[tokio::test]
async fn past_the_limit_of_sessions_a_stream_is_refused() {
    let mut options = options();
    options = options.max_sessions(1);
    let service = HttpService::new(server([]), options);
    let client = Client::connect(&service).await;
    assert_eq!(status(&get().to(&service).await), 503);
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}});
    assert_eq!(status(&Sent::post(&initialize).to(&service).await), 503);
    drop(client);
    Client::open(&service, "2024-11-05").await;
}

#[tokio::test]
async fn a_stream_without_a_handshake_is_closed() {
    let mut options = options();
    options = options.session_idle_timeout(Duration::from_millis(20));
    let service = HttpService::new(server([]), options);
    let mut client = Client::connect(&service).await;
    assert!(client.events.next().await.is_none());
    assert_eq!(client.refused(&ping(1)).await, 404);
}

#[tokio::test]
async fn an_unread_stream_is_closed() {
    let mut options = options();
    options = options.comment_interval(Duration::from_millis(1)).session_idle_timeout(Duration::from_millis(20));
    let service = HttpService::new(server([]), options);
    let client = Client::connect(&service).await;
    let params =
        json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    client.post(&message).to(&service).await;
    let gone = async {
        while service.sessions() > 0 {
            tokio::task::yield_now().await;
        }
    };
    soon(gone).await;
    assert_eq!(client.refused(&ping(1)).await, 404);
}

#[tokio::test]
async fn a_silent_stream_is_kept_alive_with_comments() {
    let mut options = options();
    options = options.comment_interval(Duration::from_millis(1));
    let service = HttpService::new(server([]), options);
    let mut client = Client::open(&service, "2024-11-05").await;
    for _ in 0..3 {
        let comment = soon(client.events.body.frame()).await.unwrap().unwrap().into_data().unwrap();
        assert!(comment.starts_with(b":"), "{comment:?}");
    }
}

#[tokio::test]
async fn a_shutdown_lets_handlers_answer_and_ends_the_stream() {
    let gate = Signal::default();
    let service = legacy([gated(&gate)]);
    let mut client = Client::open(&service, "2024-11-05").await;
    client.send(&call(1, "gated", json!({}))).await;
    service.shutdown();
    assert_eq!(status(&get().to(&service).await), 503);
    gate.set();
    assert_eq!(client.message().await["result"]["content"][0]["text"], "let go");
    assert!(client.events.next().await.is_none());
}

#[tokio::test]
async fn the_endpoint_has_the_prefix_that_a_router_strips() {
    let service = HttpService::new(server([]), HttpServerOptions::new().legacy_sse("/tools/sse"));
    let mut client = Client::connect(&service).await;
    let rest = client.endpoint.strip_prefix("/tools").unwrap().to_owned();
    assert!(rest.starts_with("/sse?session_id="), "{rest}");
    client.endpoint = rest;
    client.send(&ping(1)).await;
    assert_eq!(client.message().await["id"], 1);
}

#[tokio::test]
async fn a_client_that_closes_its_socket_has_closed_its_stream() {
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpStream;

    let (begun, dropped) = (Signal::default(), Signal::default());
    let running = sockets::serve([forever(&begun, &dropped)], options());
    let host = running.address;
    let mut events = TcpStream::connect(host).await.unwrap();
    let get = format!("GET /sse HTTP/1.1\r\nhost: {host}\r\naccept: text/event-stream\r\n\r\n");
    events.write_all(get.as_bytes()).await.unwrap();
    let head = sockets::read_until(&mut events, |text| text.contains("\n\n")).await;
    let endpoint = head.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned();
    let post = async |message: Value| {
        let mut stream = TcpStream::connect(host).await.unwrap();
        let (body, kind) = (message.to_string(), "content-type: application/json\r\nconnection: close");
        let length = body.len();
        let request =
            format!("POST {endpoint} HTTP/1.1\r\nhost: {host}\r\n{kind}\r\ncontent-length: {length}\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).await.unwrap();
        sockets::read_until(&mut stream, |_| false).await
    };
    let params =
        json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let answer = post(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})).await;
    assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    sockets::read_until(&mut events, |text| text.contains("\"protocolVersion\":\"2024-11-05\"")).await;
    post(call(1, "forever", json!({}))).await;
    soon(begun.wait()).await;
    drop(events);
    soon(dropped.wait()).await;
    let answer = post(ping(2)).await;
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    running.stop().await;
}

/// L7: the limit of the service holds for requests of the old transport too.
#[tokio::test]
async fn legacy_requests_count_towards_the_request_limit() {
    let mut limits = steadfast::Limits::default();
    limits.in_flight = 2;
    let running = Signal::default();
    let begun = running.clone();
    let tool = ServerTool::new("wait").handler(move || {
        begun.set();
        async { std::future::pending::<()>().await }
    });
    let options = HttpServerOptions::new().legacy_sse("/sse").limits(limits);
    let service = HttpService::new(server([tool]), options);
    let (mut taken, mut streams) = (0, Vec::new());
    for _ in 0..6 {
        let get = Sent::new("GET").at("/sse").without("accept").with("accept", "text/event-stream");
        let mut events = Events::of(get.to(&service).await);
        let endpoint = String::from_utf8(events.next().await.unwrap().data).unwrap();
        let params = json!({"protocolVersion": "2024-11-05", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}});
        let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let response = Sent::post(&initialize).at(&endpoint).to(&service).await;
        if status(&response) == 202 {
            events.next().await.unwrap();
        }
        let response = Sent::post(&call(1, "wait", json!({}))).at(&endpoint).to(&service).await;
        if status(&response) == 202 {
            running.wait().await;
            taken += 1;
        }
        streams.push(events);
    }
    assert!(taken <= 2, "{taken} requests run at once, and 2 is the limit");
}

#[tokio::test]
async fn messages_that_are_no_requests_do_not_fill_an_unread_stream_with_errors() {
    let mut limits = steadfast::Limits::default();
    limits.outbox_bytes = 4_096;
    for revision in ["2024-11-05", "2025-03-26"] {
        let service = HttpService::new(server([]), options().limits(limits.clone()));
        let mut client = Client::open(&service, revision).await;
        let mut taken = 0;
        loop {
            match status(&client.post(&json!([1])).to(&service).await) {
                202 => taken += 1,
                503 => break,
                other => panic!("{other}"),
            }
            assert!(taken < 1_000, "there is no limit");
        }
        // What is never answered is taken in any case.
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}})).await;
        for _ in 0..taken {
            client.message().await;
        }
        client.send(&ping(1)).await;
        assert_eq!(client.message().await["id"], 1);
    }
}

#[tokio::test]
async fn a_request_counts_until_its_shield_has_ended() {
    let (begun, release) = (Signal::default(), Signal::default());
    let mut limits = steadfast::Limits::default();
    limits.in_flight = 1;
    let service = HttpService::new(server([shielded(&begun, &release)]), options().limits(limits));
    let mut one = Client::open(&service, "2025-11-25").await;
    let mut two = Client::open(&service, "2025-11-25").await;
    one.send(&call(1, "shielded", json!({}))).await;
    soon(begun.wait()).await;
    one.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})).await;
    for id in 2..10 {
        assert_eq!(two.refused(&ping(id)).await, 503);
    }
    release.set();
    soon(async {
        while two.refused(&ping(2)).await != 202 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(two.message().await["id"], 2);
    one.send(&ping(3)).await;
    assert_eq!(one.message().await["id"], 3);
}
