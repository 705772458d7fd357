//! `steadfast call`: calls a tool, and says how it ended.

use std::io::IsTerminal as _;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use steadfast::{Error, JsonObject, ProgressParams};

use super::{Connect, Ending, ending, show};

/// Calls a tool
#[derive(Args)]
#[command(after_help = ending::CODES)]
pub(crate) struct Options {
    #[command(flatten)]
    connect: Connect,
    /// The tool
    tool: String,
    /// An argument, as name=value. A value that is JSON is taken as JSON, any other as text. May be given more than once
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    arguments: Vec<String>,
    /// All arguments, as a JSON object
    #[arg(long, value_name = "JSON", conflicts_with = "arguments")]
    arguments_json: Option<String>,
}

pub(crate) async fn run(options: Options) -> Result<Ending, Error> {
    let arguments = options.arguments()?;
    let client = options.connect.open().await?;
    let bar = Bar::new();
    let shown = bar.clone();
    let call = client.call_tool(&options.tool, arguments).timeout(options.connect.timeout());
    let call = call.on_progress(move |progress| shown.show(&progress));
    let ended = tokio::select! {
        biased;
        ended = call.into_future() => Some(ended),
        _ = tokio::signal::ctrl_c() => None,
    };
    bar.clear();
    // Given up: the server is told, and heard until it is silent. A second Ctrl-C does not wait.
    tokio::select! {
        biased;
        () = client.close() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    let Some(ended) = ended else {
        eprintln!("steadfast: given up; the server was told");
        return Ok(Ending::Cancelled);
    };
    let result = ended?;
    if options.connect.json {
        println!("{:#}", serde_json::to_value(&result).map_err(Error::encode)?);
    } else {
        for piece in &result.content {
            println!("{}", show::content(piece));
        }
        if let (Some(structured), true) = (&result.structured_content, result.content.is_empty()) {
            println!("{structured:#}");
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

/// How far the call is: a bar at a terminal, lines elsewhere.
#[derive(Clone)]
struct Bar(Option<ProgressBar>);

impl Bar {
    fn new() -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = ProgressBar::new(1_000);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3}% {wide_msg}") {
            bar.set_style(style);
        }
        Self(Some(bar))
    }

    fn show(&self, progress: &ProgressParams) {
        let part = progress.total.filter(|total| *total > 0.0).map(|total| (progress.progress / total).clamp(0.0, 1.0));
        let message = progress.message.clone().unwrap_or_default();
        match (&self.0, part) {
            (None, Some(part)) => eprintln!("steadfast: {:.0}% {message}", part * 100.0),
            (None, None) => eprintln!("steadfast: {} {message}", progress.progress),
            (Some(bar), part) => {
                if let Some(part) = part {
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 1,000")]
                    bar.set_position((part * 1_000.0) as u64);
                }
                bar.set_message(message);
            }
        }
    }

    fn clear(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
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
