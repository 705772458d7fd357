//! Tools that run as tasks, and one that never does.

use std::time::Duration;

use serde::Deserialize;
use steadfast::prelude::*;
use steadfast::schemars::{self, JsonSchema};
use steadfast::server::tasks::TaskSupport;
use steadfast::{Error, tool};

pub(super) fn tools() -> [Tool; 4] {
    [greet(), slow_compute(), failing_job(), protocol_error_job()]
}

/// Says hello, at once.
#[tool(read_only)]
async fn greet(
    /// Whom to greet
    name: String,
) -> String {
    format!("Hello, {name}!")
}

#[derive(Deserialize, JsonSchema)]
struct Work {
    /// How long it takes
    seconds: f64,
    /// What it is called
    label: Option<String>,
}

fn slow_compute() -> Tool {
    Tool::new("slow_compute")
        .description("Takes its time.")
        .read_only()
        .task(TaskSupport::Optional)
        .input::<Work>()
        .handler(async |Work { seconds, label }: Work| {
            let time = Duration::try_from_secs_f64(seconds)?;
            tokio::time::sleep(time).await;
            let label = label.unwrap_or_else(|| "unnamed".to_owned());
            Ok::<_, ToolError>(format!("Computed {label} in {seconds} s"))
        })
}

fn failing_job() -> Tool {
    Tool::new("failing_job")
        .description("Fails after a second, in a way that a model can read.")
        .task(TaskSupport::Required)
        .handler(async || {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Err::<String, _>(ToolError::new("The job has failed, as it always does"))
        })
}

fn protocol_error_job() -> Tool {
    Tool::new("protocol_error_job")
        .description("Ends with an error of the protocol.")
        .task(TaskSupport::Required)
        .handler(async || Err::<String, _>(Error::internal("The job could not be run")))
}
