//! Request states and tasks belong to the principal that the transport identified.

use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use steadfast::prelude::*;
use steadfast::server::tasks::TaskMode;
use steadfast::transport::http::{HttpServerOptions, HttpService};
use steadfast::{
    Principal,
    model::{TASKS_EXTENSION, code},
};
use tower_service::Service;

use crate::{server, soon};

/// Sends a request of 2026-07-28 as a principal.
async fn post(service: &HttpService, who: &str, method: &str, name: &str, more: Value) -> Value {
    let mut params = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "extensions": {TASKS_EXTENSION: {}}},
    }});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = http::Request::post("http://localhost/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method)
        .header("mcp-name", name)
        .header("x-who", who)
        .body(Full::new(bytes::Bytes::from(message.to_string())))
        .unwrap();
    let response = soon(service.clone().call(request)).await.unwrap();
    let body = soon(response.into_body().collect()).await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap()
}

fn identified(tool: ServerTool) -> HttpService {
    let who = |parts: &http::request::Parts| Some(parts.headers.get("x-who")?.to_str().ok()?.to_owned());
    HttpService::new(server([tool]), HttpServerOptions::default().identify(who))
}

fn name(ctx: &Context) -> String {
    ctx.principal().map_or("nobody", Principal::name).to_owned()
}

fn agree() -> ServerTool {
    ServerTool::new("agree").handler(|ctx: Context| async move {
        ctx.elicit::<bool>("Do you agree?").await?;
        Ok::<_, ToolError>(format!("{} agrees", name(&ctx)))
    })
}

#[tokio::test]
async fn a_request_state_belongs_to_its_principal() {
    let service = identified(agree());
    let asked = post(&service, "ann", "tools/call", "agree", json!({"name": "agree"})).await;
    let retry = json!({
        "name": "agree",
        "inputResponses": {"elicit-1": {"action": "accept", "content": {"answer": true}}},
        "requestState": asked["result"]["requestState"],
    });
    let stolen = post(&service, "bob", "tools/call", "agree", retry.clone()).await;
    assert_eq!(stolen["error"]["code"], code::INVALID_PARAMS, "{stolen}");
    let told = post(&service, "ann", "tools/call", "agree", retry).await;
    assert_eq!(told["result"]["content"][0]["text"], "ann agrees", "{told}");
}

#[tokio::test]
async fn a_task_belongs_to_its_principal() {
    let tool = ServerTool::new("who").task(TaskMode::Required).handler(|ctx: Context| async move { name(&ctx) });
    let service = identified(tool);
    let begun = post(&service, "ann", "tools/call", "who", json!({"name": "who"})).await;
    let id = begun["result"]["taskId"].as_str().unwrap().to_owned();
    let stolen = post(&service, "bob", "tasks/get", &id, json!({"taskId": id})).await;
    assert!(stolen["error"].is_object(), "{stolen}");
    let shown = loop {
        let shown = post(&service, "ann", "tasks/get", &id, json!({"taskId": id})).await;
        if shown["result"]["status"] != "working" {
            break shown;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(shown["result"]["result"]["content"][0]["text"], "ann", "{shown}");
}
