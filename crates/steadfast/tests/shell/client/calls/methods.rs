//! Every request of a client has a method of `Client`.

use std::collections::BTreeSet;

use steadfast::{
    ClientCapabilities, ErrorKind, ListRootsResult, LoggingLevel, Method, Reference, SubscriptionFilter,
    model::InputResponses,
};

use crate::client::manual_server::*;

/// Makes every request that there is a method for.
async fn everything(client: Client) {
    let _ = client.discover().await;
    let _ = client.ping().await;
    let _ = client.list_tools().await;
    let _ = client.call_tool("t", json!({})).await;
    let _ = client.list_prompts().await;
    let _ = client.get_prompt("p", json!({ "a": "b" })).await;
    let _ = client.list_resources().await;
    let _ = client.list_resource_templates().await;
    let _ = client.read_resource("a:1").await;
    let _ = client.subscribe("a:1").await;
    let _ = client.unsubscribe("a:1").await;
    let _ = client.changes(SubscriptionFilter::new()).next().await;
    let _ = client.complete(Reference::prompt("p"), "a", "b").await;
    let _ = client.set_log_level(LoggingLevel::Info).await;
    let _ = client.get_task("t").await;
    let _ = client.task_result("t").await;
    let _ = client.tasks().all().await;
    let _ = client.cancel_task("t").await;
    let _ = client.update_task("t", InputResponses::new()).await;
    client.roots_changed();
}

#[tokio::test]
async fn every_client_request_has_a_method_and_is_checked_against_the_revision() {
    for (era, revision) in [(NegotiationMode::Stateless, Revision::V2026_07_28), (HANDSHAKE, Revision::V2025_11_25)] {
        let roots = |_| async { Ok(ListRootsResult::default()) };
        let declared = ClientCapabilities::new().with_roots(true);
        let settings = |connecting: ConnectBuilder| connecting.capabilities(declared).on_roots(roots);
        let (client, mut server) = ManualServer::connect(era, settings).await;
        let made = tokio::spawn(everything(client));
        let mut seen = BTreeSet::new();
        while let Some(line) = soon(server.lines.next_line()).await.unwrap() {
            let message: Value = serde_json::from_str(&line).unwrap();
            seen.insert(message["method"].as_str().unwrap().to_owned());
            if message.get("id").is_some() {
                server.refuse(&message, -32600).await;
            }
        }
        soon(made).await.unwrap();
        // Messages that the client sends by itself, or only during a call.
        let by_itself = ["initialize", "notifications/initialized", "notifications/cancelled"];
        let of_its_own_requests = ["notifications/progress", "notifications/tasks/status"];
        let of_table = Method::ALL.iter().filter(|method| method.from_client_in(revision)).map(|method| method.name());
        let expected: BTreeSet<String> = of_table
            .filter(|name| !by_itself.contains(name) && !of_its_own_requests.contains(name))
            .map(str::to_owned)
            .collect();
        let seen: BTreeSet<String> = seen.into_iter().filter(|name| !by_itself.contains(&&**name)).collect();
        assert_eq!(seen, expected, "{era:?}");
    }
}

#[tokio::test]
async fn a_page_request_times_out() {
    let (client, mut server) = ManualServer::modern(|connecting| connecting).await;
    let listed = tokio::spawn(client.tools().timeout(Duration::from_millis(1)).all());
    server.asked("tools/list").await;
    assert_eq!(soon(listed).await.unwrap().unwrap_err().kind(), ErrorKind::TimedOut);
}

#[tokio::test]
async fn a_result_of_an_unknown_type_is_an_error() {
    let (client, mut server) = ManualServer::modern(|connecting| connecting).await;
    let call = tokio::spawn(client.call_tool("t", json!({})).into_future());
    server.serve("tools/call", json!({"resultType": "maybe", "content": []})).await;
    assert_eq!(soon(call).await.unwrap().unwrap_err().kind(), ErrorKind::Decode);
}
