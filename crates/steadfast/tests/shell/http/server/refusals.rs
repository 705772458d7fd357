//! Requests that are refused, with their status and error code.

use super::*;

async fn refusal(sent: Sent, service: &HttpService) -> (u16, Value) {
    let response = sent.to(service).await;
    let status = status(&response);
    (status, body(response).await["error"]["code"].clone())
}

/// A tool with a mirrored argument.
fn regional() -> ServerTool {
    ServerTool::new("regional")
        .input_schema(json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}))
        .handler(|arguments: JsonObject| async move { arguments.len() })
}

#[tokio::test]
async fn each_fault_of_a_modern_request_has_its_status_and_code() {
    let service = service([echo(), regional()]);
    let list = || Sent::modern(1, "tools/list", json!({}));
    let call = || Sent::modern(1, "tools/call", json!({"name": "echo", "arguments": {"text": "x"}}));
    let unknown = |version: &str| {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {}});
        Sent::post(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}))
    };
    let bare = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let cases = [
        ("no version header", list().without("mcp-protocol-version"), 400, -32020),
        (
            "other version",
            list().without("mcp-protocol-version").with("mcp-protocol-version", "2025-11-25"),
            400,
            -32020,
        ),
        ("unknown version", unknown("v999").with("mcp-protocol-version", "v999"), 400, -32022),
        ("no _meta", Sent::post(&bare).with("mcp-protocol-version", "2026-07-28"), 400, -32602),
        ("no method", list().without("mcp-method"), 400, -32020),
        ("other method", list().without("mcp-method").with("mcp-method", "TOOLS/LIST"), 400, -32020),
        ("method twice", list().with("mcp-method", "tools/list"), 400, -32020),
        ("no name", call().without("mcp-name"), 400, -32020),
        ("other name", call().without("mcp-name").with("mcp-name", "other"), 400, -32020),
        ("unknown method", Sent::modern(1, "no/such", json!({})), 404, -32601),
        ("initialize", Sent::modern(1, "initialize", json!({})), 404, -32601),
        ("ping", Sent::modern(1, "ping", json!({})), 404, -32601),
        ("unknown tool", Sent::modern(1, "tools/call", json!({"name": "x"})), 400, -32602),
        (
            "mirrored argument missing",
            Sent::modern(1, "tools/call", json!({"name": "regional", "arguments": {"region": "eu"}})),
            400,
            -32020,
        ),
        (
            "mirrored argument with bad base64",
            Sent::modern(1, "tools/call", json!({"name": "regional", "arguments": {"region": "eu"}}))
                .with("mcp-param-region", "=?base64?ZXU?="),
            400,
            -32020,
        ),
    ];
    for (what, sent, status, code) in cases {
        assert_eq!(refusal(sent, &service).await, (status, json!(code)), "{what}");
    }
}

#[tokio::test]
async fn a_mirrored_argument_is_accepted_in_plain_text_and_in_base64() {
    let service = service([regional()]);
    for value in ["eu", "=?base64?ZXU=?=", "  eu "] {
        let sent = Sent::modern(1, "tools/call", json!({"name": "regional", "arguments": {"region": "eu"}}));
        assert_eq!(status(&sent.with("mcp-param-region", value).to(&service).await), 200, "{value}");
    }
}

#[tokio::test]
async fn a_foreign_origin_or_host_is_forbidden() {
    let service = HttpService::new(
        server([]),
        HttpServerOptions::new().origin_policy(steadfast::transport::http::OriginPolicy::loopback()),
    );
    let list = || Sent::modern(1, "tools/list", json!({}));
    assert_eq!(status(&list().with("origin", "http://evil.example.com").to(&service).await), 403);
    assert_eq!(status(&list().without("host").with("host", "evil.example.com").to(&service).await), 403);
    assert_eq!(status(&list().with("host", "localhost").to(&service).await), 403, "twice");
    assert_eq!(status(&list().with("origin", "http://localhost:1").to(&service).await), 200);
}

#[tokio::test]
async fn invalid_bodies_are_bad_requests() {
    let service = service([]);
    for garbage in ["", "{", "[]", "7", "null", "\u{0}", "{\"jsonrpc\":\"2.0\"}", "[[]]"] {
        for version in [None, Some("2026-07-28")] {
            let mut sent = Sent::post(&Value::Null);
            sent.body = garbage.into();
            if let Some(version) = version {
                sent = sent.with("mcp-protocol-version", version);
            }
            assert_eq!(status(&sent.to(&service).await), 400, "{garbage:?} {version:?}");
        }
    }
}

#[tokio::test]
async fn unsupported_content_types_and_http_methods_are_refused() {
    let service = service([]);
    let list = || Sent::modern(1, "tools/list", json!({}));
    let modern = |method| Sent::new(method).with("mcp-protocol-version", "2026-07-28");
    assert_eq!(status(&list().without("content-type").to(&service).await), 415);
    assert_eq!(status(&list().without("accept").with("accept", "application/json").to(&service).await), 406);
    assert_eq!(status(&modern("GET").to(&service).await), 405);
    assert_eq!(status(&modern("DELETE").to(&service).await), 405);
    assert_eq!(status(&Sent::new("PUT").to(&service).await), 405);
}

#[tokio::test]
async fn a_body_past_the_limit_is_refused() {
    let mut limits = steadfast::Limits::default();
    limits.message_bytes = 300;
    let server = Server::builder("test", "1").limits(limits).build();
    let service = HttpService::new(server, HttpServerOptions::new());
    let long = Sent::modern(1, "tools/list", json!({"x": "y".repeat(300)}));
    assert_eq!(status(&long.to(&service).await), 413);
    assert_eq!(status(&Sent::modern(1, "tools/list", json!({})).to(&service).await), 200);
}

#[tokio::test]
async fn past_the_request_limit_the_status_is_503() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let mut limits = steadfast::Limits::default();
    limits.in_flight = 1;
    let server = Server::builder("test", "1").tool(forever(&begun, &dropped)).limits(limits).build();
    let service = HttpService::new(server, HttpServerOptions::new());
    let first = tokio::spawn(Sent::modern(1, "tools/call", json!({"name": "forever"})).begin(&service));
    soon(begun.wait()).await;
    assert_eq!(status(&Sent::modern(2, "tools/list", json!({})).to(&service).await), 503);
    first.abort();
    let _ = first.await;
    // Its place is free when it has really ended, which may be a moment later.
    soon(async {
        while status(&Sent::modern(3, "tools/list", json!({})).to(&service).await) != 200 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(dropped.count(), 1);
}

#[tokio::test]
async fn a_method_header_that_differs_from_the_body_is_refused_in_older_revisions_too() {
    let service = service([echo()]);
    let session = open(&service, "2025-11-25").await;
    let message = call(1, "echo", json!({"text": "x"}));
    for (said, expected) in [("tools/list", 400), ("tools/call", 200)] {
        for revision in ["2025-11-25", "2027-01-01"] {
            let sent = Sent::in_session(&session, &message).with("mcp-method", said);
            let response = sent.with("mcp-protocol-version", revision).to(&service).await;
            let expected = if revision == "2027-01-01" { 400 } else { expected };
            assert_eq!(status(&response), expected, "{said} {revision}");
        }
    }
}
