//! Tools that need input from the client: elicitation, sampling and roots. A tool that needs input from its client
//! has the same code for revisions in which the server sends requests to the client, and for those in which the
//! client retries its request with the input.

use schemars::JsonSchema;
use serde::Deserialize;
use steadfast::prelude::*;
use steadfast::{CreateMessageParams, SamplingMessage};

use super::CliReferenceServer;

/// The form that the user fills in.
#[derive(Deserialize, JsonSchema)]
struct GreetingForm {
    /// Your name
    name: String,
    /// The style of the greeting
    #[serde(default)]
    manner: GreetingStyle,
}

#[derive(Clone, Copy, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum GreetingStyle {
    #[default]
    Warm,
    Formal,
}

#[server(part = asks)]
impl CliReferenceServer {
    /// Asks the user for a name with a form (elicitation) and returns a greeting.
    #[tool(read_only)]
    async fn ask_user(&self, ctx: Context) -> steadfast::ToolResult<String> {
        let GreetingForm { name, manner } = ctx.elicit("Who are you?").await?;
        Ok(match manner {
            GreetingStyle::Warm => format!("Hello, {name}!"),
            GreetingStyle::Formal => format!("Good day, {name}."),
        })
    }

    /// Asks the client's model a question (sampling) and returns its answer.
    #[tool(read_only)]
    async fn ask_model(&self, question: String, ctx: Context) -> steadfast::ToolResult<String> {
        let question = CreateMessageParams::new(vec![SamplingMessage::user(question.as_str())], 200);
        let answer = ctx.sample(question).await?;
        let texts: Vec<&str> = answer.content.iter().filter_map(Content::as_text).collect();
        Ok(texts.join("\n"))
    }

    /// Asks the client for its roots and returns their URIs.
    #[tool(read_only)]
    async fn ask_roots(&self, ctx: Context) -> steadfast::ToolResult<String> {
        let roots = ctx.roots().await?;
        let names: Vec<&str> = roots.roots.iter().map(|root| root.uri.as_str()).collect();
        Ok(names.join("\n"))
    }
}
