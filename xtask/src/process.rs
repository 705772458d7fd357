//! Other processes: each has a time limit, and none is left behind.

use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::process::Command;

use crate::failure::{Context, Failure, Outcome};

/// Runs a command to its end, with its standard output captured and its standard error shown. It is killed when the time
/// is over, and when the future is dropped.
pub(crate) async fn run(command: &mut Command, limit: Duration) -> Outcome<Output> {
    let words = in_words(command);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn();
    let child = child.context(|| format!("starting `{words}`"))?;
    match tokio::time::timeout(limit, child.wait_with_output()).await {
        Ok(output) => output.context(|| format!("waiting for `{words}`")),
        Err(_) => Err(Failure::new(format!("`{words}` took longer than {} s", limit.as_secs()))),
    }
}

/// [`run`], and an exit code other than zero is a failure. Returns what the command wrote.
pub(crate) async fn run_checked(command: &mut Command, limit: Duration) -> Outcome<String> {
    let output = run(command, limit).await?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        return Err(Failure::new(format!("`{}`: {}\n{text}", in_words(command), output.status)));
    }
    Ok(text)
}

/// Completes at SIGTERM or SIGINT.
pub(crate) async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                biased;
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    // Without a way to hear of signals, the system ends the process itself.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn in_words(command: &Command) -> String {
    let command = command.as_std();
    let mut words = vec![command.get_program().to_string_lossy()];
    words.extend(command.get_args().map(|argument| argument.to_string_lossy()));
    words.join(" ")
}
