//! `steadfast call`: calls a tool, and says how it ended.

use clap::Args;
use serde_json::Value;
use steadfast::{Error, JsonObject};

use super::progress::Progress;
use super::{Connect, Ending, Failure, Launch, ending, session, show};

/// Calls a tool
#[derive(Args)]
#[command(
    after_help = ending::CODES,
    override_usage = "steadfast call [OPTIONS] <TARGET> <TOOL>\n       steadfast call [OPTIONS] <TOOL> -- <COMMAND>..."
)]
pub(crate) struct Options {
    #[command(flatten)]
    connect: Connect,
    /// The tool
    tool: Option<String>,
    /// An argument, as name=value. A value that is JSON is taken as JSON, any other as text. May be given more than once
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    arguments: Vec<String>,
    /// All arguments, as a JSON object
    #[arg(long, value_name = "JSON", conflicts_with = "arguments")]
    arguments_json: Option<String>,
    #[command(flatten)]
    launch: Launch,
}

pub(crate) async fn run(mut options: Options) -> Result<Ending, Failure> {
    let arguments = options.arguments()?;
    let tool = options.connect.sort(options.tool.take(), &options.launch, "the tool")?;
    let timeout = options.connect.timeout();
    let bar = Progress::new();
    let called = session::with(&options.connect, &options.launch, async |client| {
        let shown = bar.clone();
        let call = client.call_tool(&tool, arguments).timeout(timeout);
        call.on_progress(move |progress| shown.show(&progress)).await
    });
    let called = called.await;
    bar.clear();
    let Some(result) = called? else { return Ok(Ending::Cancelled) };
    if options.connect.json {
        show::as_json(&result)?;
    } else {
        for piece in &result.content {
            println!("{}", show::content(piece));
        }
        if let (Some(structured), true) = (&result.structured_content, result.content.is_empty()) {
            show::as_json(structured)?;
        }
    }
    Ok(if result.is_error == Some(true) { Ending::ToolFailed } else { Ending::Done })
}

impl Options {
    fn arguments(&self) -> Result<JsonObject, Error> {
        if let Some(text) = &self.arguments_json {
            return serde_json::from_str(text)
                .map_err(|error| Error::usage(format!("--arguments-json is not a JSON object: {error}")));
        }
        self.arguments.iter().map(|argument| one(argument)).collect()
    }
}

fn one(argument: &str) -> Result<(String, Value), Error> {
    let (name, value) =
        argument.split_once('=').ok_or_else(|| Error::usage(format!("`{argument}` is not name=value")))?;
    Ok((name.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| value.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_json_where_they_can_be() {
        assert_eq!(one("a=7").unwrap(), ("a".to_owned(), 7.into()));
        assert_eq!(one("a=true").unwrap().1, Value::Bool(true));
        assert_eq!(one("a=[1]").unwrap().1, serde_json::json!([1]));
        assert_eq!(one("a=seven").unwrap().1, Value::from("seven"));
        assert_eq!(one("a=b=c").unwrap().1, Value::from("b=c"));
        assert_eq!(one("a=").unwrap().1, Value::from(""));
        assert!(one("a").is_err());
    }
}
