//! Tools of the conformance server that run as MCP tasks, and one that never does.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use steadfast::prelude::*;
use steadfast::server::tasks::TaskMode;
use steadfast::{Error, tool};

pub(super) fn tools() -> [ServerTool; 7] {
    [
        greet(),
        slow_compute(),
        failing_job(),
        protocol_error_job(),
        confirm_delete(),
        multi_input(),
        test_tool_with_task(),
    ]
}

/// Returns a greeting at once.
#[tool(read_only)]
async fn greet(
    /// Whom to greet
    name: String,
) -> String {
    format!("Hello, {name}!")
}

#[derive(Deserialize, JsonSchema)]
struct SlowComputeArguments {
    /// Duration in seconds
    seconds: f64,
    /// The name of the computation
    label: Option<String>,
}

fn slow_compute() -> ServerTool {
    ServerTool::new("slow_compute")
        .description("Runs for the given time.")
        .read_only()
        .task(TaskMode::Optional)
        .input::<SlowComputeArguments>()
        .handler(async |SlowComputeArguments { seconds, label }: SlowComputeArguments| {
            let time = Duration::try_from_secs_f64(seconds)?;
            tokio::time::sleep(time).await;
            let label = label.unwrap_or_else(|| "unnamed".to_owned());
            Ok::<_, ToolError>(format!("Computed {label} in {seconds} s"))
        })
}

fn failing_job() -> ServerTool {
    ServerTool::new("failing_job")
        .description("Fails after a second with a result that has isError.")
        .task(TaskMode::Required)
        .handler(async || {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Err::<String, _>(ToolError::new("The job has failed, as it always does"))
        })
}

fn protocol_error_job() -> ServerTool {
    ServerTool::new("protocol_error_job")
        .description("Fails with a JSON-RPC error.")
        .task(TaskMode::Required)
        .handler(async || Err::<String, _>(Error::internal("The job could not be run")))
}

#[derive(Deserialize, JsonSchema)]
struct ConfirmDeleteArguments {
    /// The file whose deletion the user is asked to confirm
    filename: String,
}

#[derive(Deserialize, JsonSchema)]
struct DeleteConfirmation {
    confirm: bool,
}

fn confirm_delete() -> ServerTool {
    ServerTool::new("confirm_delete")
        .description("Asks the user to confirm a deletion, and deletes nothing.")
        .task(TaskMode::Required)
        .input::<ConfirmDeleteArguments>()
        .handler(|ConfirmDeleteArguments { filename }: ConfirmDeleteArguments, ctx: Context| async move {
            let DeleteConfirmation { confirm } = ctx.elicit(format!("Delete {filename}?")).await?;
            Ok::<_, ToolError>(format!("{filename}: {}", if confirm { "deleted" } else { "kept" }))
        })
}

#[derive(Deserialize, JsonSchema)]
struct NameForm {
    name: String,
}

fn multi_input() -> ServerTool {
    ServerTool::new("multi_input").description("Asks the user two things at once.").task(TaskMode::Required).handler(
        |ctx: Context| async move {
            let first = ctx.elicit::<NameForm>("What is your first name?");
            let last = ctx.elicit::<NameForm>("What is your last name?");
            let (first, last) = tokio::try_join!(first, last)?;
            Ok::<_, ToolError>(format!("{} {}", first.name, last.name))
        },
    )
}

fn test_tool_with_task() -> ServerTool {
    async fn name(ctx: Context) -> Result<String, ToolError> {
        let NameForm { name } = ctx.elicit("What is your name?").key("user_name").await?;
        Ok(name)
    }
    ServerTool::new("test_tool_with_task")
        .description("Asks for a name, and returns a greeting as an MCP task.")
        .task(TaskMode::Required)
        .ask_first(|ctx: Context| async move { name(ctx).await.map(drop) })
        .handler(|ctx: Context| async move { Ok::<_, ToolError>(format!("Hello, {}!", name(ctx).await?)) })
}
