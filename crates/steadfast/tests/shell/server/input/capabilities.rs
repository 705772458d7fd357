//! Input is requested only with capabilities that the client declared, and in the form that the revision has.

use steadfast::{CreateMessageParams, SamplingMessage};

use crate::server::*;

const KINDS: [(&str, &str); 5] = [
    ("form", "elicitation/create"),
    ("url", "elicitation/create"),
    ("sample", "sampling/createMessage"),
    ("tools", "sampling/createMessage"),
    ("roots", "roots/list"),
];

/// A tool for each kind of input.
fn curious() -> Server {
    let form = ServerTool::new("form").handler(|ctx: Context| async move {
        ctx.elicit::<bool>("?").await?;
        Ok::<_, ToolError>("")
    });
    let url = ServerTool::new("url").handler(|ctx: Context| async move {
        ctx.elicit_url("Log in", "https://example.org/").await?;
        Ok::<_, ToolError>("")
    });
    let sample = ServerTool::new("sample").handler(|ctx: Context| async move {
        ctx.sample("A word?").await?;
        Ok::<_, ToolError>("")
    });
    let tools = ServerTool::new("tools").handler(|ctx: Context| async move {
        let params = CreateMessageParams::new(vec![SamplingMessage::user("?")], 10);
        ctx.sample(params.with_tools(vec![steadfast::model::Tool::new("t")])).await?;
        Ok::<_, ToolError>("")
    });
    let roots = ServerTool::new("roots").handler(|ctx: Context| async move {
        ctx.roots().await?;
        Ok::<_, ToolError>("")
    });
    server([form, url, sample, tools, roots])
}

/// The capability that each kind of input needs, alone.
fn needed(kind: &str) -> Value {
    match kind {
        "form" => json!({"elicitation": {"form": {}}}),
        "url" => json!({"elicitation": {"url": {}}}),
        "sample" => json!({"sampling": {}}),
        "tools" => json!({"sampling": {"tools": {}}}),
        _ => json!({"roots": {}}),
    }
}

#[tokio::test]
async fn input_without_a_declared_capability_is_not_requested() {
    let server = curious();
    for (declared, _) in KINDS {
        for mut peer in Peer::of_both_eras(&server, needed(declared)).await {
            for (kind, _) in KINDS {
                // Tools come on top of plain sampling.
                if kind == declared || (kind, declared) == ("sample", "tools") {
                    continue;
                }
                let answer = peer.call(kind, json!({})).await;
                let refused = if peer.meta.is_some() { -32021 } else { -32603 };
                assert_eq!(answer["error"]["code"], refused, "{kind} with {declared}: {answer}");
                assert!(peer.before.is_empty(), "{kind} with {declared}: {:?}", peer.before);
            }
        }
    }
}

#[tokio::test]
async fn in_2026_input_is_requested_in_results_and_never_by_requests() {
    let server = curious();
    for (kind, method) in KINDS {
        let mut peer = Peer::modern(&server, needed(kind));
        let answer = peer.call(kind, json!({})).await;
        assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
        let requests = answer["result"]["inputRequests"].as_object().unwrap();
        assert_eq!(requests.values().map(|request| &request["method"]).collect::<Vec<_>>(), [method]);
        assert!(peer.before.is_empty(), "{:?}", peer.before);
    }
}

#[tokio::test]
async fn include_context_is_sent_only_when_set() {
    let server = curious();
    let mut modern = Peer::modern(&server, needed("sample"));
    let answer = modern.call("sample", json!({})).await;
    let asked = answer["result"]["inputRequests"]["sample-1"]["params"].clone();
    let mut older = Peer::handshake(&server, needed("sample")).await;
    older.begin("tools/call", json!({"name": "sample"})).await;
    let request = older.line().await;
    assert_eq!(request["method"], "sampling/createMessage");
    for params in [&asked, &request["params"]] {
        assert!(params["messages"].is_array() && params.get("includeContext").is_none(), "{params}");
    }
}

#[tokio::test]
async fn a_message_has_a_role_and_content() {
    let mut peer = Peer::modern(&curious(), needed("sample"));
    let answer = peer.call("sample", json!({})).await;
    let messages = &answer["result"]["inputRequests"]["sample-1"]["params"]["messages"];
    assert_eq!(messages, &json!([{"role": "user", "content": {"type": "text", "text": "A word?"}}]));
}

#[tokio::test]
async fn an_invalid_sampling_conversation_is_not_sent() {
    use steadfast::{
        Content, Role,
        model::{ToolResultContent, ToolUseContent},
    };
    let uses = || {
        let call = Content::ToolUse(ToolUseContent::new("1", "t", JsonObject::new()));
        SamplingMessage::new(Role::Assistant, vec![call])
    };
    let result = || Content::ToolResult(ToolResultContent::new("1", Vec::new()));
    let unanswered = vec![uses()];
    let mixed = vec![uses(), SamplingMessage::new(Role::User, vec![result(), Content::text("and")])];
    for messages in [unanswered, mixed] {
        let tool = ServerTool::new("tools").handler(move |ctx: Context| {
            let params = CreateMessageParams::new(messages.clone(), 10);
            async move {
                ctx.sample(params.with_tools(vec![steadfast::model::Tool::new("t")])).await?;
                Ok::<_, ToolError>("")
            }
        });
        let server = server([tool]);
        for mut peer in Peer::of_both_eras(&server, needed("tools")).await {
            let answer = peer.call("tools", json!({})).await;
            assert!(answer["error"].is_object() && peer.before.is_empty(), "{answer}");
        }
    }
}

#[tokio::test]
async fn a_change_of_roots_does_not_disturb_a_pending_roots_request() {
    let server = curious();
    let mut peer = Peer::handshake(&server, json!({"roots": {"listChanged": true}})).await;
    let call = peer.begin("tools/call", json!({"name": "roots"})).await;
    let asked = peer.line().await;
    assert_eq!(asked["method"], "roots/list");
    peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})).await;
    peer.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}})).await;
    assert_eq!(peer.answer(call).await["result"]["isError"], Value::Null);
    // A later request gets the new roots.
    peer.begin("tools/call", json!({"name": "roots"})).await;
    assert_eq!(peer.line().await["method"], "roots/list");
}
