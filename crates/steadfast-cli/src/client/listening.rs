//! What a server logs for its clients, shown on standard error while it is asked for something.

use std::pin::pin;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::Value;
use steadfast::client::Logs;
use steadfast::{Client, ErrorKind, LoggingLevel, LoggingMessageParams};

use super::{LISTING, harmless, progress, terminal};
use crate::output::say;

/// What is shown unless told: what somebody should know who only wants the answer.
const USUAL: LoggingLevel = LoggingLevel::Warning;
/// How to say that nothing is to be shown.
const NOTHING: &str = "none";
/// How many messages may be waiting at the end. One who writes on and on does not keep us.
const MOST_AT_THE_END: usize = 1_024;

/// Which of the server's log messages are shown.
#[derive(Args)]
pub(crate) struct Listening {
    /// Show what the server logs for its clients, from this level on, on standard error [default: warning]
    #[arg(long, value_name = "LEVEL", value_parser = level())]
    log_level: Option<Wanted>,
}

#[derive(Clone, Copy)]
enum Wanted {
    From(LoggingLevel),
    Nothing,
}

fn level() -> impl TypedValueParser<Value = Wanted> {
    let names = LoggingLevel::ALL.map(LoggingLevel::as_str);
    PossibleValuesParser::new(names.into_iter().chain([NOTHING])).map(|name| {
        let level = LoggingLevel::ALL.into_iter().find(|level| level.as_str() == name);
        level.map_or(Wanted::Nothing, Wanted::From)
    })
}

impl Listening {
    /// Does something, and shows meanwhile what the server has to say. It begins when the server knows what is to be heard.
    pub(super) async fn during<T>(&self, client: &Client, work: impl IntoFuture<Output = T>) -> T {
        let Some(mut logs) = self.begin(client).await else { return work.await };
        let mut work = pin!(work.into_future());
        let done = loop {
            tokio::select! {
                biased;
                done = &mut work => break done,
                message = logs.next() => match message {
                    Some(Ok(message)) => show(&message),
                    Some(Err(_)) | None => return work.await,
                },
            }
            // Whoever gives up is heard, however much there is to show.
            tokio::task::yield_now().await;
        };
        // What was said before the end has come before it.
        for _ in 0..MOST_AT_THE_END {
            tokio::select! {
                biased;
                Some(Ok(message)) = logs.next() => show(&message),
                () = std::future::ready(()) => break,
            }
        }
        done
    }

    /// Nothing if there is nothing to be heard. That is told only to who asked to hear something.
    async fn begin(&self, client: &Client) -> Option<Logs> {
        let level = match self.log_level {
            Some(Wanted::Nothing) => return None,
            Some(Wanted::From(level)) => level,
            None => USUAL,
        };
        let mut logs = client.logs(level);
        // A call could overtake the level. A server that does not answer may still have taken it.
        let Ok(Err(error)) = tokio::time::timeout(LISTING, logs.ready()).await else { return Some(logs) };
        match error.kind() {
            _ if self.log_level.is_none() => {}
            ErrorKind::Unsupported => say("steadfast: the server has no log for its clients"),
            ErrorKind::Refused => say("steadfast: the server did not take --log-level"),
            // It is gone, as the call is going to say.
            _ => {}
        }
        None
    }
}

fn show(message: &LoggingMessageParams) {
    let said = match &message.data {
        Value::String(text) => harmless::quoted(text),
        other => harmless::line(&other.to_string()),
    };
    let logger = message.logger.as_deref().map_or_else(String::new, |logger| format!(", {}", harmless::line(logger)));
    let line = format!("server ({}{logger}): {said}", message.level);
    if terminal::is_styled(&std::io::stderr()) {
        progress::say_above(format_args!("\u{1b}[2m{line}\u{1b}[0m"));
    } else {
        progress::say_above(line);
    }
}
