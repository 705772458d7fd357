//! Tools with special schemas: one with rarely supported keywords, and one with an argument that is also sent as a header.

use serde_json::{Value, json};
use steadfast::JsonObject;
use steadfast::prelude::*;

pub(super) fn tools() -> [ServerTool; 2] {
    [every_keyword(), argument_in_a_header()]
}

fn every_keyword() -> ServerTool {
    ServerTool::new("json_schema_2020_12_tool")
        .description("Takes a contact, described with the keywords of JSON Schema 2020-12.")
        .read_only()
        .input_schema(contact())
        .handler(|contact: JsonObject| async move { format!("A contact with {} members", contact.len()) })
}

fn contact() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

fn argument_in_a_header() -> ServerTool {
    let schema = json!({
        "type": "object",
        "properties": {
            "value": { "type": "string", "description": "Also sent in the HTTP header Mcp-Param-Value", "x-mcp-header": "Value" },
        },
        "required": ["value"],
    });
    ServerTool::new("test_custom_header")
        .description("Returns an argument that clients also send in an HTTP header.")
        .read_only()
        .input_schema(schema)
        .handler(|arguments: JsonObject| async move {
            arguments.get("value").and_then(Value::as_str).unwrap_or_default().to_owned()
        })
}
