//! How a call, or an opening, ended.

use serde_json::Value;

use crate::failure::{Verdict, ensure};

/// How a call, or an opening, ended.
#[derive(Clone, Debug)]
pub(crate) struct CallResult {
    /// `Done`, or the outcome of an error.
    pub(crate) ends: String,
    /// The kind of the error.
    pub(crate) kind: String,
    pub(crate) text: String,
    words: String,
}
impl CallResult {
    pub(super) fn of(line: &Value) -> Self {
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        Self { ends: text("ends"), kind: text("kind"), text: text("text"), words: text("words") }
    }

    /// It has to have been answered with that text.
    pub(crate) fn done(&self, text: &str) -> Verdict {
        ensure!(self.ends == "Done" && self.text == text, "expected the answer {text:?}: {self}");
        Ok(())
    }

    /// It has to have failed with that outcome, and be an error of one of these kinds.
    pub(crate) fn is(&self, outcome: &str, kinds: &[&str]) -> Verdict {
        let right = self.ends == outcome && kinds.contains(&self.kind.as_str());
        ensure!(right, "expected {outcome} by {kinds:?}: {self}");
        Ok(())
    }
}

impl std::fmt::Display for CallResult {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {} {:?} {}", self.ends, self.kind, self.text, self.words)
    }
}
