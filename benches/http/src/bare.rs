//! The limit: an axum endpoint that parses a call of `add` and answers it, and knows nothing of MCP.
//!
//! No header is looked at, no other method exists, nothing is limited and nothing can be cancelled: what is left is what
//! axum, hyper and serde cost.

use axum::routing::post;
use axum::{Json, Router};
use bench_kit::endpoint::{PATH, announce, end_with_input};
use serde::{Deserialize, Serialize};

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    use axum::serve::ListenerExt;
    end_with_input();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    announce(listener.local_addr()?)?;
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, Router::new().route(PATH, post(add))).await?;
    Ok(())
}

async fn add(Json(call): Json<Call>) -> Json<Answer> {
    let Arguments { a, b } = call.params.arguments;
    let text = a.wrapping_add(b).to_string();
    Json(Answer {
        jsonrpc: "2.0",
        id: call.id,
        result: Outcome { result_type: "complete", content: [Text { kind: "text", text }] },
    })
}

#[derive(Deserialize)]
struct Call {
    id: u64,
    params: Params,
}

#[derive(Deserialize)]
struct Params {
    arguments: Arguments,
}

#[derive(Deserialize)]
struct Arguments {
    a: i64,
    b: i64,
}

#[derive(Serialize)]
struct Answer {
    jsonrpc: &'static str,
    id: u64,
    result: Outcome,
}

#[derive(Serialize)]
struct Outcome {
    #[serde(rename = "resultType")]
    result_type: &'static str,
    content: [Text; 1],
}

#[derive(Serialize)]
struct Text {
    #[serde(rename = "type")]
    kind: &'static str,
    text: String,
}
