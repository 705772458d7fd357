//! Encodes tools, tool calls and their results for one revision.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Value, json};

use super::{Encode, ObjectEncoder, RequestResult};
use crate::feature::tool::{CallToolParams, CallToolResult, ListToolsResult, Tool, ToolAnnotations};
use crate::json::JsonObject;
use crate::message::cache::CacheHints;
use crate::revision::Revision;

/// The member that holds the structured result of a tool if it is not an object, in revisions that require an object.
pub const WRAPPER_MEMBER: &str = "result";

impl Encode for CallToolResult {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.inner_list("content", &self.content)?;
        structured_content(self.structured_content.as_ref(), object)?;
        object.some("isError", self.is_error.as_ref())?;
        object.meta(self.meta.as_ref())
    }
}

impl RequestResult for CallToolResult {}

/// Writes structured content: any JSON value since 2026-07-28; from 2025-06-18 to 2025-11-25 only an object, in which other
/// values are wrapped.
pub(super) fn structured_content<M: SerializeMap>(
    value: Option<&Value>,
    object: &mut ObjectEncoder<'_, M>,
) -> Result<(), M::Error> {
    match value {
        Some(value) if object.revision().is_stateless() || value.is_object() => {
            object.since(Revision::V2025_06_18, "structuredContent", Some(value))
        }
        Some(value) => object.since(Revision::V2025_06_18, "structuredContent", Some(&WrappedOutput(value))),
        None => Ok(()),
    }
}

struct WrappedOutput<'a>(&'a Value);

impl Serialize for WrappedOutput<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([(WRAPPER_MEMBER, self.0)])
    }
}

impl Encode for Tool {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("name", &self.name)?;
        object.since(Revision::V2025_06_18, "title", self.title.as_ref())?;
        object.some("description", self.description.as_ref())?;
        object.put("inputSchema", &ToolSchemaEncoder { schema: &self.input_schema, revision: object.revision() })?;
        output_schema(self.output_schema.as_ref(), object)?;
        annotations(self, object)?;
        object.list_since(Revision::V2025_11_25, "icons", &self.icons)?;
        if object.revision().has_experimental_tasks() {
            object.some("execution", self.execution.as_ref())?;
        }
        object.meta(self.meta.as_ref())?;
        object.extra(&self.extra)
    }
}

/// Writes the output schema of a tool. Before 2026-07-28 an output schema can describe only objects: another schema is left
/// out, since its values are wrapped in an object.
fn output_schema<M: SerializeMap>(
    schema: Option<&JsonObject>,
    object: &mut ObjectEncoder<'_, M>,
) -> Result<(), M::Error> {
    let Some(schema) = schema else { return Ok(()) };
    let revision = object.revision();
    let describes_object = schema.get("type").and_then(Value::as_str) == Some("object");
    if revision.is_stateless() || (describes_object && object.is_since(Revision::V2025_06_18)) {
        object.put("outputSchema", &ToolSchemaEncoder { schema, revision })?;
    }
    Ok(())
}

/// Writes the annotations of a tool. Revision 2025-03-26 has annotations but no `title` of the tool, so the title is written
/// into the annotations.
fn annotations<M: SerializeMap>(tool: &Tool, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
    let hints = tool.annotations.as_ref();
    let titled_here = hints.is_some_and(|hints| hints.title.is_some());
    match &tool.title {
        Some(title) if object.revision() == Revision::V2025_03_26 && !titled_here => {
            let hints = hints.cloned().unwrap_or_default().with_title(title);
            object.inner("annotations", &hints)
        }
        _ if object.is_since(Revision::V2025_03_26) => object.inner_some("annotations", hints),
        _ => Ok(()),
    }
}

impl Encode for ToolAnnotations {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.some("title", self.title.as_ref())?;
        object.some("readOnlyHint", self.read_only_hint.as_ref())?;
        object.some("destructiveHint", self.destructive_hint.as_ref())?;
        object.some("idempotentHint", self.idempotent_hint.as_ref())?;
        object.some("openWorldHint", self.open_world_hint.as_ref())?;
        object.extra(&self.extra)
    }
}

/// Encodes the schema of a tool. In older revisions the schemas of its properties are written as objects: `true` and `false`
/// are JSON Schemas too, but peers of older revisions do not accept them.
struct ToolSchemaEncoder<'a> {
    schema: &'a JsonObject,
    revision: Revision,
}

impl Serialize for ToolSchemaEncoder<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let properties = self.schema.get("properties").and_then(Value::as_object);
        let has_boolean = properties.is_some_and(|properties| properties.values().any(Value::is_boolean));
        if self.revision.is_stateless() || !has_boolean {
            return self.schema.serialize(serializer);
        }
        let mut schema = self.schema.clone();
        for property in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
            match property.1 {
                Value::Bool(true) => *property.1 = json!({}),
                Value::Bool(false) => *property.1 = json!({ "not": {} }),
                _ => {}
            }
        }
        schema.serialize(serializer)
    }
}

impl Encode for ListToolsResult {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.inner_list("tools", &self.tools)?;
        object.some("nextCursor", self.next_cursor.as_ref())?;
        object.meta(self.meta.as_ref())
    }
}

impl RequestResult for ListToolsResult {
    fn caching(&self) -> Option<Option<CacheHints>> {
        Some(self.cache())
    }
}

impl Encode for CallToolParams {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("name", &self.name)?;
        object.some("arguments", self.arguments.as_ref())?;
        if object.revision().has_experimental_tasks() {
            object.some("task", self.task.as_ref())?;
        }
        object.since(Revision::V2026_07_28, "inputResponses", self.input_responses.as_ref())?;
        object.since(Revision::V2026_07_28, "requestState", self.request_state.as_ref())?;
        object.meta(self.meta.as_ref())
    }
}
