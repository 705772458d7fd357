//! Servers and tools built without the macros.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use steadfast_model::{CallToolResult, Content, Icon, JsonObject, Meta, code};

use super::*;
use crate::runtime::HandlerJob;

fn ready(name: &str) -> ServerTool {
    ServerTool::new(name).handler(|| async { true })
}

fn text(result: &CallToolResult) -> &str {
    result.content.first().and_then(Content::as_text).unwrap_or_default()
}

async fn called(tool: &ServerTool, arguments: Value) -> String {
    let result = tool.call(arguments).await.unwrap();
    assert!(!result.is_error(), "{result:?}");
    text(&result).to_owned()
}

async fn complaint(tool: &ServerTool, arguments: Value) -> String {
    let result = tool.call(arguments).await.unwrap();
    assert!(result.is_error(), "{result:?}");
    text(&result).to_owned()
}

#[derive(Deserialize, Serialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[tokio::test]
async fn a_handler_takes_arguments_or_the_context_or_both_or_nothing() {
    let sum = |Add { a, b }: Add| async move { a + b };
    assert_eq!(called(&ServerTool::new("t").handler(sum), json!({ "a": 2, "b": 3 })).await, "5");
    let both = |Add { a, b }: Add, _ctx: Context| async move { a - b };
    assert_eq!(called(&ServerTool::new("t").handler(both), json!({ "a": 2, "b": 3 })).await, "-1");
    let context = |_ctx: Context| async move { "context" };
    assert_eq!(called(&ServerTool::new("t").handler(context), json!({ "x": 1 })).await, "context");
    assert_eq!(called(&ServerTool::new("t").handler(|| async { "nothing" }), Value::Null).await, "nothing");
}

#[tokio::test]
async fn a_blocking_handler_takes_the_same() {
    let sum = |Add { a, b }: Add| a + b;
    assert_eq!(called(&ServerTool::new("t").blocking_handler(sum), json!({ "a": 2, "b": 3 })).await, "5");
    let both = |Add { a, b }: Add, _ctx: Context| a - b;
    assert_eq!(called(&ServerTool::new("t").blocking_handler(both), json!({ "a": 2, "b": 3 })).await, "-1");
    assert_eq!(called(&ServerTool::new("t").blocking_handler(|_: Context| "context"), json!({})).await, "context");
    let tool = ServerTool::new("t").blocking_handler(|| "nothing");
    assert_eq!(called(&tool, json!({})).await, "nothing");
    assert!(matches!(tool.start(RawArguments::none(), Context::detached()), HandlerJob::Blocking(_)));
    assert!(matches!(ready("t").start(RawArguments::none(), Context::detached()), HandlerJob::Future(_)));
}

#[tokio::test]
async fn a_named_function_is_a_handler() {
    async fn sum(Add { a, b }: Add) -> crate::ToolResult<i64> {
        Ok(a.checked_add(b).ok_or("too large")?)
    }
    let tool = ServerTool::new("sum").input::<Add>().handler(sum);
    assert_eq!(called(&tool, json!({ "a": 2, "b": 3 })).await, "5");
    assert_eq!(complaint(&tool, json!({ "a": i64::MAX, "b": 3 })).await, "too large");
    assert_eq!(
        complaint(&tool, json!({ "a": "2", "b": 3 })).await,
        "Bad argument `a`: it must be an integer, and is the string \"2\""
    );
}

#[tokio::test]
async fn nothing_runs_before_the_run_is_polled() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let tool = ServerTool::new("t").handler(|| async {
        CALLS.fetch_add(1, Ordering::Relaxed);
    });
    drop(tool.start(RawArguments::none(), Context::detached()));
    assert_eq!(CALLS.load(Ordering::Relaxed), 0);
}

#[cfg(feature = "schema-validation")]
#[tokio::test]
async fn arguments_are_checked_against_a_schema_written_by_hand() {
    let tool = ServerTool::new("t")
        .input_schema(json!({
            "properties": { "text": { "type": "string", "maxLength": 3 }, "n": { "minimum": 1 } },
            "required": ["text"],
            "additionalProperties": false,
        }))
        .handler(|all: JsonObject| async move { all.len() });
    assert_eq!(tool.definition().input_schema["type"], "object");
    assert_eq!(called(&tool, json!({ "text": "abc", "n": 1 })).await, "2");
    assert!(complaint(&tool, json!({})).await.contains("\"text\" is a required property"));
    assert!(complaint(&tool, json!({ "text": "abcd" })).await.starts_with("Bad arguments: `text`: "));
    assert!(complaint(&tool, json!({ "text": "a", "x": 1 })).await.contains('x'));
    let both = complaint(&tool, json!({ "text": 7, "n": 0 })).await;
    assert!(both.contains("`text`") && both.contains("`n`"), "{both}");
}

#[cfg(feature = "schema-validation")]
#[tokio::test]
async fn arguments_of_a_typed_handler_with_a_schema_are_decoded_from_the_text() {
    let schema = json!({ "type": "object", "properties": { "a": { "maximum": 10 } } });
    let tool = ServerTool::new("t").input_schema(schema).handler(|Add { a, b }: Add| async move { a + b });
    assert_eq!(called(&tool, json!({ "a": 1, "b": 9_007_199_254_740_993_i64 })).await, "9007199254740994");
    assert!(complaint(&tool, json!({ "a": 11, "b": 1 })).await.contains("`a`"));
    assert!(complaint(&tool, json!({ "a": 1, "b": 0.5 })).await.contains("`b`"));
}

#[tokio::test]
async fn structured_output_brings_its_schema() {
    let tool = ServerTool::new("t").input::<Add>().handler(|add: Add| async move { Structured(add) });
    assert_eq!(tool.definition().output_schema.as_ref().unwrap()["required"], json!(["a", "b"]));
    let result = tool.call(json!({ "a": 1, "b": 2 })).await.unwrap();
    assert_eq!(result.structured_content, Some(json!({ "a": 1, "b": 2 })));
    assert_eq!(text(&result), r#"{"a":1,"b":2}"#);
}

#[cfg(feature = "schema-validation")]
#[tokio::test]
async fn results_are_checked_against_an_output_schema_written_by_hand() {
    let tool = ServerTool::new("t").output_schema(json!({ "type": "object", "required": ["sum"] })).handler(
        |all: JsonObject| async move {
            match all.get("how").and_then(Value::as_str) {
                Some("well") => CallToolResult::text("5").with_structured_content(json!({ "sum": 5 })),
                Some("failing") => CallToolResult::error("it failed"),
                Some("badly") => CallToolResult::text("5").with_structured_content(json!({ "summe": 5 })),
                _ => CallToolResult::text("5"),
            }
        },
    );
    assert!(tool.call(json!({ "how": "well" })).await.is_ok());
    assert!(tool.call(json!({ "how": "failing" })).await.unwrap().is_error());
    for how in ["badly", "unstructured"] {
        let error = tool.call(json!({ "how": how })).await.unwrap_err();
        assert_eq!(error.object().code, code::INTERNAL_ERROR);
        assert!(error.to_string().contains("output schema"), "{error}");
    }
}

#[cfg(feature = "schema-validation")]
#[tokio::test]
async fn results_are_checked_against_the_schema_of_a_type() {
    let tool = ServerTool::new("t").output::<Add>().handler(|all: JsonObject| async move { all });
    assert!(tool.call(json!({ "a": 1, "b": 2 })).await.is_ok());
    assert!(tool.call(json!({ "a": 1 })).await.is_err());
}

#[tokio::test]
async fn a_tool_with_a_problem_is_refused_or_answers_with_an_error() {
    let broken = ServerTool::new("t").input_schema(json!([1])).handler(|| async {});
    assert_eq!(broken.problem(), Some("the input schema of the tool is not an object"));
    assert!(Server::builder("s", "1").tool(broken.clone()).try_build().is_err());
    assert_eq!(broken.call(json!({})).await.unwrap_err().object().code, code::INTERNAL_ERROR);
    let not_an_object = ServerTool::new("t").input::<String>().handler(|text: String| async move { text });
    assert!(not_an_object.problem().is_some());
    assert!(ServerTool::new("").handler(|| async {}).problem().is_some());
}

#[cfg(feature = "schema-validation")]
#[test]
fn an_invalid_schema_is_a_problem() {
    let tool =
        ServerTool::new("t").input_schema(json!({ "properties": { "a": { "type": "strin" } } })).handler(|| async {});
    assert!(tool.problem().unwrap().starts_with("the input schema of the tool cannot be used: `properties.a.type`"));
}

#[cfg(not(feature = "schema-validation"))]
#[test]
fn a_schema_that_cannot_be_checked_is_a_problem_that_names_the_feature() {
    let by_hand = json!({ "type": "object" });
    let tools = [
        ServerTool::new("t").input_schema(by_hand.clone()).handler(|_: JsonObject| async {}),
        ServerTool::new("t").output_schema(by_hand).handler(|| async { CallToolResult::text("5") }),
        ServerTool::new("t").output::<Add>().handler(|all: JsonObject| async move { all }),
        ServerTool::from_definition(ServerTool::new("t").handler(|| async {}).definition().clone())
            .handler(|| async {}),
    ];
    for tool in tools {
        let error = Server::builder("s", "1").tool(tool).try_build().unwrap_err().to_string();
        assert!(error.contains("the feature `schema-validation`"), "{error}");
    }
}

#[cfg(feature = "schema-validation")]
#[test]
fn a_server_with_a_schema_of_an_unknown_dialect_is_not_built() {
    let schema = json!({ "$schema": "https://example.com/mine", "type": "object" });
    let tool = ServerTool::new("t").input_schema(schema.clone()).handler(|| async {});
    let error = Server::builder("s", "1").tool(tool).try_build().unwrap_err().to_string();
    let expected = "the tool `t` cannot be served: the input schema of the tool cannot be used: the dialect \
                    `https://example.com/mine` is not supported; supported dialects: 2020-12";
    assert!(error.starts_with(expected), "{error}");
    assert!(ServerTool::new("t").output_schema(schema).handler(|| async {}).problem().is_some());
    let older = json!({ "$schema": "http://json-schema.org/draft-07/schema#", "type": "object" });
    let tool = ServerTool::new("t").input_schema(older.clone()).handler(|| async {});
    assert_eq!(tool.problem(), None);
    assert_eq!(Value::Object(tool.definition().input_schema.clone()), older);
}

#[test]
fn an_invalid_meta_key_is_a_problem_in_every_definition() {
    let meta = |key: &str| Meta::from(JsonObject::from_iter([(key.to_owned(), json!(1))]));
    let problem = |key: &str| {
        let tool = ServerTool::new("t").meta(meta(key)).handler(|| async {});
        let prompt = ServerPrompt::new("p").meta(meta(key)).handler(|| async { "" });
        let resource = ServerResource::new("a:b", "r").meta(meta(key)).text("");
        let template = ServerResourceTemplate::new("a:{b}", "r").meta(meta(key)).handler(|| async { "" });
        let found = tool.problem().map(str::to_owned);
        assert_eq!(prompt.problem(), found.as_deref());
        assert_eq!(resource.problem(), found.as_deref());
        assert_eq!(template.problem(), found.as_deref());
        assert_eq!(Server::builder("s", "1").tool(tool).try_build().is_err(), found.is_some());
        found
    };
    assert_eq!(problem("com.example/colour"), None);
    assert_eq!(problem("io.modelcontextprotocol/ui"), None);
    assert!(
        problem("example com/colour")
            .unwrap()
            .starts_with("the `_meta` of the definition has the key `example com/colour`: a prefix")
    );
    assert!(problem("a b").unwrap().contains("begins and ends with a letter or a digit"));
    assert!(problem("io.modelcontextprotocol/serverInfo").unwrap().contains("the key is reserved"));
}

#[test]
fn extensions_are_declared_under_names_that_say_whose_they_are() {
    let server = |name: &str| Server::builder("s", "1").extension(name, JsonObject::new()).try_build();
    assert!(server("com.example/colours").unwrap().capabilities().has_extension("com.example/colours"));
    assert!(server("colours").unwrap_err().to_string().contains("needs a prefix"));
    assert!(server("com.example/a b").is_err());
    assert!(server(TASKS_EXTENSION).unwrap_err().to_string().contains("declared by tools that run as MCP tasks"));
}

#[cfg(feature = "schema-validation")]
#[test]
fn a_schema_beyond_the_limits_is_a_problem() {
    let schema = json!({ "anyOf": vec![json!(true); crate::validation::limits::SUBSCHEMAS] });
    let tool = ServerTool::new("t").input_schema(schema).handler(|| async {});
    assert!(tool.problem().unwrap().contains("more subschemas than the limit of 10000"));
}

#[test]
#[should_panic(expected = "there are two tools named `twin`")]
fn two_tools_of_one_name_are_a_mistake() {
    Server::builder("s", "1").tools([ready("twin"), ready("other"), ready("twin")]).build();
}

#[test]
fn the_definition_has_everything_that_was_set() {
    let tool = ServerTool::new("t")
        .title("T")
        .description("Does t.")
        .read_only()
        .idempotent()
        .destructive(false)
        .open_world(false)
        .icon(Icon::new("https://example.com/t.png"))
        .meta(Meta::from(JsonObject::from_iter([("k".to_owned(), json!(1))])))
        .cooperative()
        .handler(|| async {});
    assert!(tool.is_cooperative());
    let expected = json!({
        "name": "t",
        "title": "T",
        "description": "Does t.",
        "inputSchema": { "type": "object", "properties": {}, "additionalProperties": false },
        "annotations": {
            "readOnlyHint": true, "idempotentHint": true, "destructiveHint": false, "openWorldHint": false,
        },
        "icons": [{ "src": "https://example.com/t.png" }],
        "_meta": { "k": 1 },
    });
    assert_eq!(serde_json::to_value(tool.definition()).unwrap(), expected);
}

#[test]
fn a_definition_of_another_server_is_not_changed() {
    let definition: steadfast_model::Tool =
        serde_json::from_value(json!({ "name": "far", "inputSchema": { "type": "object" }, "x-vendor": 1 })).unwrap();
    let tool = ServerTool::from_definition(definition.clone()).handler(|_: JsonObject| async {});
    assert_eq!(tool.definition(), &definition);
}

#[test]
fn watchers_are_called_after_each_change_until_they_are_dropped() {
    let server = Server::builder("s", "1").build();
    let count = Arc::new(AtomicUsize::new(0));
    let watcher: Arc<ServerChangeCallback> = {
        let (count, server) = (Arc::clone(&count), server.clone());
        Arc::new(move |change| {
            assert!(matches!(change, ServerChange::Tools), "{change:?}");
            // A watcher may call methods of the server.
            let _ = server.tools();
            count.fetch_add(1, Ordering::Relaxed);
        })
    };
    server.watch(&watcher);
    assert!(server.add_tool(ready("a")).is_none());
    assert!(server.add_tool(ready("a")).is_some());
    assert!(server.remove_tool("a").is_some());
    assert!(server.remove_tool("a").is_none());
    assert_eq!(count.load(Ordering::Relaxed), 3);
    drop(watcher);
    server.add_tool(ready("b"));
    assert_eq!(count.load(Ordering::Relaxed), 3);
}

#[test]
fn clones_share_one_server_and_lists_are_snapshots() {
    let server = Server::builder("s", "1").tool(ready("a")).build();
    let before = server.tool_list();
    server.clone().add_tool(ready("b"));
    assert_eq!(server.tools().len(), 2);
    assert_eq!(before.iter().count(), 1);
}

#[test]
fn merged_servers_have_the_tools_of_both() {
    let left = Server::builder("left", "1").instructions("Left.").tool(ready("a")).build();
    let right = Server::builder("right", "2").tool(ready("b")).build();
    let both = left.clone().merge(right.clone()).unwrap();
    assert_eq!((both.info().name.as_str(), both.instructions()), ("left", Some("Left.")));
    assert_eq!(both.tools().iter().map(ServerTool::name).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(left.tools().len(), 1);
    let error = both.merge(right).unwrap_err();
    assert!(error.to_string().contains("`b`"));
}

#[test]
fn a_server_says_who_it_is() {
    let server = Server::builder("s", "1.2.3")
        .title("S")
        .description("Serves.")
        .website("https://example.com")
        .icon(Icon::new("data:,"))
        .build();
    let expected = json!({
        "name": "s", "title": "S", "version": "1.2.3", "description": "Serves.",
        "icons": [{ "src": "data:," }], "websiteUrl": "https://example.com",
    });
    assert_eq!(serde_json::to_value(server.info()).unwrap(), expected);
    assert!(server.capabilities().tools.is_some());
}
