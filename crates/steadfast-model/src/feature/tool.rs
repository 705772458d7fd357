//! Tools: functions of a server that a model can call.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::content::Content;
use super::task::TaskMetadata;
use crate::implementation::Icon;
use crate::json::{ExtraMembers, JsonObject, present};
use crate::message::cache::{CacheScope, cacheable, read_scope, read_ttl};
use crate::message::input::InputResponses;
use crate::message::meta::Meta;
use crate::setters::setters;

/// A tool, as `tools/list` describes it.
///
/// ```
/// use steadfast_model::{Tool, ToolAnnotations};
/// let tool = Tool::new("add")
///     .with_description("Adds two numbers.")
///     .with_annotations(ToolAnnotations::new().with_read_only_hint(true));
/// assert_eq!(tool.input_schema["type"], "object");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Tool {
    /// The name of the tool in `tools/call` requests.
    pub name: String,
    /// The name of the tool to show to users (since 2025-06-18).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the tool does, for a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of the tool's arguments, which are an object.
    pub input_schema: JsonObject,
    /// The JSON Schema of the tool's structured result (since 2025-06-18; any schema since 2026-07-28, only that of an object
    /// before).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<JsonObject>,
    /// Hints about the tool's behaviour (since 2025-03-26).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// Icons (since 2025-11-25).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// Whether the tool may run as a task (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ToolExecution>,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members of the JSON object that this type has no field for.
    #[serde(flatten)]
    pub extra: ExtraMembers,
}

impl Tool {
    /// A tool of that name that takes no arguments.
    pub fn new(name: impl Into<String>) -> Self {
        let mut input_schema = JsonObject::new();
        input_schema.insert("type".to_owned(), "object".into());
        input_schema.insert("properties".to_owned(), JsonObject::new().into());
        Self {
            name: name.into(),
            title: None,
            description: None,
            input_schema,
            output_schema: None,
            annotations: None,
            icons: Vec::new(),
            execution: None,
            meta: None,
            extra: ExtraMembers::default(),
        }
    }

    /// The name of the tool to show to users.
    pub fn display_name(&self) -> &str {
        let annotated = || self.annotations.as_ref().and_then(|annotations| annotations.title.as_deref());
        self.title.as_deref().or_else(annotated).unwrap_or(&self.name)
    }
}

setters!(Tool {
    with_title(title: String),
    with_description(description: String),
    with_input_schema(input_schema: JsonObject),
    with_output_schema(output_schema: JsonObject),
    with_annotations(annotations: ToolAnnotations),
    with_icons(icons: Vec<Icon>),
    with_execution(execution: ToolExecution),
    with_meta(meta: Meta),
});

/// Hints about a tool's behaviour. The hints are no guarantees: an untrusted server may say anything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A hint: the tool does not change its environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// A hint: the tool may delete or overwrite something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Hint: calling the tool twice does no more than calling it once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// Hint: the tool interacts with the outside world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
    /// Members of the JSON object that this type has no field for.
    #[serde(flatten)]
    pub extra: ExtraMembers,
}

impl ToolAnnotations {
    /// No hints.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(ToolAnnotations {
    with_title(title: String),
    with_read_only_hint(read_only_hint: bool),
    with_destructive_hint(destructive_hint: bool),
    with_idempotent_hint(idempotent_hint: bool),
    with_open_world_hint(open_world_hint: bool),
});

/// Whether a tool may run as a task (2025-11-25 only).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolExecution {
    /// Whether calls of the tool may, must or must not run as tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_support: Option<TaskSupport>,
}

impl ToolExecution {
    /// Whether calls of the tool run as tasks.
    pub fn new(task_support: TaskSupport) -> Self {
        Self { task_support: Some(task_support) }
    }
}

/// Whether a tool may be run as a task of 2025-11-25.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum TaskSupport {
    /// Calls of the tool cannot run as tasks.
    #[default]
    Forbidden,
    /// Calls of the tool can run as tasks.
    Optional,
    /// Calls of the tool always run as tasks.
    Required,
}

/// The result of `tools/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListToolsResult {
    /// The tools on this page of the `tools/list` result.
    pub tools: Vec<Tool>,
    /// The cursor of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The time for which clients may cache this result, in milliseconds.
    #[serde(default, deserialize_with = "read_ttl", skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// The clients that may be served the cached result: any client, or only the one that requested it.
    #[serde(default, deserialize_with = "read_scope", skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ListToolsResult {
    /// The result of `tools/list` with these tools, as the last page.
    pub fn new(tools: Vec<Tool>) -> Self {
        Self { tools, ..Self::default() }
    }
}

setters!(ListToolsResult { with_next_cursor(next_cursor: String), with_meta(meta: Meta) });
cacheable!(ListToolsResult);

/// The parameters of `tools/call`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallToolParams {
    /// The tool.
    pub name: String,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<JsonObject>,
    /// If set, asks the server to run the tool call as an MCP task (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// The client's responses to the input requests of the server's previous result (since 2026-07-28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// The `requestState` of the server's previous result, which the client sends back unchanged (since 2026-07-28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CallToolParams {
    /// The parameters of a `tools/call` request for this tool, without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

setters!(CallToolParams {
    with_arguments(arguments: JsonObject),
    with_task(task: TaskMetadata),
    with_input_responses(input_responses: InputResponses),
    with_request_state(request_state: String),
    with_meta(meta: Meta),
});

/// The parameters of `tools/call` as a server reads them: strings are borrowed from the message, and members that only some
/// calls need stay JSON text.
///
/// ```
/// use steadfast_model::CallToolParamsRef;
/// let params: CallToolParamsRef = serde_json::from_str(r#"{"name":"add","arguments":{"a":1}}"#).unwrap();
/// assert_eq!(params.name, "add");
/// assert_eq!(params.arguments.unwrap().get(), r#"{"a":1}"#);
/// ```
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallToolParamsRef<'a> {
    /// The tool.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// The JSON text of the tool's arguments.
    #[serde(default, borrow)]
    pub arguments: Option<&'a RawValue>,
    /// The JSON text of [`CallToolParams::task`].
    #[serde(default, borrow)]
    pub task: Option<&'a RawValue>,
    /// The JSON text of [`CallToolParams::input_responses`].
    #[serde(default, borrow)]
    pub input_responses: Option<&'a RawValue>,
    /// The `requestState` of the server's previous result, which the client sends back unchanged.
    #[serde(default, borrow)]
    pub request_state: Option<Cow<'a, str>>,
    /// The JSON text of [`CallToolParams::meta`].
    #[serde(default, borrow, rename = "_meta")]
    pub meta: Option<&'a RawValue>,
}

/// The result of `tools/call`.
///
/// ```
/// use steadfast_model::{CallToolResult, Content};
/// let result = CallToolResult::text("5").with_structured_content(serde_json::json!({"sum": 5}));
/// assert_eq!(result.content, [Content::text("5")]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallToolResult {
    /// The content of the result, for a model or a person. Old servers leave the content out when the result is structured.
    #[serde(default)]
    pub content: Vec<Content>,
    /// The structured result of the tool (since 2025-06-18; any JSON value since 2026-07-28, an object before).
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
    /// True if the tool failed; the content then describes the failure, so that a model can correct its call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CallToolResult {
    /// The result of a tool call with these pieces of content.
    pub fn new(content: Vec<Content>) -> Self {
        Self { content, ..Self::default() }
    }

    /// The result of a tool call, with one text as its content.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(vec![Content::text(text)])
    }

    /// The result of a failed tool call, with one text that describes the failure to the model.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: Some(true), ..Self::text(text) }
    }

    /// True if this result of a tool call says that the tool failed.
    pub fn is_error(&self) -> bool {
        self.is_error == Some(true)
    }
}

setters!(CallToolResult {
    with_structured_content(structured_content: Value),
    with_is_error(is_error: bool),
    with_meta(meta: Meta),
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_and_unknown_members_of_a_tool_are_kept_in_order() {
        let text = concat!(
            r#"{"name":"t","inputSchema":{"type":"object","properties":{"z":{"type":"string"},"a":{"x-ui":1}},"#,
            r#""$defs":{}},"annotations":{"readOnlyHint":true,"x":1},"x-vendor":{"k":null}}"#,
        );
        let tool: Tool = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&tool).unwrap(), text);
    }

    #[test]
    fn the_display_name_falls_back_to_the_name() {
        let tool = Tool::new("t");
        assert_eq!(tool.display_name(), "t");
        let tool = tool.with_annotations(ToolAnnotations::new().with_title("annotated"));
        assert_eq!(tool.display_name(), "annotated");
        assert_eq!(tool.with_title("titled").display_name(), "titled");
    }

    #[test]
    fn a_result_without_content_is_readable() {
        let result: CallToolResult = serde_json::from_str(r#"{"structuredContent":[1]}"#).unwrap();
        assert!(result.content.is_empty() && !result.is_error());
    }
}
