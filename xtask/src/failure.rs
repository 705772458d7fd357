//! Why a task could not be done, in words for the person who started it.

use std::fmt;

#[derive(Debug)]
pub(crate) struct Failure(String);

pub(crate) type Outcome<T> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Adds to an error what was being done when it occurred.
pub(crate) trait Context<T> {
    fn context(self, action: impl FnOnce() -> String) -> Outcome<T>;
}

impl<T, E: fmt::Display> Context<T> for Result<T, E> {
    fn context(self, action: impl FnOnce() -> String) -> Outcome<T> {
        self.map_err(|error| Failure(format!("{}: {error}", action())))
    }
}
