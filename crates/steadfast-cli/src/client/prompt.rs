//! `steadfast prompt`: fills in a prompt.

use clap::Args;
use steadfast::{Error, Role};

use super::{Connect, Ending, ending, show};

/// Fills in a prompt
#[derive(Args)]
#[command(after_help = ending::CODES)]
pub(crate) struct Options {
    #[command(flatten)]
    connect: Connect,
    /// The prompt
    prompt: String,
    /// An argument, as name=value. May be given more than once
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    arguments: Vec<String>,
}

pub(crate) async fn run(options: Options) -> Result<Ending, Error> {
    let pairs: Result<Vec<(&str, &str)>, Error> = options.arguments.iter().map(|argument| pair(argument)).collect();
    let pairs = pairs?;
    let client = options.connect.open().await?;
    let filled = client.get_prompt(&options.prompt, pairs).timeout(options.connect.timeout()).await;
    client.close().await;
    let result = filled?;
    if options.connect.json {
        println!("{:#}", serde_json::to_value(&result).map_err(Error::encode)?);
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
