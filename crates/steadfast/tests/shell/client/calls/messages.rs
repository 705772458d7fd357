//! How a client handles results, errors, notifications and progress.

use std::sync::{Arc, Mutex};

use steadfast::{ErrorKind, LoggingLevel};

use crate::client::*;

#[tokio::test]
async fn a_result_of_an_unknown_type_is_an_error_and_one_without_a_type_is_complete() {
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, |connecting| connecting).await;
    for (kind, taken) in [(None, true), (Some("complete"), true), (Some("partial"), false), (Some("task"), false)] {
        let mut result = json!({"content": [{"type": "text", "text": "x"}]});
        if let Some(kind) = kind {
            result["resultType"] = json!(kind);
        }
        let answering = async {
            let call = server.until("tools/call").await;
            server.answer(&call, result).await;
        };
        let called = with(client.call_tool("t", json!({})).into_future(), answering).await;
        match called {
            Ok(result) => assert!(taken && text(&result) == "x", "{kind:?}"),
            Err(error) => assert!(!taken && error.kind() == ErrorKind::Decode, "{kind:?} {error:?}"),
        }
    }
}

#[tokio::test]
async fn a_missing_resource_is_recognised_by_both_error_codes() {
    for era in ERAS {
        let (client, mut server) = RecordingServer::connected(era, |connecting| connecting).await;
        for (code, missing) in [(-32002, true), (-32001, false), (-32019, false), (-32042, false), (-32099, false)] {
            let answering = async {
                let read = server.until("resources/read").await;
                server.refuse(&read, code, json!({"uri": "a:1"})).await;
            };
            let error = with(client.read_resource("a:1").into_future(), answering).await.unwrap_err();
            let refusal = error.refusal().unwrap();
            assert_eq!((error.kind(), refusal.code), (ErrorKind::Refused, code));
            assert_eq!(refusal.is_resource_not_found(), missing, "{code}");
            // The data beside the code reaches the caller.
            assert_eq!(refusal.data.as_ref().unwrap()["uri"], "a:1");
        }
        server.is_quiet(&client).await;
    }
}

#[tokio::test]
async fn notifications_are_never_answered() {
    for era in ERAS {
        let (client, mut server) = RecordingServer::connected(era, |connecting| connecting).await;
        for method in ["notifications/never_heard_of", "notifications/elicitation/complete", "notifications/message"] {
            server.tell(method, json!({"elicitationId": "unknown"})).await;
            server.tell(method, json!([])).await;
        }
        server.tell("notifications/cancelled", json!({"requestId": 4711})).await;
        server.tell("notifications/cancelled", json!({})).await;
        server.tell("notifications/progress", json!({"progressToken": "unknown", "progress": 1})).await;
        server
            .tell("notifications/resources/updated", json!({"uri": "a:1", "_meta": {"io.modelcontextprotocol/x": [1]}}))
            .await;
        server.is_quiet(&client).await;
    }
}

#[tokio::test]
async fn a_client_of_2026_sends_no_responses() {
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, |connecting| {
        connecting.on_roots(|_| async { Ok(steadfast::ListRootsResult::default()) })
    })
    .await;
    for method in ["ping", "roots/list", "nothing"] {
        server.raw.send(&json!({"jsonrpc": "2.0", "id": 1, "method": method})).await;
    }
    server.raw.write(b"no message\n").await;
    server.is_quiet(&client).await;
}

#[tokio::test]
async fn each_call_has_its_own_progress_token() {
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, |connecting| connecting).await;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let call = |name: &'static str| {
        let heard = Arc::clone(&heard);
        client.call_tool(name, json!({})).on_progress(move |told| heard.lock().unwrap().push((name, told.progress)))
    };
    let answering = async {
        let (one, two) = (server.until("tools/call").await, server.until("tools/call").await);
        let token = |call: &Value| call["params"]["_meta"]["progressToken"].clone();
        assert!(token(&one).is_i64() || token(&one).is_string(), "{one}");
        assert_ne!(token(&one), token(&two));
        for call in [&two, &one] {
            let progress = if call["params"]["name"] == "one" { 1 } else { 2 };
            server.tell("notifications/progress", json!({"progressToken": token(call), "progress": progress})).await;
        }
        for call in [&one, &two] {
            server.answer(call, json!({"resultType": "complete", "content": []})).await;
            // Progress after the response is ignored.
            server.tell("notifications/progress", json!({"progressToken": token(call), "progress": 9})).await;
        }
    };
    let both = async { tokio::try_join!(call("one").into_future(), call("two").into_future()) };
    with(both, answering).await.unwrap();
    server.is_quiet(&client).await;
    let mut heard = heard.lock().unwrap().clone();
    heard.sort_by(|one, two| one.0.cmp(two.0));
    assert_eq!(heard, [("one", 1.0), ("two", 2.0)]);
}

#[tokio::test]
async fn a_tool_error_is_a_result() {
    for era in ERAS {
        let (client, mut server) = RecordingServer::connected(era, |connecting| connecting).await;
        let answering = async {
            let call = server.until("tools/call").await;
            let content = json!([{"type": "text", "text": "no such city: try Bonn"}]);
            server.answer(&call, json!({"resultType": "complete", "isError": true, "content": content})).await;
        };
        let result = with(client.call_tool("t", json!({})).into_future(), answering).await.unwrap();
        assert_eq!((result.is_error == Some(true), text(&result)), (true, "no such city: try Bonn"));
    }
}

#[tokio::test]
async fn a_log_level_is_sent_by_name() {
    let (connecting, mut server) = RecordingServer::new();
    let opening = async {
        let initialize = server.until("initialize").await;
        let mut result = initialized(&json!("2025-11-25"));
        result["capabilities"]["logging"] = json!({});
        server.answer(&initialize, result).await;
    };
    let client = with(connecting.negotiation(OLDER).into_future(), opening).await.unwrap();
    let answering = async {
        let set = server.until("logging/setLevel").await;
        assert_eq!(set["params"]["level"], "warning");
        server.answer(&set, json!({})).await;
    };
    with(client.set_log_level(LoggingLevel::Warning).into_future(), answering).await.unwrap();
}

#[tokio::test]
async fn a_client_of_2025_03_26_accepts_batches() {
    let (client, mut server) =
        RecordingServer::connected(NegotiationMode::Handshake(Revision::V2025_03_26), |connecting| connecting).await;
    let ping = |id: &str| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let told = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    server.raw.send(&json!([ping("a"), told, ping("b")])).await;
    let answers = server.next().await.unwrap();
    let ids: Vec<&Value> = answers.as_array().unwrap().iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, ["a", "b"], "{answers}");
    server.is_quiet(&client).await;
}
