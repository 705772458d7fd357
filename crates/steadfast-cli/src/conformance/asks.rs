//! Tools of the conformance server that request input from the client: sampling, and elicitation with all kinds of forms.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use steadfast::prelude::*;
use steadfast::server::Form;
use steadfast::{CreateMessageParams, ElicitParams, ElicitResult, FormSchema, SamplingMessage, tool};

pub(super) fn tools() -> [ServerTool; 5] {
    [
        test_sampling(),
        test_elicitation(),
        test_elicitation_sep1034_defaults(),
        test_elicitation_sep1330_enums(),
        test_streaming_elicitation(),
    ]
}

/// Asks the client's model (sampling).
#[tool(read_only)]
async fn test_sampling(
    /// What to ask
    prompt: String,
    ctx: Context,
) -> steadfast::ToolResult<String> {
    let question = CreateMessageParams::new(vec![SamplingMessage::user(prompt.as_str())], 100);
    let answer = ctx.sample(question).await?;
    let texts: Vec<&str> = answer.content.iter().filter_map(Content::as_text).collect();
    Ok(format!("LLM response: {}", texts.join("\n")))
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "the input is returned as received")]
struct AccountForm {
    /// User's response
    username: String,
    /// User's email address
    email: String,
}

/// Asks the user for a name and an address.
#[tool(read_only)]
async fn test_elicitation(
    /// What to say to the user
    message: String,
    ctx: Context,
) -> steadfast::ToolResult<String> {
    filled_in("User response", &ctx, &message, AccountForm::form()?).await
}

#[derive(Deserialize, JsonSchema)]
#[serde(default)]
#[allow(dead_code, reason = "the input is returned as received")]
struct UserProfileForm {
    /// User name
    name: String,
    /// User age
    age: i32,
    /// User score
    score: f64,
    /// User status
    status: UserProfileStatus,
    /// Verification status
    verified: bool,
}

impl Default for UserProfileForm {
    fn default() -> Self {
        Self { name: "John Doe".to_owned(), age: 30, score: 95.5, status: UserProfileStatus::Active, verified: true }
    }
}

#[derive(Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum UserProfileStatus {
    Active,
    Inactive,
    Pending,
}

/// Asks the user with a form that has a default in every field.
#[tool(read_only)]
async fn test_elicitation_sep1034_defaults(ctx: Context) -> steadfast::ToolResult<String> {
    let message = "Please review and update the form fields with defaults";
    filled_in("Elicitation completed", &ctx, message, UserProfileForm::form()?).await
}

/// Asks the user with a form that has every kind of choice.
#[tool(read_only)]
async fn test_elicitation_sep1330_enums(ctx: Context) -> steadfast::ToolResult<String> {
    filled_in("Elicitation completed", &ctx, "Please select options from the enum fields", choices()?).await
}

/// A form with every kind of choice. The schema of the form is written by hand, since no Rust type generates the
/// deprecated kind of choice (`enumNames`).
fn choices() -> serde_json::Result<FormSchema> {
    let values = ["option1", "option2", "option3"];
    let titled: Vec<Value> = ["First Option", "Second Option", "Third Option"]
        .into_iter()
        .zip(["value1", "value2", "value3"])
        .map(|(title, value)| json!({ "const": value, "title": title }))
        .collect();
    serde_json::from_value(json!({
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
    }))
}

/// Sends a progress notification, and then asks the user.
#[tool(read_only)]
async fn test_streaming_elicitation(ctx: Context) -> steadfast::ToolResult<String> {
    ctx.progress(0.5, "about to ask");
    let account: AccountForm = ctx.elicit("Who are you?").await?;
    Ok(format!("Hello, {}!", account.username))
}

/// Asks the user to fill in the form (elicitation), and describes the result.
async fn filled_in(words: &str, ctx: &Context, message: &str, form: FormSchema) -> steadfast::ToolResult<String> {
    let ElicitResult { action, content, .. } = ctx.elicit_with(ElicitParams::form(message, form)).await?;
    let (action, content) = (serde_json::to_value(action)?, json!(content.unwrap_or_default()));
    Ok(format!("{words}: action={}, content={content}", action.as_str().unwrap_or_default()))
}
