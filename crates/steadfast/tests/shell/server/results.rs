//! Members that every result of 2026-07-28 has.

use steadfast::server::tasks::TaskMode;
use steadfast::server::{ServerPrompt, ServerResource};

use super::*;

/// A server that supports every method.
fn complete() -> Server {
    Server::builder("complete", "1.2.3")
        .tool(echo())
        .tool(
            ServerTool::new("task").task(TaskMode::Required).handler(|ctx: Context| async move {
                ctx.elicit::<bool>("?").key("yes").await.map(|yes| yes.to_string())
            }),
        )
        .tool(ServerTool::new("ask").handler(|ctx: Context| async move { ctx.elicit::<bool>("?").await.map(drop) }))
        .prompt(ServerPrompt::new("p").optional_argument("x", "").complete("x", ["a"]).handler(|| async { "" }))
        .resource(ServerResource::new("note://1", "n").text(""))
        .build()
}

/// The result of every method that a client can call.
async fn results() -> Vec<(&'static str, Value)> {
    let mut peer =
        Peer::modern(&complete(), json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}));
    let reference = json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "x", "value": ""}});
    let mut results = Vec::new();
    for (method, params) in [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("tools/call", json!({"name": "echo", "arguments": {"text": "x"}})),
        ("tools/call", json!({"name": "ask"})),
        ("tools/call", json!({"name": "task"})),
        ("prompts/list", json!({})),
        ("prompts/get", json!({"name": "p"})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": "note://1"})),
        ("completion/complete", reference),
    ] {
        let answer = peer.ask(method, params).await;
        assert!(answer["result"].is_object(), "{method}: {answer}");
        results.push((method, answer["result"].clone()));
    }
    let task = results.iter().find_map(|(_, result)| result["taskId"].as_str()).unwrap().to_owned();
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let answer = peer.ask(method, json!({"taskId": task, "inputResponses": {}})).await;
        assert!(answer["result"].is_object(), "{method}: {answer}");
        results.push((method, answer["result"].clone()));
    }
    results
}

#[tokio::test]
async fn every_result_has_its_type_and_server_info() {
    for (method, result) in results().await {
        let kind = result["resultType"].as_str().unwrap_or_default();
        assert!(["complete", "input_required", "task"].contains(&kind), "{method}: {result}");
        let server = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
        assert_eq!(server, &json!({"name": "complete", "version": "1.2.3"}), "{method}: {result}");
    }
}

#[tokio::test]
async fn cacheable_results_have_ttl_and_scope_and_others_do_not() {
    const KEPT: [&str; 6] = [
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    ];
    for (method, result) in results().await {
        let kept = KEPT.contains(&method);
        // For a task it means something else: how long the task exists.
        let of_a_task = result["taskId"].is_string();
        assert_eq!(result["ttlMs"].as_u64().is_some(), kept || of_a_task, "{method}: {result}");
        let scope = result["cacheScope"].as_str();
        assert_eq!(scope, kept.then_some("private"), "{method}: nobody said that it may be shared: {result}");
    }
}

#[tokio::test]
async fn error_messages_are_one_short_sentence() {
    let broken =
        ServerTool::new("broken").handler(|| async { std::panic::resume_unwind(Box::new("on purpose")) as () });
    let server =
        Server::builder("test", "1").tool(broken).resource(ServerResource::new("note://1", "n").text("")).build();
    let long = "x".repeat(5_000);
    for mut peer in Peer::of_both_eras(&server, json!({})).await {
        let mut errors = Vec::new();
        for (method, params) in [
            ("no/such", json!({})),
            (&*long, json!({})),
            ("tools/call", json!({"name": "no-such"})),
            ("tools/call", json!({"name": long})),
            ("tools/call", json!({"name": 7})),
            ("tools/call", json!({"name": "broken"})),
            ("prompts/get", json!({"name": long})),
            ("resources/read", json!({"uri": long})),
            ("tools/list", json!({"cursor": long})),
            ("completion/complete", json!({})),
        ] {
            errors.push(peer.ask(method, params).await["error"].clone());
        }
        for line in ["{", "7", r#"{"jsonrpc":"2.0","id":"x"}"#, r#"{"jsonrpc":"1.0","id":"x","method":"ping"}"#] {
            peer.raw.write(format!("{line}\n").as_bytes()).await;
            errors.push(peer.line().await["error"].clone());
        }
        for error in errors {
            let message = error["message"].as_str().unwrap_or_default();
            assert!((1..300).contains(&message.len()) && !message.contains('\n'), "{error}");
            assert!(!message.contains(". "), "{message}");
        }
    }
}
