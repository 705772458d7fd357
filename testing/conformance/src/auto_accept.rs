//! A user who accepts everything, and a model that always responds: every value is made up from its schema.

use serde_json::{Value, json};
use steadfast::client::ClientContext;
use steadfast::{
    Content, CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult, Error, FormSchema, JsonObject,
    ListRootsResult, Root, model::FormFieldKind,
};

/// Fills in a form. What has a default is left to the SDK.
pub(crate) fn fill(asked: &ElicitParams) -> ElicitResult {
    match asked {
        ElicitParams::Form(form) => ElicitResult::accept(answers(&form.requested_schema)),
        _ => ElicitResult::agree(),
    }
}

fn answers(form: &FormSchema) -> JsonObject {
    let required = form.fields().filter(|(name, _)| form.is_required(name));
    required.filter_map(|(name, field)| Some((name.to_owned(), answer(&field.kind)?))).collect()
}

/// An answer to a field without a default.
fn answer(kind: &FormFieldKind) -> Option<Value> {
    match kind {
        FormFieldKind::Text { default: None, .. } => Some("yes".into()),
        FormFieldKind::Number { default: None, minimum, .. } => {
            Some(minimum.clone().map_or_else(|| json!(1), Value::Number))
        }
        FormFieldKind::Boolean { default: None, .. } => Some(true.into()),
        FormFieldKind::Choice { default: None, options, .. } => Some(options.first()?.value.clone().into()),
        FormFieldKind::Choices { default: None, options, .. } => Some(json!([options.first()?.value])),
        _ => None,
    }
}

/// Says something.
pub(crate) async fn sample(_: CreateMessageParams, _: ClientContext) -> Result<CreateMessageResult, Error> {
    Ok(CreateMessageResult::new("agreeable", Content::text("Certainly.")))
}

/// Works in one folder.
pub(crate) async fn roots(_: ClientContext) -> Result<ListRootsResult, Error> {
    Ok(ListRootsResult::new(vec![Root::new("file:///workspace")]))
}

/// Arguments that fit the schema of a tool: all that is required.
pub(crate) fn arguments(schema: &JsonObject) -> JsonObject {
    let required = schema.get("required").and_then(Value::as_array);
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    names.map(|name| (name.to_owned(), example(schema.get("properties").and_then(|all| all.get(name))))).collect()
}

fn example(schema: Option<&Value>) -> Value {
    let Some(schema) = schema else { return json!("text") };
    if let Some(value) = schema.get("default").or_else(|| schema.get("enum")?.get(0)).or_else(|| schema.get("const")) {
        return value.clone();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("number" | "integer") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => schema.as_object().map_or_else(|| json!({}), |object| Value::Object(arguments(object))),
        _ => json!("text"),
    }
}
