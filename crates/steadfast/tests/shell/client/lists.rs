//! Lists on the client: item by item, over any number of pages.

use serde_json::{Value, json};
use steadfast::client::NegotiationMode;
use steadfast::prelude::*;
use steadfast::{ErrorKind, FaultParty, Outcome, Reference, Revision};

use crate::soon;
use crate::support::scripted;

fn everything() -> Server {
    let mut builder = Server::builder("lists", "1.0.0").page_size(2);
    for number in 0..5 {
        let name = format!("t{number}");
        builder = builder
            .tool(ServerTool::new(&name).handler(|| async { "" }))
            .prompt(
                steadfast::server::ServerPrompt::new(&name)
                    .optional_argument("a", "")
                    .complete("a", ["Bergen", "Oslo"])
                    .handler(|arguments: std::collections::BTreeMap<String, String>| async move {
                        arguments.get("a").cloned().unwrap_or_default()
                    }),
            )
            .resource(steadfast::server::ServerResource::new(format!("a:{number}"), &name).text("text"))
            .resource_template(
                steadfast::server::ServerResourceTemplate::new(format!("b{number}:{{x}}"), &name)
                    .handler(|| async { "" }),
            );
    }
    builder.build()
}

#[tokio::test]
async fn every_list_is_complete_and_in_order() {
    for era in [NegotiationMode::Stateless, NegotiationMode::Handshake(Revision::V2025_06_18)] {
        let client = Client::connect(everything()).negotiation(era).await.unwrap();
        let expected = ["t0", "t1", "t2", "t3", "t4"];
        let tools = soon(client.tools().all()).await.unwrap();
        assert_eq!(tools.iter().map(|item| &*item.name).collect::<Vec<_>>(), expected);
        let prompts = soon(client.prompts().all()).await.unwrap();
        assert_eq!(prompts.iter().map(|item| &*item.name).collect::<Vec<_>>(), expected);
        let resources = soon(client.resources().all()).await.unwrap();
        assert_eq!(resources.iter().map(|item| &*item.name).collect::<Vec<_>>(), expected);
        let templates = soon(client.resource_templates().all()).await.unwrap();
        assert_eq!(templates.iter().map(|item| &*item.name).collect::<Vec<_>>(), expected);
    }
}

#[tokio::test]
async fn listed_items_can_be_read_rendered_and_completed() {
    for era in [NegotiationMode::Stateless, NegotiationMode::Handshake(Revision::V2025_11_25)] {
        let client = Client::connect(everything()).negotiation(era).await.unwrap();
        let read = client.read_resource("a:3").await.unwrap();
        assert_eq!(serde_json::to_value(&read.contents).unwrap()[0]["text"], "text");
        let filled = client.get_prompt("t1", json!({ "a": "Oslo" })).await.unwrap();
        assert_eq!(filled.messages, [steadfast::PromptMessage::user("Oslo")]);
        let completed = client.complete(Reference::prompt("t1"), "a", "Be").await.unwrap();
        assert_eq!(completed.completion.values, ["Bergen"]);
    }
}

#[tokio::test]
async fn a_page_is_fetched_when_it_is_needed_and_not_before() {
    let page = |number: usize, params: &Value| {
        assert_eq!(params.get("cursor").is_some(), number > 0);
        json!({"resultType": "complete", "tools": [{"name": format!("t{number}"), "inputSchema": {"type": "object"}}],
            "nextCursor": "next", "ttlMs": 0, "cacheScope": "private"})
    };
    let (connecting, requests) = scripted(page);
    let client = connecting.await.unwrap();
    let mut tools = client.tools();
    assert_eq!(requests.lock().unwrap().len(), 0);
    for number in 0..3 {
        assert_eq!(soon(tools.next()).await.unwrap().unwrap().name, format!("t{number}"));
        assert_eq!(requests.lock().unwrap().len(), number + 1);
    }
}

#[tokio::test]
async fn a_list_without_an_end_ends_with_an_error() {
    let page = |_: usize, _: &Value| json!({"resultType": "complete", "tools": [], "nextCursor": "again", "ttlMs": 0, "cacheScope": "private"});
    let (connecting, _) = scripted(page);
    let client = connecting.await.unwrap();
    let mut tools = client.tools();
    let error = soon(tools.next()).await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Limit, Outcome::Answered));
    assert_eq!(error.fault(), FaultParty::Peer);
    assert!(soon(tools.next()).await.is_none());
}

#[tokio::test]
async fn collecting_a_list_is_bounded_and_streaming_is_not() {
    let page = |_: usize, _: &Value| {
        let tool = json!({"name": "t", "description": "x".repeat(15 << 20), "inputSchema": {"type": "object"}});
        json!({"resultType": "complete", "tools": [tool], "nextCursor": "again", "ttlMs": 0, "cacheScope": "private"})
    };
    let (connecting, requests) = scripted(page);
    let client = connecting.await.unwrap();
    let error = soon(client.list_tools()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Limit, Outcome::Answered));
    assert_eq!(error.fault(), FaultParty::Peer);
    assert_eq!(requests.lock().unwrap().len(), 5);
    let mut tools = client.tools();
    for _ in 0..6 {
        soon(tools.next()).await.unwrap().unwrap();
    }
}
