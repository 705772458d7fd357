//! 2026-07-28: which messages are accepted, which are refused, and what is on a stream.

use super::*;

#[tokio::test]
async fn the_origin_is_checked_for_every_method_and_era() {
    let service = service([]);
    let session = open(&service, "2025-11-25").await;
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}});
    let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let requests = || {
        [
            Sent::modern(1, "tools/list", json!({})),
            Sent::modern(1, "subscriptions/listen", json!({"notifications": {}})),
            Sent::post(&note).with("mcp-protocol-version", "2026-07-28"),
            Sent::post(&initialize),
            Sent::in_session(&session, &json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})),
            Sent::new("GET").with("mcp-session-id", &session),
            Sent::new("DELETE").with("mcp-session-id", &session),
        ]
    };
    for origin in ["http://evil.example.com", "null", "https://localhost.evil.example.com", "not an origin"] {
        for sent in requests() {
            let method = sent.method;
            assert_eq!(status(&sent.with("origin", origin).to(&service).await), 403, "{method} from {origin}");
        }
    }
    assert_eq!(service.sessions(), 1, "and nothing came of it");
}

#[tokio::test]
async fn a_body_is_one_request_or_one_notification() {
    let service = service([echo()]);
    let list = || Sent::modern(1, "tools/list", json!({}));
    let one = String::from_utf8(list().body).unwrap();
    for body in [
        format!("[{one}]"),
        format!("{one}{one}"),
        format!("{one}\n{one}"),
        json!({"jsonrpc": "2.0", "id": 1, "result": {}}).to_string(),
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}}).to_string(),
    ] {
        let response = list().with_body(&body).to(&service).await;
        assert_eq!(status(&response), 400, "{body}");
    }
    assert_eq!(status(&list().to(&service).await), 200);
}

#[tokio::test]
async fn a_notification_that_is_refused_has_an_error_status() {
    let service = service([]);
    let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let sent = || Sent::post(&note).with("mcp-protocol-version", "2026-07-28");
    let refused = [
        ("parameters that are none", sent().changed(|message| message["params"] = json!(7))),
        ("another jsonrpc", sent().changed(|message| message["jsonrpc"] = json!("1.0"))),
        ("no JSON", sent().with_body("{")),
        ("another kind of content", sent().without("content-type").with("content-type", "text/plain")),
        ("another page", sent().with("origin", "http://evil.example.com")),
    ];
    for (what, sent) in refused {
        let response = sent.to(&service).await;
        assert!(response.status().is_client_error(), "{what}: {}", response.status());
    }
    assert_eq!(status(&sent().to(&service).await), 202);
}

#[tokio::test]
async fn a_stream_has_only_messages_of_its_own_request() {
    let gate = Signal::default();
    let server = server([talker(&gate)]);
    let service = HttpService::new(server, HttpServerOptions::new());
    let listen = json!({"notifications": {"toolsListChanged": true}});
    let mut listening = Events::of(Sent::modern(9, "subscriptions/listen", listen).to(&service).await);
    listening.message().await.unwrap();
    let call = |who: &str| {
        let meta = json!({"progressToken": "same", "io.modelcontextprotocol/logLevel": "debug"});
        Sent::capable("talk", json!({}), meta).changed(|message| message["params"]["arguments"]["who"] = json!(who))
    };
    let mut streams = Vec::new();
    for who in ["ann", "bob"] {
        let mut events = Events::of(call(who).to(&service).await);
        let first = [events.message().await.unwrap(), events.message().await.unwrap()];
        streams.push((who, first, events));
    }
    gate.set();
    for (who, first, events) in streams {
        gate.set();
        let rest = events.all().await;
        assert_eq!(rest.len(), 1);
        assert!(first.iter().chain(&rest).all(|message| about(message) == who), "{who}: {first:?} {rest:?}");
    }
    assert!(listening.is_silent().await, "nothing of it came to who listens");
}

#[tokio::test]
async fn input_is_requested_in_a_result_and_no_request_is_on_a_stream() {
    let tool = ServerTool::new("ask").handler(|ctx: Context| async move {
        ctx.progress(0.5, "before I ask");
        tokio::task::yield_now().await;
        ctx.elicit::<bool>("?").await.map(|yes| yes.to_string())
    });
    let service = service([tool]);
    let sent = Sent::capable("ask", json!({"elicitation": {}}), json!({"progressToken": 1}));
    let messages = Events::of(sent.to(&service).await).all().await;
    assert_eq!(messages.last().unwrap()["result"]["resultType"], "input_required", "{messages:?}");
    let is_request = |message: &&Value| message.get("method").is_some() && message.get("id").is_some();
    assert_eq!(messages.iter().find(is_request), None);
}

#[tokio::test]
async fn no_message_of_a_request_is_sent_after_its_stream_closes() {
    let (gate, done) = (Signal::default(), Signal::default());
    let signals = (gate.clone(), done.clone());
    let tool = ServerTool::new("late").cooperative().handler(move |ctx: Context| {
        let (gate, done) = signals.clone();
        async move {
            ctx.progress(0.1, "begun");
            ctx.cancelled().await;
            gate.wait().await;
            ctx.progress(0.9, "too late");
            ctx.log(steadfast::LoggingLevel::Error, "too late");
            done.set();
            "too late"
        }
    });
    let service = service([tool]);
    let listen = json!({"notifications": {"toolsListChanged": true}});
    let mut listening = Events::of(Sent::modern(1, "subscriptions/listen", listen).to(&service).await);
    listening.message().await.unwrap();
    let meta = json!({"progressToken": 1, "io.modelcontextprotocol/logLevel": "debug"});
    let mut events = Events::of(Sent::capable("late", json!({}), meta).to(&service).await);
    events.message().await.unwrap();
    drop(events);
    gate.set();
    soon(done.wait()).await;
    // A request of the same id is another request.
    let list = body(Sent::modern(1, "tools/list", json!({})).to(&service).await).await;
    assert!(list["result"]["tools"].is_array(), "{list}");
    assert!(listening.is_silent().await);
}

#[tokio::test]
async fn a_request_without_a_required_member_is_a_bad_request() {
    let needy = ServerTool::new("needy")
        .needs(steadfast::server::RequiredClientCapability::Sampling)
        .handler(|| async { "ran" });
    let service = service([needy]);
    let asked = |sent: Sent| async {
        let response = sent.to(&service).await;
        let status = status(&response);
        (status, body(response).await["error"].clone())
    };
    for member in ["protocolVersion", "clientCapabilities"] {
        let sent = Sent::modern(1, "tools/list", json!({})).changed(|message| {
            let meta = message["params"]["_meta"].as_object_mut().unwrap();
            meta.remove(&format!("io.modelcontextprotocol/{member}"));
        });
        let (status, error) = asked(sent).await;
        assert_eq!((status, &error["code"]), (400, &json!(-32602)), "{member}: {error}");
    }
    let (status, error) = asked(Sent::capable("needy", json!({}), json!({}))).await;
    assert_eq!((status, &error["code"]), (400, &json!(-32021)), "{error}");
    assert_eq!(error["data"]["requiredCapabilities"], json!({"sampling": {}}));
    let unknown = Sent::modern(1, "tools/list", json!({}))
        .changed(|message| message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2030-01-01"))
        .without("mcp-protocol-version")
        .with("mcp-protocol-version", "2030-01-01");
    let (status, error) = asked(unknown).await;
    assert_eq!((status, &error["code"]), (400, &json!(-32022)), "{error}");
    assert_eq!(error["data"], json!({"requested": "2030-01-01", "supported": ["2026-07-28"]}));
}

#[tokio::test]
async fn session_and_event_id_headers_are_ignored_in_2026() {
    let service = service([echo()]);
    for (name, value) in [("mcp-session-id", "no-such"), ("last-event-id", "0-0")] {
        let response = Sent::modern(1, "tools/list", json!({})).with(name, value).to(&service).await;
        assert_eq!((status(&response), header(&response, "mcp-session-id")), (200, ""), "{name}");
    }
    for method in ["GET", "DELETE"] {
        let sent = Sent::new(method).with("mcp-protocol-version", "2026-07-28").with("mcp-session-id", "no-such");
        assert_eq!(status(&sent.to(&service).await), 405, "{method}");
    }
}
