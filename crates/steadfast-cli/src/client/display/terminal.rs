//! Questions to the user at the terminal, on standard error, one at a time.
//!
//! A thread reads the lines that the user types, because a blocking read cannot be cancelled: a question that is dropped just
//! stops waiting for the answer. The thread that reads from the terminal ends with the process.

use std::io::{BufRead as _, IsTerminal};
use std::sync::OnceLock;

use tokio::sync::{Mutex, MutexGuard, mpsc};

use super::progress::{self, HiddenProgressBarGuard};
use super::sanitize;
use crate::output;

/// Whether a user can be asked: standard input and standard error are a terminal.
pub(crate) fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Whether bold and dim text may be written to this output stream.
pub(crate) fn is_styled(stream: &impl IsTerminal) -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let plain = set("NO_COLOR").is_some() || set("TERM").is_none_or(|terminal| terminal == "dumb");
    stream.is_terminal() && !plain
}

/// Waits until no other dialog with the user is open, and opens one.
pub(crate) async fn open_dialog() -> TerminalDialog {
    static INPUT: OnceLock<Mutex<mpsc::UnboundedReceiver<String>>> = OnceLock::new();
    let input = INPUT.get_or_init(|| Mutex::new(lines())).lock().await;
    TerminalDialog { input, _hidden: progress::hide_bar() }
}

/// Exclusive use of the terminal for questions: no other dialog and no progress bar is shown until the dialog is dropped.
pub(crate) struct TerminalDialog {
    input: MutexGuard<'static, mpsc::UnboundedReceiver<String>>,
    _hidden: HiddenProgressBarGuard,
}

impl TerminalDialog {
    /// Prints a sanitized line on standard error.
    #[allow(clippy::unused_self, reason = "takes the dialog, so that nothing else is printed between questions")]
    pub(crate) fn print(&self, text: &str) {
        output::eprint_line(sanitize::text(text));
    }

    /// Asks the user a question, and returns the line that the user typed; `None` at the end of input.
    pub(crate) async fn ask(&mut self, question: &str) -> Option<String> {
        // Lines typed before the question are not answers to it.
        while self.input.try_recv().is_ok() {}
        output::eprint(&sanitize::text(question));
        self.input.recv().await.map(|line| line.trim().to_owned())
    }
}

fn lines() -> mpsc::UnboundedReceiver<String> {
    let (input, lines) = mpsc::unbounded_channel();
    let reading = std::thread::Builder::new().name("terminal".to_owned()).spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if input.send(line).is_err() {
                return;
            }
        }
    });
    // If the thread could not be started the sender is dropped: that looks like the end of input.
    drop(reading);
    lines
}
