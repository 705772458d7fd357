//! URL elicitation: the request, and the notification after the URL was visited.

use steadfast::{
    ElicitParams,
    model::{ElicitUrlParams, code},
};

use crate::server::*;

fn visit(url: &'static str) -> Server {
    let tool = ServerTool::new("visit").handler(move |ctx: Context| async move {
        ctx.elicit_url("Log in", url).await?;
        Ok::<_, ToolError>("went")
    });
    server([tool])
}

fn urls() -> Value {
    json!({"elicitation": {"url": {}}})
}

#[tokio::test]
async fn an_invalid_elicitation_url_is_not_sent() {
    for wrong in
        ["", "example.org/login", "/login", "https:", "https://", "https:///login", "https://a b", "https://a\n"]
    {
        for mut peer in Peer::of_both_eras(&visit(wrong), urls()).await {
            let answer = peer.call("visit", json!({})).await;
            assert_eq!(answer["error"]["code"], code::INTERNAL_ERROR, "{wrong:?}: {answer}");
            assert!(peer.before.is_empty(), "{wrong:?}: {:?}", peer.before);
        }
    }
    for right in ["https://example.org", "https://example.org:8443/a?b=c#d", "http://127.0.0.1:1/", "app+x:sign-in"] {
        let answer = Peer::modern(&visit(right), urls()).call("visit", json!({})).await;
        assert_eq!(answer["result"]["inputRequests"]["elicit-1"]["params"]["url"], right, "{answer}");
    }
}

#[tokio::test]
async fn a_url_that_is_not_encrypted_is_logged() {
    for (url, warned) in [
        ("http://example.org/login", true),
        ("https://example.org/login", false),
        ("http://localhost:8080/login", false),
        ("http://127.0.0.1/login", false),
        ("http://[::1]:1/login", false),
        ("http://localhost.example.org/", true),
    ] {
        let heard = LogLines::default();
        let _guard = tracing::subscriber::set_default(heard.clone());
        Peer::modern(&visit(url), urls()).call("visit", json!({})).await;
        assert_eq!(heard.text().contains("https"), warned, "{url}: {}", heard.text());
    }
}

#[tokio::test]
async fn elicitation_complete_is_sent_only_to_the_client_that_was_asked() {
    let tool = ServerTool::new("visit").handler(|ctx: Context| async move {
        let url = ElicitUrlParams::new("Log in", "https://example.org/").with_elicitation_id("e-1".to_owned());
        ctx.elicit_with(ElicitParams::Url(url)).key("url").await?;
        ctx.elicitation_complete("e-1");
        Ok::<_, ToolError>("went")
    });
    let server = server([tool]);
    let mut asked = Peer::handshake(&server, urls()).await;
    let mut other = Peer::handshake(&server, urls()).await;
    let call = asked.begin("tools/call", json!({"name": "visit"})).await;
    let question = asked.line().await;
    assert_eq!(question["params"]["elicitationId"], "e-1");
    asked.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}})).await;
    asked.answer(call).await;
    // The notification belongs to no request, so it may come after the response.
    if asked.before.is_empty() {
        let line = asked.line().await;
        asked.before.push(line);
    }
    let told = json!({"jsonrpc": "2.0", "method": "notifications/elicitation/complete",
        "params": {"elicitationId": "e-1"}});
    assert_eq!(asked.before, [told]);
    other.ask("ping", json!({})).await;
    assert!(other.before.is_empty(), "{:?}", other.before);
    // Later revisions do not have it.
    let mut modern = Peer::modern(&server, urls());
    let retry = json!({"inputResponses": {"url": {"action": "accept"}}});
    assert_eq!(said(&modern.call("visit", retry).await), "went");
    modern.ask("tools/list", json!({})).await;
    assert!(modern.before.is_empty(), "{:?}", modern.before);
}

#[tokio::test]
async fn an_error_names_the_urls_that_have_to_be_visited_first() {
    let tool = ServerTool::new("visit").handler(|ctx: Context| async move {
        let named = ElicitUrlParams::new("Pay", "https://example.org/pay").with_elicitation_id("pay-1".to_owned());
        let unnamed = ElicitUrlParams::new("Log in", "https://example.org/login");
        Err::<(), _>(ctx.urls_required("Two things first.", vec![named, unnamed]))
    });
    let server = server([tool]);
    let mut peer = Peer::handshake(&server, urls()).await;
    let error = peer.call("visit", json!({})).await["error"].clone();
    assert_eq!(error["code"], code::URL_ELICITATION_REQUIRED, "{error}");
    let questions = error["data"]["elicitations"].as_array().unwrap();
    assert_eq!(questions.len(), 2);
    assert!(questions.iter().all(|question| question["mode"] == "url" && question["url"].is_string()), "{error}");
    assert_eq!(questions[0]["elicitationId"], "pay-1");
    assert!(questions[1]["elicitationId"].as_str().is_some_and(|id| id.len() > 15), "{error}");
    // For a client without URL elicitation, or in another form, it is another error.
    let mut plain = Peer::handshake(&server, json!({"elicitation": {"form": {}}})).await;
    let mut modern = Peer::modern(&server, urls());
    for refused in [plain.call("visit", json!({})).await, modern.call("visit", json!({})).await] {
        assert_eq!(refused["error"]["code"], code::INTERNAL_ERROR, "{refused}");
        assert!(refused["error"].get("data").is_none(), "{refused}");
    }
}
