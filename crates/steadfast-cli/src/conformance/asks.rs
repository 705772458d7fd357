//! Tools that ask the client: its model, and its user by forms of every kind.

use serde_json::{Value, json};
use steadfast::prelude::*;
use steadfast::{CreateMessageParams, ElicitParams, ElicitResult, SamplingMessage, request, tool};

pub(super) fn tools() -> [Tool; 4] {
    [test_sampling(), test_elicitation(), test_elicitation_sep1034_defaults(), test_elicitation_sep1330_enums()]
}

/// Asks the client's model.
#[tool(read_only)]
async fn test_sampling(
    /// What to ask
    prompt: String,
    ctx: Context,
) -> steadfast::Result<String> {
    let question = CreateMessageParams::new(vec![SamplingMessage::user(prompt.as_str())], 100);
    let answer = ctx.call::<request::CreateMessage>(question).await?;
    let texts: Vec<&str> = answer.content.iter().filter_map(Content::as_text).collect();
    Ok(format!("LLM response: {}", texts.join("\n")))
}

/// Asks the user for a name and an address.
#[tool(read_only)]
async fn test_elicitation(
    /// What to say to the user
    message: String,
    ctx: Context,
) -> steadfast::Result<String> {
    let form = json!({
        "type": "object",
        "properties": {
            "username": { "type": "string", "description": "User's response" },
            "email": { "type": "string", "description": "User's email address" },
        },
        "required": ["username", "email"],
    });
    filled_in("User response", ctx, &message, form).await
}

/// Asks the user with a form that has a default in every field.
#[tool(read_only)]
async fn test_elicitation_sep1034_defaults(ctx: Context) -> steadfast::Result<String> {
    let form = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "User name", "default": "John Doe" },
            "age": { "type": "integer", "description": "User age", "default": 30 },
            "score": { "type": "number", "description": "User score", "default": 95.5 },
            "status": {
                "type": "string",
                "description": "User status",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": { "type": "boolean", "description": "Verification status", "default": true },
        },
    });
    filled_in("Elicitation completed", ctx, "Please review and update the form fields with defaults", form).await
}

/// Asks the user with a form that has every kind of choice.
#[tool(read_only)]
async fn test_elicitation_sep1330_enums(ctx: Context) -> steadfast::Result<String> {
    let values = ["option1", "option2", "option3"];
    let titled: Vec<Value> = ["First Option", "Second Option", "Third Option"]
        .into_iter()
        .zip(["value1", "value2", "value3"])
        .map(|(title, value)| json!({ "const": value, "title": title }))
        .collect();
    let form = json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": values },
            "titledSingle": { "type": "string", "oneOf": titled },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": { "type": "array", "items": { "type": "string", "enum": values } },
            "titledMulti": { "type": "array", "items": { "anyOf": titled } },
        },
    });
    filled_in("Elicitation completed", ctx, "Please select options from the enum fields", form).await
}

/// What the user did with a form, in words.
async fn filled_in(words: &str, ctx: Context, message: &str, form: Value) -> steadfast::Result<String> {
    let form = ElicitParams::form(message, serde_json::from_value(form)?);
    let ElicitResult { action, content, .. } = ctx.call::<request::Elicit>(form).await?;
    let (action, content) = (serde_json::to_value(action)?, json!(content.unwrap_or_default()));
    Ok(format!("{words}: action={}, content={content}", action.as_str().unwrap_or_default()))
}
