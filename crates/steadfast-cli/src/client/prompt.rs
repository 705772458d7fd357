//! `steadfast prompt`: fills in a prompt.

use clap::Args;
use steadfast::{Error, Role};

use super::{Connect, Ending, Failure, Launch, ending, session, show};

/// Fills in a prompt
#[derive(Args)]
#[command(
    after_help = ending::CODES,
    override_usage = "steadfast prompt [OPTIONS] <TARGET> <PROMPT>\n       steadfast prompt [OPTIONS] <PROMPT> -- <COMMAND>..."
)]
pub(crate) struct Options {
    #[command(flatten)]
    connect: Connect,
    /// The prompt
    prompt: Option<String>,
    /// An argument, as name=value. May be given more than once
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    arguments: Vec<String>,
    #[command(flatten)]
    launch: Launch,
}

pub(crate) async fn run(mut options: Options) -> Result<Ending, Failure> {
    let pairs: Result<Vec<(&str, &str)>, Error> = options.arguments.iter().map(|argument| pair(argument)).collect();
    let pairs = pairs?;
    let prompt = options.connect.sort(options.prompt.take(), &options.launch, "the prompt")?;
    let timeout = options.connect.timeout();
    let filling = session::with(&options.connect, &options.launch, async |client| {
        client.get_prompt(&prompt, pairs).timeout(timeout).await
    });
    let Some(result) = filling.await? else { return Ok(Ending::Cancelled) };
    if options.connect.json {
        show::as_json(&result)?;
    } else {
        for message in &result.messages {
            let role = if message.role == Role::User { "user" } else { "assistant" };
            println!("{role}: {}", show::content(&message.content));
        }
    }
    Ok(Ending::Done)
}

fn pair(argument: &str) -> Result<(&str, &str), Error> {
    argument.split_once('=').ok_or_else(|| Error::usage(format!("`{argument}` is not name=value")))
}
