//! The person at the terminal. Questions go to standard error, and one of them is asked at a time.
//!
//! Lines are read by a thread of their own, because a read cannot be given up: a question that nobody needs an answer to any
//! more just stops to wait. The thread ends with the process.

use std::io::{BufRead as _, IsTerminal};
use std::sync::OnceLock;

use tokio::sync::{Mutex, MutexGuard, mpsc};

use super::harmless;
use super::progress::{self, Hidden};
use crate::output;

/// Whether there is a person to be asked.
pub(super) fn somebody_is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Whether what is written there may be bold or dim.
pub(super) fn is_styled(stream: &impl IsTerminal) -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let plain = set("NO_COLOR").is_some() || set("TERM").is_none_or(|terminal| terminal == "dumb");
    stream.is_terminal() && !plain
}

/// The person, who has time for one at a time.
pub(super) async fn person() -> Person {
    static TYPED: OnceLock<Mutex<mpsc::UnboundedReceiver<String>>> = OnceLock::new();
    let typed = TYPED.get_or_init(|| Mutex::new(lines())).lock().await;
    Person { typed, _hidden: progress::hide() }
}

/// Somebody who can be asked. As long as this lives nobody else asks, and no progress is shown.
pub(super) struct Person {
    typed: MutexGuard<'static, mpsc::UnboundedReceiver<String>>,
    _hidden: Hidden,
}

impl Person {
    /// Says something. What a server wrote is harmless when it is shown.
    #[allow(clippy::unused_self, reason = "only who has the person's time may speak to them")]
    pub(super) fn tell(&self, text: &str) {
        output::say(harmless::text(text));
    }

    /// What is typed in answer; `None` at the end of input.
    pub(super) async fn ask(&mut self, question: &str) -> Option<String> {
        // What was typed before the question was there is no answer to it.
        while self.typed.try_recv().is_ok() {}
        output::put(&harmless::text(question));
        self.typed.recv().await.map(|line| line.trim().to_owned())
    }
}

fn lines() -> mpsc::UnboundedReceiver<String> {
    let (typed, lines) = mpsc::unbounded_channel();
    let reading = std::thread::Builder::new().name("terminal".to_owned()).spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if typed.send(line).is_err() {
                return;
            }
        }
    });
    // Without a thread there is no sender, and so no answer: as if the input had ended.
    drop(reading);
    lines
}
