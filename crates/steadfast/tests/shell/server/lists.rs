//! Declared capabilities, and lists.

use steadfast::server::{ServerPrompt, ServerResource, ServerResourceTemplate};
use steadfast::{CacheHints, CacheScope, model::code};

use super::*;

const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
];

/// A server with two of everything.
fn rich() -> steadfast::server::ServerBuilder {
    let prompt =
        |name: &str| ServerPrompt::new(name).required_argument("x", "").complete("x", ["a"]).handler(|| async { "" });
    let template = |name: &str| ServerResourceTemplate::new(format!("{name}://{{x}}"), name).handler(|| async { "" });
    Server::builder("rich", "1")
        .tools([echo(), ServerTool::new("other").handler(|| async { "" })])
        .prompts([prompt("one"), prompt("two")])
        .resource(ServerResource::new("note://1", "one").cache(CacheHints::new(5_000, CacheScope::Public)).text("a"))
        .resource(ServerResource::new("note://2", "two").cache(CacheHints::new(1, CacheScope::Private)).text("b"))
        .resource_templates([template("one"), template("two")])
}

#[tokio::test]
async fn capabilities_are_declared_in_both_eras() {
    for mut peer in Peer::of_both_eras(&rich().build(), json!({})).await {
        let declared = peer.declared().await;
        for feature in ["tools", "prompts", "resources", "completions", "logging"] {
            assert!(declared[feature].is_object(), "{feature}: {declared}");
        }
    }
}

#[tokio::test]
async fn missing_capabilities_are_not_declared() {
    let prompt = || ServerPrompt::new("p").required_argument("x", "");
    let template = || ServerResourceTemplate::new("note://{x}", "n");
    let only = || Server::builder("test", "1").tool(echo());
    for (server, expected) in [
        (only(), &["logging", "tools"][..]),
        (only().prompt(prompt().handler(|| async { "" })), &["logging", "prompts", "tools"]),
        (
            only().prompt(prompt().complete("x", ["a"]).handler(|| async { "" })),
            &["completions", "logging", "prompts", "tools"],
        ),
        (only().resource_template(template().handler(|| async { "" })), &["logging", "resources", "tools"]),
        (
            only().resource_template(template().complete("x", ["a"]).handler(|| async { "" })),
            &["completions", "logging", "resources", "tools"],
        ),
        (only().expect_prompts(), &["completions", "logging", "prompts", "tools"]),
    ] {
        for mut peer in Peer::of_both_eras(&server.build(), json!({})).await {
            let declared = peer.declared().await;
            let mut declared: Vec<&String> = declared.as_object().expect("it is an object").keys().collect();
            declared.sort();
            assert_eq!(declared, expected);
        }
    }
}

#[tokio::test]
async fn an_empty_list_is_a_result() {
    let server = Server::builder("bare", "1").expect_prompts().expect_resources().build();
    for mut peer in Peer::of_both_eras(&server, json!({})).await {
        for (method, member) in LISTS {
            assert_eq!(peer.ask(method, json!({})).await["result"][member], json!([]), "{method}");
        }
    }
}

#[tokio::test]
async fn a_list_does_not_depend_on_earlier_requests() {
    let server = rich().build();
    let mut busy = Peer::modern(&server, json!({"elicitation": {}, "sampling": {}}));
    for (method, params) in [
        ("tools/call", json!({"name": "echo", "arguments": {"text": "x"}})),
        ("tools/call", json!({"name": "nothing"})),
        ("prompts/get", json!({"name": "two", "arguments": {"x": "a"}})),
        ("resources/read", json!({"uri": "note://2"})),
        ("resources/read", json!({"uri": "one://a"})),
    ] {
        busy.ask(method, params).await;
    }
    let mut fresh = Peer::modern(&server, json!({}));
    for (method, member) in LISTS {
        let (here, there) = (busy.ask(method, json!({})).await, fresh.ask(method, json!({})).await);
        assert_eq!(here["result"], there["result"], "{method}");
        assert_eq!(here["result"][member].as_array().map(Vec::len), Some(2), "{method}");
    }
}

#[tokio::test]
async fn all_pages_of_a_list_have_one_scope() {
    for scope in [CacheScope::Public, CacheScope::Private] {
        let server = rich().page_size(1).cache(CacheHints::new(60_000, scope)).build();
        let mut peer = Peer::modern(&server, json!({}));
        for (method, _) in LISTS {
            let first = peer.ask(method, json!({})).await["result"].clone();
            let second = peer.ask(method, json!({"cursor": first["nextCursor"]})).await["result"].clone();
            assert!(first["cacheScope"].is_string() && second["nextCursor"].is_null(), "{method}: {first} {second}");
            assert_eq!(first["cacheScope"], second["cacheScope"], "{method}");
        }
    }
}

#[tokio::test]
async fn completions_past_the_limit_are_refused() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let mut limits = steadfast::Limits::default();
    limits.in_flight = 1;
    let server = rich().tool(forever(&begun, &dropped)).limits(limits).build();
    for mut peer in Peer::of_both_eras(&server, json!({})).await {
        let params = json!({"ref": {"type": "ref/prompt", "name": "one"}, "argument": {"name": "x", "value": ""}});
        assert!(peer.ask("completion/complete", params.clone()).await["result"].is_object());
        peer.begin("tools/call", json!({"name": "forever"})).await;
        soon(begun.wait()).await;
        let refused = peer.ask("completion/complete", params).await;
        assert_eq!(refused["error"]["data"]["limit"], 1, "{refused}");
    }
}

#[tokio::test]
async fn a_resource_that_cannot_be_read_is_an_internal_error() {
    let broken = ServerResource::new("note://1", "broken")
        .handler(|| async { Err::<String, _>(std::io::Error::other("the disk is full")) });
    let server = Server::builder("test", "1").resource(broken).build();
    for mut peer in Peer::of_both_eras(&server, json!({})).await {
        let answer = peer.ask("resources/read", json!({"uri": "note://1"})).await;
        assert_eq!(answer["error"]["code"], code::INTERNAL_ERROR, "{answer}");
    }
}
