//! Headers that mirror the body (2026-07-28).

use std::net::TcpListener;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

/// A tool with an argument of each kind that can be mirrored.
fn mirrored() -> ServerTool {
    let schema = json!({"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"},
        "other": {"type": "string"},
    }});
    ServerTool::new("mirrored").input_schema(schema).handler(|arguments: JsonObject| async move { arguments.len() })
}

fn call(arguments: &Value) -> Sent {
    Sent::modern(1, "tools/call", json!({"name": "mirrored", "arguments": arguments}))
}

/// The status, and the code if there is an error.
async fn judged(sent: Sent, service: &HttpService) -> (u16, Option<i64>) {
    let response = sent.to(service).await;
    let status = status(&response);
    (status, body(response).await["error"]["code"].as_i64())
}

#[tokio::test]
async fn a_parameter_header_must_match_the_body() {
    let service = service([mirrored()]);
    for (arguments, name, value) in [
        (json!({"region": "eu"}), "region", "eu"),
        (json!({"region": "日本"}), "region", "=?base64?5pel5pys?="),
        (json!({"region": " eu"}), "region", "=?base64?IGV1?="),
        (json!({"region": "=?BASE64?ZXU=?="}), "region", "=?BASE64?ZXU=?="),
        (json!({"count": 42}), "count", "42"),
        (json!({"count": 42}), "count", "42.0"),
        (json!({"count": 42.0}), "count", "42"),
        (json!({"count": 9_007_199_254_740_991_i64}), "count", "9007199254740991"),
        (json!({"dry": false}), "dry", "false"),
        // A header without an argument of its name is ignored.
        (json!({"other": "x"}), "other", "y"),
        (json!({}), "unheard-of", "\"?"),
    ] {
        let sent = call(&arguments).with(&format!("mcp-param-{name}"), value);
        assert_eq!(judged(sent, &service).await, (200, None), "{arguments} {name}: {value}");
    }
    for (arguments, name, value) in [
        (json!({"region": "eu"}), "region", "us"),
        (json!({"region": "eu"}), "region", "EU"),
        // The marks of an encoded value are in small letters, so this is not one.
        (json!({"region": "eu"}), "region", "=?BASE64?ZXU=?="),
        (json!({"region": "eu"}), "region", "=?base64?ZXU?="),
        (json!({"region": "eu"}), "region", "=?base64?!!!?="),
        (json!({"region": "é"}), "region", "é"),
        (json!({"count": 42}), "count", "43"),
        (json!({"count": 42}), "count", "forty-two"),
        (json!({"count": 9_007_199_254_740_993_i64}), "count", "9007199254740992"),
        (json!({"count": 9_007_199_254_740_993_i64}), "count", "9007199254740993"),
        (json!({"dry": false}), "dry", "no"),
        (json!({}), "region", "eu"),
        (json!({"region": null}), "region", "null"),
    ] {
        let sent = call(&arguments).with(&format!("mcp-param-{name}"), value);
        assert_eq!(judged(sent, &service).await, (400, Some(-32020)), "{arguments} {name}: {value}");
    }
}

#[tokio::test]
async fn a_header_is_expected_exactly_where_there_is_a_value() {
    let service = service([mirrored()]);
    for arguments in [json!({}), json!({"region": null}), json!({"other": "x"})] {
        assert_eq!(judged(call(&arguments), &service).await, (200, None), "{arguments}");
    }
    for arguments in [json!({"region": "eu"}), json!({"region": ""}), json!({"count": 0}), json!({"dry": false})] {
        assert_eq!(judged(call(&arguments), &service).await, (400, Some(-32020)), "{arguments}");
    }
}

#[tokio::test]
async fn a_name_in_base64_is_decoded_before_it_is_compared() {
    let odd = ServerTool::new("größe").handler(|| async { "ran" });
    let service = service([odd]);
    let sent = || Sent::modern(1, "tools/call", json!({"name": "größe"})).without("mcp-name");
    assert_eq!(judged(sent().with("mcp-name", "=?base64?Z3LDtsOfZQ==?="), &service).await, (200, None));
    for wrong in ["=?BASE64?Z3LDtsOfZQ==?=", "=?base64?Z3LDtsOfZQ?=", "=?base64?AAAA?="] {
        assert_eq!(judged(sent().with("mcp-name", wrong), &service).await, (400, Some(-32020)), "{wrong}");
    }
}

#[tokio::test]
async fn header_names_are_case_insensitive() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = server([mirrored()]).serve_http_on(listener).shutdown_when(async move { drop(stopped.await) });
    let served = tokio::spawn(serving.run());
    for write in [str::to_ascii_uppercase, str::to_ascii_lowercase] {
        let sent = call(&json!({"region": "eu"})).with("Mcp-Param-Region", "eu").with("connection", "close");
        let mut request = "POST /mcp HTTP/1.1\r\n".to_owned();
        let length = sent.body.len().to_string();
        let mut headers = sent.without("host").with("host", &address.to_string()).with("content-length", &length);
        let body = std::mem::take(&mut headers.body);
        for (name, value) in headers.headers {
            request.extend([&*write(&name), ": ", &value, "\r\n"]);
        }
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("{request}\r\n").as_bytes()).await.unwrap();
        stream.write_all(&body).await.unwrap();
        let mut answer = String::new();
        soon(stream.read_to_string(&mut answer)).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{request}{answer}");
    }
    drop(stop);
    soon(served).await.unwrap().unwrap();
}
