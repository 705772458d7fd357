//! Tools and a prompt of the conformance server that request input from the client before they return. In revision 2026-07-28
//! the client retries the request with the input, in some of these tests several times.

use schemars::JsonSchema;
use serde::Deserialize;
use steadfast::prelude::*;
use steadfast::server::Ask;
use steadfast::{CreateMessageParams, CreateMessageResult, SamplingMessage, ServerPrompt, tool};

pub(super) fn tools() -> [ServerTool; 8] {
    [
        test_input_required_result_elicitation(),
        test_input_required_result_sampling(),
        test_input_required_result_list_roots(),
        test_input_required_result_request_state(),
        test_input_required_result_multiple_inputs(),
        test_input_required_result_multi_round(),
        test_input_required_result_tampered_state(),
        test_input_required_result_capabilities(),
    ]
}

pub(super) fn prompts() -> [ServerPrompt; 1] {
    [ServerPrompt::new("test_input_required_result_prompt")
        .description("Asks the user what the prompt is about.")
        .handler(|ctx: Context| async move {
            let about = ctx.elicit::<PromptContextForm>("What should the prompt be about?").key("user_context").await?;
            Ok::<_, ToolError>(format!("Use this context: {}", about.context))
        })]
}

#[derive(Deserialize, JsonSchema)]
struct NameForm {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct ColorForm {
    color: String,
}

#[derive(Deserialize, JsonSchema)]
struct DeleteConfirmation {
    ok: bool,
}

#[derive(Deserialize, JsonSchema)]
struct PromptContextForm {
    context: String,
}

/// Asks the user for a name.
#[tool(read_only)]
async fn test_input_required_result_elicitation(ctx: Context) -> steadfast::ToolResult<String> {
    let NameForm { name } = ctx.elicit("What is your name?").key("user_name").await?;
    Ok(format!("Hello, {name}!"))
}

/// Asks the model.
#[tool(read_only)]
async fn test_input_required_result_sampling(ctx: Context) -> steadfast::ToolResult<String> {
    let answer = sample(&ctx, "What is the capital of France?").key("capital_question").await?;
    Ok(format!("LLM response: {}", text(&answer)))
}

/// Asks the client for its roots.
#[tool(read_only)]
async fn test_input_required_result_list_roots(ctx: Context) -> steadfast::ToolResult<String> {
    let answer = ctx.roots().key("client_roots").await?;
    let roots: Vec<&str> = answer.roots.iter().map(|root| root.uri.as_str()).collect();
    Ok(format!("Roots: {}", roots.join(", ")))
}

/// Asks the user for a confirmation.
#[tool(read_only)]
async fn test_input_required_result_request_state(ctx: Context) -> steadfast::ToolResult<String> {
    let DeleteConfirmation { ok } = ctx.elicit("Please confirm").key("confirm").await?;
    Ok(format!("state-ok: {ok}"))
}

/// Requests input from the user, from the model and the roots of the client, all at once.
#[tool(read_only)]
async fn test_input_required_result_multiple_inputs(ctx: Context) -> steadfast::ToolResult<String> {
    let (name, greeting, roots) = tokio::try_join!(
        ctx.elicit::<NameForm>("What is your name?").key("user_name"),
        sample(&ctx, "Generate a greeting").key("greeting"),
        ctx.roots().key("client_roots"),
    )?;
    Ok(format!("{}: {} ({} roots)", name.name, text(&greeting), roots.roots.len()))
}

/// Asks for a name, and then for a color.
#[tool(read_only)]
async fn test_input_required_result_multi_round(ctx: Context) -> steadfast::ToolResult<String> {
    let NameForm { name } = ctx.elicit("Step 1: What is your name?").key("step1").await?;
    let ColorForm { color } = ctx.elicit("Step 2: What is your favorite color?").key("step2").await?;
    Ok(format!("{name} likes {color}"))
}

/// Asks for a confirmation, and rejects a retry in which the client changed the sealed request state.
#[tool(read_only)]
async fn test_input_required_result_tampered_state(ctx: Context) -> steadfast::ToolResult<String> {
    let DeleteConfirmation { ok } = ctx.elicit("Please confirm").key("confirm").await?;
    Ok(format!("confirmed: {ok}"))
}

/// Requests the kinds of input that the client supports: elicitation, sampling, or both.
#[tool(read_only)]
async fn test_input_required_result_capabilities(ctx: Context) -> steadfast::ToolResult<String> {
    let capabilities = ctx.client().capabilities().cloned().unwrap_or_default();
    let user = async {
        match capabilities.elicitation {
            Some(_) => {
                ctx.elicit::<NameForm>("What is your name?").key("user_name").await.map(|answer| Some(answer.name))
            }
            None => Ok(None),
        }
    };
    let model = async {
        match capabilities.sampling {
            Some(_) => sample(&ctx, "Generate a greeting").key("greeting").await.map(|answer| Some(text(&answer))),
            None => Ok(None),
        }
    };
    let (user, model) = tokio::try_join!(user, model)?;
    let answers: Vec<String> = user.into_iter().chain(model).collect();
    Ok(format!("Answers: {}", answers.join(", ")))
}

fn sample(ctx: &Context, question: &str) -> Ask<CreateMessageResult> {
    ctx.sample(CreateMessageParams::new(vec![SamplingMessage::user(question)], 100))
}

fn text(answer: &CreateMessageResult) -> String {
    let texts: Vec<&str> = answer.content.iter().filter_map(Content::as_text).collect();
    texts.join("\n")
}
