//! `steadfast prompt`: fills in a prompt.

use clap::Args;
use steadfast::model::Prompt;
use steadfast::{ErrorKind, Role};

use super::arguments::pairs;
use super::layout::{Page, Row};
use super::list::prompt_argument;
use super::listening::Listening;
use super::session::Ended;
use super::{Connect, Ending, Failure, LISTING, Launch, advice, ending, session, show};

/// Fills in a prompt
#[derive(Args)]
#[command(
    after_help = ending::help("steadfast prompt './steadfast serve' explain_law --arg law=L1"),
    override_usage = "steadfast prompt [OPTIONS] <TARGET> <PROMPT>\n       steadfast prompt [OPTIONS] <PROMPT> -- <COMMAND>..."
)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) connect: Connect,
    /// The prompt
    prompt: Option<String>,
    /// An argument, as name=value. May be given more than once
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    arguments: Vec<String>,
    #[command(flatten)]
    listening: Listening,
    #[command(flatten)]
    launch: Launch,
}

pub(crate) async fn run(mut options: Options) -> Result<Ending, Failure> {
    let pairs = pairs(&options.arguments)?;
    let prompt = options.connect.sort(options.prompt.take(), &options.launch, "the prompt")?;
    let timeout = options.connect.timeout();
    let filling = session::with(&options.connect, &options.launch, async |client| {
        match options.listening.during(client, client.get_prompt(&prompt, pairs).timeout(timeout)).await {
            Err(error) if error.kind() == ErrorKind::Refused => {
                let prompts = client.prompts().timeout(LISTING).all().await.ok();
                Err(Failure::from(error).with_note(prompts.and_then(|prompts| advice(&prompt, &prompts))))
            }
            filled => filled.map_err(Failure::from),
        }
    });
    let result = match filling.await? {
        Ended::Done(result) => result,
        Ended::GivenUp(interrupt) => return Ok(Ending::Cancelled(interrupt)),
    };
    if options.connect.json {
        show::as_json(&result)?;
    } else {
        for message in &result.messages {
            let role = if message.role == Role::User { "user" } else { "assistant" };
            show::print(&format!("{role}: {}", show::content(&message.content)))?;
        }
    }
    Ok(Ending::Done)
}

/// What may help whose prompt was refused: what it takes, or which ones there are.
fn advice(wanted: &str, prompts: &[Prompt]) -> Option<String> {
    let Some(prompt) = prompts.iter().find(|prompt| prompt.name == wanted) else {
        let names: Vec<&str> = prompts.iter().map(|prompt| &*prompt.name).collect();
        return advice::what_there_is("prompts", wanted, &names);
    };
    let rows: Vec<Row> = prompt.arguments.iter().map(prompt_argument).collect();
    if rows.is_empty() {
        return Some(format!("`{wanted}` takes no arguments"));
    }
    let page = Page { width: None, bold: false };
    Some(format!("`{wanted}` takes these arguments:\n{}", page.table(&rows).trim_end()))
}
