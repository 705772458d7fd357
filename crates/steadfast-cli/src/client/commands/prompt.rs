//! `steadfast prompt`: gets a prompt with its arguments filled in.

use std::collections::BTreeMap;

use clap::Args;
use steadfast::model::Prompt;
use steadfast::{ErrorKind, Role};

use super::list::prompt_argument;
use crate::client::arguments::pairs;
use crate::client::connection::session;
use crate::client::connection::session::CliSessionEnd;
use crate::client::display::server_log::ServerLogDisplayOptions;
use crate::client::display::table::{TableRow, TableStyle};
use crate::client::display::{content, hints};
use crate::client::{CliCommandFailure, CliConnectOptions, CliExitStatus, HINT_TIMEOUT, ServerCommand, exit};

/// Gets a prompt with its arguments filled in
#[derive(Args)]
#[command(
    after_help = exit::help("steadfast prompt './steadfast serve' explain_law --arg law=L1"),
    override_usage = "steadfast prompt [OPTIONS] <TARGET> <PROMPT>\n       steadfast prompt [OPTIONS] <PROMPT> -- <COMMAND>..."
)]
pub(crate) struct PromptArgs {
    #[command(flatten)]
    pub(crate) connect: CliConnectOptions,
    /// The name of the prompt
    prompt: Option<String>,
    /// Set an argument. May be repeated
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    arguments: Vec<String>,
    #[command(flatten)]
    server_log: ServerLogDisplayOptions,
    #[command(flatten)]
    server_command: ServerCommand,
}

pub(crate) async fn run(mut options: PromptArgs) -> Result<CliExitStatus, CliCommandFailure> {
    let arguments: BTreeMap<_, _> = pairs(&options.arguments)?.into_iter().collect();
    let prompt =
        options.connect.take_operand(options.prompt.take(), &options.server_command, "the name of the prompt")?;
    let timeout = options.connect.timeout();
    let getting = session::run(&options.connect, &options.server_command, async |client| {
        match options.server_log.show_during(client, client.get_prompt(&prompt, &arguments).timeout(timeout)).await {
            Err(error) if error.kind() == ErrorKind::Refused => {
                let prompts = client.prompts().timeout(HINT_TIMEOUT).all().await.ok();
                Err(CliCommandFailure::from(error).with_note(prompts.and_then(|prompts| hint(&prompt, &prompts))))
            }
            result => result.map_err(CliCommandFailure::from),
        }
    });
    let result = match getting.await? {
        CliSessionEnd::Finished(result) => result,
        CliSessionEnd::Interrupted(interrupt) => return Ok(CliExitStatus::Interrupted(interrupt)),
    };
    if options.connect.json {
        content::print_json(&result)?;
    } else {
        for message in &result.messages {
            let role = if message.role == Role::User { "user" } else { "assistant" };
            content::print_line(&format!("{role}: {}", content::format_content(&message.content)))?;
        }
    }
    Ok(CliExitStatus::Success)
}

/// A hint for a failed `prompts/get`: the arguments of the prompt, or the names of all prompts if there is no prompt of that
/// name.
fn hint(name: &str, prompts: &[Prompt]) -> Option<String> {
    let Some(prompt) = prompts.iter().find(|prompt| prompt.name == name) else {
        let names: Vec<&str> = prompts.iter().map(|prompt| &*prompt.name).collect();
        return hints::suggest_names("prompts", name, &names);
    };
    let rows: Vec<TableRow> = prompt.arguments.iter().map(prompt_argument).collect();
    if rows.is_empty() {
        return Some(format!("the prompt `{name}` takes no arguments"));
    }
    let style = TableStyle { width: None, bold: false };
    Some(format!("the prompt `{name}` takes these arguments:\n{}", style.table(&rows).trim_end()))
}
