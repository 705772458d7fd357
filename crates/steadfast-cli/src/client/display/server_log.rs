//! Log messages of the server (`notifications/message`), shown on standard error while a request runs.

use std::pin::pin;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::Value;
use steadfast::client::LogStream;
use steadfast::{Client, ErrorKind, LoggingLevel, model::LoggingMessageParams};

use super::{progress, sanitize, terminal};
use crate::client::HINT_TIMEOUT;
use crate::output::eprint_line;

/// The lowest level of server log messages that are shown if `--log-level` is not given.
const DEFAULT_LEVEL: LoggingLevel = LoggingLevel::Warning;
/// The value of `--log-level` that shows nothing.
const OFF: &str = "none";
/// The maximum number of queued log messages that are shown after the response. A server that logs forever must not delay the
/// exit of the command.
const DRAIN_LIMIT: usize = 1_024;

/// The command-line option for the server's log messages.
#[derive(Args)]
pub(crate) struct ServerLogDisplayOptions {
    /// Show log messages of the server from this level up, on standard error [default: warning]
    #[arg(long, value_name = "LEVEL", value_parser = level())]
    log_level: Option<ServerLogThreshold>,
}

#[derive(Clone, Copy)]
enum ServerLogThreshold {
    From(LoggingLevel),
    Off,
}

fn level() -> impl TypedValueParser<Value = ServerLogThreshold> {
    let names = LoggingLevel::ALL.iter().map(|level| level.as_str());
    PossibleValuesParser::new(names.chain([OFF])).map(|name| {
        let level = LoggingLevel::ALL.iter().copied().find(|level| level.as_str() == name);
        level.map_or(ServerLogThreshold::Off, ServerLogThreshold::From)
    })
}

impl ServerLogDisplayOptions {
    /// Runs `work` and shows the server's log messages meanwhile. `work` starts once the log level is set at the server.
    pub(crate) async fn show_during<T>(&self, client: &Client, work: impl IntoFuture<Output = T>) -> T {
        let Some(mut logs) = self.subscribe(client).await else { return work.await };
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
            // Lets Ctrl-C be handled, however many messages there are.
            tokio::task::yield_now().await;
        };
        // Messages sent before the response have arrived before it.
        for _ in 0..DRAIN_LIMIT {
            tokio::select! {
                biased;
                Some(Ok(message)) = logs.next() => show(&message),
                () = std::future::ready(()) => break,
            }
        }
        done
    }

    /// Sets the log level of the server, and returns the stream of its log messages. Returns `None` if the server has
    /// no log messages, which is reported only if `--log-level` is given.
    async fn subscribe(&self, client: &Client) -> Option<LogStream> {
        let level = match self.log_level {
            Some(ServerLogThreshold::Off) => return None,
            Some(ServerLogThreshold::From(level)) => level,
            None => DEFAULT_LEVEL,
        };
        let mut logs = client.logs(level);
        // Waits, since a request could overtake the level. If that times out the level may still be set.
        let Ok(Err(error)) = tokio::time::timeout(HINT_TIMEOUT, logs.ready()).await else { return Some(logs) };
        match error.kind() {
            _ if self.log_level.is_none() => {}
            ErrorKind::Unsupported => {
                eprint_line("steadfast: --log-level has no effect: the server does not support logging");
            }
            ErrorKind::Refused => eprint_line("steadfast: --log-level has no effect: the server rejected the level"),
            // The connection is lost: the request reports that.
            _ => {}
        }
        None
    }
}

fn show(message: &LoggingMessageParams) {
    let text = match &message.data {
        Value::String(text) => sanitize::quoted(text),
        other => sanitize::line(&other.to_string()),
    };
    let logger = message.logger.as_deref().map_or_else(String::new, |logger| format!(", {}", sanitize::line(logger)));
    let line = format!("server ({}{logger}): {text}", message.level);
    if terminal::is_styled(&std::io::stderr()) {
        progress::eprint_above_bar(format_args!("\u{1b}[2m{line}\u{1b}[0m"));
    } else {
        progress::eprint_above_bar(line);
    }
}
