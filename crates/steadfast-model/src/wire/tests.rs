use serde_json::{Value, json};

use super::*;
use crate::{
    AudioContent, CacheScope, CallToolParams, CallToolResult, CancelTaskResult, Content, CreateMessageParams,
    CreateMessageResult, CreateTaskResult, DiscoverResult, ElicitParams, EmptyParams, EmptyResult, FormField,
    FormOption, FormSchema, ListToolsResult, Meta, Resource, Role, SamplingMessage, ServerCapabilities,
    TASKS_EXTENSION, Task, TaskStatus, Tool, ToolAnnotations, ToolUseContent,
};

const FIRST: Revision = Revision::V2024_11_05;
const ANNOTATED: Revision = Revision::V2025_03_26;
const STRUCTURED: Revision = Revision::V2025_06_18;
const LAST_OLD: Revision = Revision::V2025_11_25;
const NEWEST: Revision = Revision::V2026_07_28;

fn written<R: RequestResult>(revision: Revision, result: &R) -> String {
    let server = PerMessageMembers::of_server(&Implementation::new("s", "1"));
    let mut out = b"before ".to_vec();
    write_result(revision, result, &server, &mut out).unwrap();
    String::from_utf8(out.split_off(7)).unwrap()
}

fn value<T: Encode>(revision: Revision, value: &T) -> Value {
    let mut out = Vec::new();
    write(revision, value, &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

fn object(value: Value) -> JsonObject {
    let Value::Object(members) = value else { panic!("not an object") };
    members
}

#[test]
fn a_text_result_is_the_same_in_all_stateful_revisions() {
    for revision in Revision::ALL.iter().copied().filter(|revision| !revision.is_stateless()) {
        assert_eq!(written(revision, &CallToolResult::text("5")), r#"{"content":[{"type":"text","text":"5"}]}"#);
    }
}

#[test]
fn stateless_results_have_a_type_and_the_server_info() {
    assert_eq!(
        written(NEWEST, &CallToolResult::text("5")),
        concat!(
            r#"{"resultType":"complete","content":[{"type":"text","text":"5"}],"#,
            r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#
        )
    );
    assert_eq!(written(LAST_OLD, &EmptyResult::new()), "{}");
}

#[test]
fn a_relayed_result_type_is_not_repeated() {
    let relayed = object(json!({"resultType":"input_required","requestState":"s"}));
    let text = written(NEWEST, &relayed);
    assert!(text.starts_with(r#"{"resultType":"input_required","requestState":"s""#), "{text}");
    assert_eq!(text.matches("resultType").count(), 1);
}

#[test]
fn decorations_replace_relayed_entries() {
    let mut meta = Meta::new();
    meta.set_server_info(&Implementation::new("upstream", "9"));
    meta.insert("k".to_owned(), 1.into());
    let text = written(NEWEST, &CallToolResult::default().with_meta(meta));
    assert_eq!(text.matches("serverInfo").count(), 1);
    assert!(text.contains(r#""name":"s""#) && text.contains(r#""k":1"#) && !text.contains("upstream"), "{text}");
}

#[test]
fn lists_have_cache_members_in_stateless_revisions_only() {
    let plain = ListToolsResult::default();
    assert!(written(NEWEST, &plain).contains(r#""ttlMs":0,"cacheScope":"private""#));
    let kept = plain.with_cache(CacheHints::new(9, CacheScope::Public));
    assert!(written(NEWEST, &kept).contains(r#""ttlMs":9,"cacheScope":"public""#));
    assert_eq!(written(LAST_OLD, &kept), r#"{"tools":[]}"#);
}

#[test]
fn the_decoration_sets_the_cache_members_that_the_result_lacks() {
    let server = PerMessageMembers::none().with_cache(CacheHints::new(7, CacheScope::Public));
    let mut out = Vec::new();
    write_result(NEWEST, &DiscoverResult::default(), &server, &mut out).unwrap();
    assert!(String::from_utf8(out).unwrap().ends_with(r#""ttlMs":7,"cacheScope":"public"}"#));
}

#[test]
fn client_info_is_in_meta_in_stateless_revisions_only() {
    let client = PerMessageMembers::of_client(&Implementation::new("c", "1"), &ClientCapabilities::new());
    let call = CallToolParams::new("add");
    let mut out = Vec::new();
    write_params(NEWEST, &call, &client, &mut out).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        concat!(
            r#"{"name":"add","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
            r#""io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"#,
            r#""io.modelcontextprotocol/clientCapabilities":{}}}"#
        )
    );
    let mut out = Vec::new();
    write_params(LAST_OLD, &call, &client, &mut out).unwrap();
    assert_eq!(out, br#"{"name":"add"}"#);
}

#[test]
fn content_that_a_revision_does_not_have_becomes_text() {
    let audio = Content::Audio(AudioContent::new("AA==", "audio/wav"));
    assert_eq!(value(FIRST, &audio)["type"], "text");
    assert_eq!(value(ANNOTATED, &audio)["type"], "audio");
    let link = Content::resource_link(Resource::new("file:///a", "a").with_description("A file"));
    assert_eq!(value(ANNOTATED, &link), json!({"type": "text", "text": "[resource a: file:///a]\nA file"}));
    assert_eq!(value(STRUCTURED, &link)["type"], "resource_link");
    let call = Content::ToolUse(ToolUseContent::new("1", "add", object(json!({"a": 1}))));
    assert_eq!(value(STRUCTURED, &call)["text"], r#"[call 1 of tool add with {"a":1}]"#);
    assert_eq!(value(LAST_OLD, &call)["type"], "tool_use");
}

#[test]
fn inner_meta_and_titles_are_left_out_of_older_revisions() {
    let content = Content::text("hi").with_meta(object(json!({"k": 1})));
    assert_eq!(value(ANNOTATED, &content), json!({"type": "text", "text": "hi"}));
    assert_eq!(value(STRUCTURED, &content)["_meta"]["k"], 1);
    let result = CallToolResult::default().with_meta(object(json!({"k": 1})));
    assert_eq!(written(FIRST, &result), r#"{"content":[],"_meta":{"k":1}}"#);
}

#[test]
fn a_title_goes_into_the_annotations_where_only_those_exist() {
    let tool = Tool::new("t").with_title("Title");
    assert_eq!(value(FIRST, &tool), json!({"name": "t", "inputSchema": {"type": "object", "properties": {}}}));
    assert_eq!(value(ANNOTATED, &tool)["annotations"], json!({"title": "Title"}));
    assert_eq!(value(STRUCTURED, &tool).get("annotations"), None);
    let annotated = tool.with_annotations(ToolAnnotations::new().with_title("Own"));
    assert_eq!(value(ANNOTATED, &annotated)["annotations"], json!({"title": "Own"}));
}

#[test]
fn structured_content_is_wrapped_in_an_object_in_older_revisions() {
    let list = CallToolResult::default().with_structured_content(json!([1]));
    assert_eq!(value(FIRST, &list).get("structuredContent"), None);
    assert_eq!(value(STRUCTURED, &list)["structuredContent"], json!({"result": [1]}));
    assert_eq!(value(NEWEST, &list)["structuredContent"], json!([1]));
    let object = CallToolResult::default().with_structured_content(json!({"a": 1}));
    assert_eq!(value(STRUCTURED, &object)["structuredContent"], json!({"a": 1}));
    let null = CallToolResult::default().with_structured_content(Value::Null);
    assert_eq!(value(NEWEST, &null).get("structuredContent"), Some(&Value::Null));
}

#[test]
fn output_schemas_of_other_types_are_left_out_before_2026_07_28() {
    let tool = Tool::new("t").with_output_schema(object(json!({"type": "array"})));
    assert_eq!(value(LAST_OLD, &tool).get("outputSchema"), None);
    assert_eq!(value(NEWEST, &tool)["outputSchema"], json!({"type": "array"}));
}

#[test]
fn boolean_property_schemas_become_objects_in_older_revisions() {
    let schema = json!({"type": "object", "properties": {"a": true, "b": false}});
    let tool = Tool::new("t").with_input_schema(object(schema.clone()));
    assert_eq!(value(LAST_OLD, &tool)["inputSchema"]["properties"], json!({"a": {}, "b": {"not": {}}}));
    assert_eq!(value(NEWEST, &tool)["inputSchema"], schema);
}

#[test]
fn the_tasks_extension_is_declared_where_its_messages_exist() {
    let both = ServerCapabilities::new()
        .with_extension(TASKS_EXTENSION, JsonObject::new())
        .with_extension("org.example/x", JsonObject::new());
    assert_eq!(value(LAST_OLD, &both)["extensions"], json!({"org.example/x": {}}));
    assert_eq!(value(NEWEST, &both)["extensions"].as_object().unwrap().len(), 2);
    let alone = ServerCapabilities::new().with_extension(TASKS_EXTENSION, JsonObject::new());
    assert_eq!(value(LAST_OLD, &alone), json!({}));
}

#[test]
fn several_pieces_are_several_messages_where_a_message_has_one() {
    let message = SamplingMessage::new(Role::User, vec![Content::text("a"), Content::text("b")]);
    let params = CreateMessageParams::new(vec![message], 9);
    assert_eq!(value(STRUCTURED, &params)["messages"].as_array().unwrap().len(), 2);
    assert_eq!(value(LAST_OLD, &params)["messages"].as_array().unwrap().len(), 1);
    let result = CreateMessageResult::new("m", "").with_content(vec![Content::text("a"), Content::text("b")]);
    assert_eq!(value(STRUCTURED, &result)["content"], json!({"type": "text", "text": "a\nb"}));
}

#[test]
fn nothing_is_written_if_a_revision_cannot_encode_the_value() {
    let url = ElicitParams::url("m", "https://example.org");
    let mut out = b"kept".to_vec();
    assert!(write(STRUCTURED, &url, &mut out).is_err());
    // 2025-11-25 demands an id, which this question does not have.
    assert!(write(LAST_OLD, &url, &mut out).is_err());
    assert_eq!(out, b"kept");
    assert!(write(NEWEST, &url, &mut out).is_ok());
}

#[test]
fn a_form_is_converted_for_2025_06_18() {
    let options = [FormOption::new("r").with_title("Red"), FormOption::new("g")];
    let form = FormSchema::new().with_optional("colour", FormField::choice(options));
    let params = ElicitParams::form("m", form);
    assert_eq!(
        value(STRUCTURED, &params)["requestedSchema"]["properties"]["colour"],
        json!({"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "g"]})
    );
    assert_eq!(value(STRUCTURED, &params).get("mode"), None);
    assert_eq!(value(LAST_OLD, &params)["mode"], "form");
}

#[test]
fn a_task_has_the_shape_of_its_revision() {
    let task = Task::new("1", TaskStatus::Working, "t").with_poll_interval_ms(5_u64);
    let created = CreateTaskResult::new(task.clone());
    assert!(written(LAST_OLD, &created).starts_with(r#"{"task":{"taskId":"1""#));
    assert!(written(LAST_OLD, &created).contains(r#""ttl":null,"pollInterval":5"#));
    assert!(written(NEWEST, &created).starts_with(r#"{"resultType":"task","taskId":"1""#));
    assert!(written(NEWEST, &created).contains(r#""ttlMs":null,"pollIntervalMs":5"#));
    let cancelled = CancelTaskResult::new(task);
    assert_eq!(value(LAST_OLD, &cancelled)["taskId"], "1");
    assert_eq!(value(NEWEST, &cancelled), json!({}));
}

#[test]
fn an_error_has_the_code_of_its_revision() {
    let missing = ErrorObject::resource_not_found("file:///a");
    assert_eq!(error_for(LAST_OLD, &missing).code, code::RESOURCE_NOT_FOUND);
    assert_eq!(error_for(NEWEST, &missing).code, code::INVALID_PARAMS);
    let mut out = Vec::new();
    write_error(NEWEST, &missing, &mut out).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        r#"{"code":-32602,"message":"resource not found: file:///a","data":{"uri":"file:///a"}}"#
    );
    let url = ErrorObject::url_elicitation_required("log in", Vec::new());
    assert_eq!(error_for(LAST_OLD, &url).code, code::URL_ELICITATION_REQUIRED);
    assert_eq!(error_for(NEWEST, &url).code, code::INTERNAL_ERROR);
}

#[test]
fn a_client_names_the_revision_that_each_request_is_written_for() {
    let client = PerMessageMembers::of_client(&Implementation::new("c", "1"), &ClientCapabilities::new());
    for &revision in Revision::stateless() {
        let text = params_text(revision, &EmptyParams::default(), &client).unwrap();
        let params: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(params["_meta"][key::PROTOCOL_VERSION], revision.as_str());
        assert_eq!(params["_meta"][key::CLIENT_INFO]["name"], "c");
        assert_eq!(text.matches(key::PROTOCOL_VERSION).count(), 1);
    }
    assert_eq!(&*params_text(LAST_OLD, &EmptyParams::default(), &client).unwrap(), "{}");
}

#[test]
fn an_added_revision_is_written_like_its_predecessor() {
    let result = CallToolResult::text("5");
    assert_eq!(written(Revision::V2999_12_31, &result), written(NEWEST, &result));
}
