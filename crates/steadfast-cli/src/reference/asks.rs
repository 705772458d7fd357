//! Tools that ask the client before they answer: written once, for revisions in which servers call their clients and for
//! those in which clients come back with the answers.

use schemars::JsonSchema;
use serde::Deserialize;
use steadfast::prelude::*;
use steadfast::{CreateMessageParams, SamplingMessage};

use super::Reference;

/// The form that the user fills in.
#[derive(Deserialize, JsonSchema)]
struct Introduction {
    /// What to call you
    name: String,
    /// How to greet you
    #[serde(default)]
    manner: Manner,
}

#[derive(Clone, Copy, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Manner {
    #[default]
    Warm,
    Formal,
}

#[server(part = asks)]
impl Reference {
    /// Asks the user for a name, with a form, and greets.
    #[tool(read_only)]
    async fn ask_user(&self, ctx: Context) -> steadfast::Result<String> {
        let Introduction { name, manner } = ctx.elicit("Who are you?").await?;
        Ok(match manner {
            Manner::Warm => format!("Hello, {name}!"),
            Manner::Formal => format!("Good day, {name}."),
        })
    }

    /// Asks the client's model.
    #[tool(read_only)]
    async fn ask_model(&self, question: String, ctx: Context) -> steadfast::Result<String> {
        let question = CreateMessageParams::new(vec![SamplingMessage::user(question.as_str())], 200);
        let answer = ctx.sample(question).await?;
        let texts: Vec<&str> = answer.content.iter().filter_map(Content::as_text).collect();
        Ok(texts.join("\n"))
    }

    /// Asks the client for its roots.
    #[tool(read_only)]
    async fn ask_roots(&self, ctx: Context) -> steadfast::Result<String> {
        let roots = ctx.roots().await?;
        let names: Vec<&str> = roots.roots.iter().map(|root| root.uri.as_str()).collect();
        Ok(names.join("\n"))
    }
}
