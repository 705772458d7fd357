//! Names of tools, their schemas, and arguments that are mirrored in headers.

use super::*;

fn named(name: &str) -> ServerTool {
    let text = name.to_owned();
    ServerTool::new(name).handler(move || {
        let text = text.clone();
        async move { text }
    })
}

#[test]
fn an_unportable_tool_name_is_logged() {
    let long = "x".repeat(129);
    for (name, warned) in [
        ("getUser", false),
        ("DATA_EXPORT_v2", false),
        ("admin.tools.list-all", false),
        (&*"x".repeat(128), false),
        (&*long, true),
        ("two words", true),
        ("a,b", true),
        ("größe", true),
    ] {
        let heard = LogLines::default();
        tracing::subscriber::with_default(heard.clone(), || server([named(name)]));
        assert_eq!(heard.text().contains("WARN"), warned, "{name}: {}", heard.text());
    }
}

#[tokio::test]
async fn names_that_differ_in_case_are_different_tools() {
    let server = server([named("look"), named("Look"), named("LOOK")]);
    for mut peer in Peer::of_both_eras(&server, json!({})).await {
        for name in ["look", "Look", "LOOK"] {
            assert_eq!(said(&peer.call(name, json!({})).await), name);
        }
        assert_eq!(peer.call("lOOK", json!({})).await["error"]["code"], -32602);
    }
}

#[test]
fn a_tool_whose_headers_clients_would_refuse_cannot_be_built() {
    let one = |property: Value| json!({"type": "object", "properties": {"p": property}});
    let text = |name: &str| one(json!({"type": "string", "x-mcp-header": name}));
    let twice = json!({"type": "object", "properties": {
        "p": {"type": "string", "x-mcp-header": "Region"}, "q": {"type": "string", "x-mcp-header": "REGION"}}});
    let refused = [
        ("empty", text("")),
        ("a space", text("a b")),
        ("a colon", text("a:b")),
        ("a line break", text("a\r\nb")),
        ("a control character", text("a\u{7}")),
        ("not ASCII", text("ü")),
        ("differs in case only", twice),
        ("a number", one(json!({"type": "number", "x-mcp-header": "A"}))),
        ("an object", one(json!({"type": "object", "x-mcp-header": "A"}))),
        ("in items", one(json!({"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}))),
        ("in anyOf", one(json!({"anyOf": [{"type": "string", "x-mcp-header": "A"}]}))),
        ("in a definition", json!({"type": "object", "$defs": {"d": {"type": "string", "x-mcp-header": "A"}}})),
    ];
    for (what, schema) in refused {
        let tool = ServerTool::new("t").input_schema(schema).handler(|_: JsonObject| async {});
        assert!(tool.problem().is_some(), "{what}");
        assert!(Server::builder("test", "1").tool(tool).try_build().is_err(), "{what}");
    }
    for kind in ["string", "integer", "boolean"] {
        let nested = json!({"type": "object", "properties": {"p": {"type": kind, "x-mcp-header": "A-1_b"}}});
        let tool = ServerTool::new("t").input_schema(one(nested)).handler(|_: JsonObject| async {});
        assert_eq!(tool.problem(), None, "{kind}");
    }
}

#[tokio::test]
async fn tasks_of_2025_are_neither_declared_nor_started() {
    for mut peer in Peer::of_both_eras(&server([named("plain")]), json!({"tasks": {}})).await {
        assert!(peer.declared().await.get("tasks").is_none());
        let answer = peer.call("plain", json!({"task": {"ttl": 60_000}})).await;
        assert_eq!(said(&answer), "plain", "{answer}");
        assert!(answer["result"].get("task").is_none() && answer["result"].get("taskId").is_none(), "{answer}");
    }
}

#[cfg(feature = "schema-validation")]
#[tokio::test]
async fn a_schema_without_a_dialect_is_2020_12() {
    let schema = json!({
        "type": "object",
        "properties": {
            "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": false},
            "card": {"type": "string"},
            "tree": {"$ref": "#/$defs/tree"},
        },
        "dependentRequired": {"card": ["pair"]},
        "unevaluatedProperties": false,
        "$defs": {"tree": {"$anchor": "tree", "type": "array", "items": {"$ref": "#tree"}}},
    });
    let tool = ServerTool::new("t").input_schema(schema).handler(|_: JsonObject| async {});
    for (arguments, fits) in [
        (json!({"pair": ["a", 1]}), true),
        (json!({"pair": ["a", "b"]}), false),
        (json!({"pair": ["a", 1, 2]}), false),
        (json!({"card": "x"}), false),
        (json!({"card": "x", "pair": ["a", 1]}), true),
        (json!({"other": 1}), false),
        (json!({"tree": [[], [[]]]}), true),
        (json!({"tree": [[], [7]]}), false),
    ] {
        let result = tool.call(arguments.clone()).await.unwrap();
        assert_eq!(!result.is_error(), fits, "{arguments}");
    }
}
