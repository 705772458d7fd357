//! Multi round-trips (since 2026-07-28): a result that asks for input, and the answers that come with the next try.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::json::JsonObject;

/// The answers to what a result asked for, by the keys that it asked under.
///
/// An answer does not say what it is: only who asked knows, and reads it by the type of its question.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InputResponses(pub JsonObject);

impl InputResponses {
    /// No answers.
    pub fn new() -> Self {
        Self::default()
    }

    /// The answer under that key; `None`: there is none.
    pub fn read<T: DeserializeOwned>(&self, key: &str) -> Option<Result<T, serde_json::Error>> {
        self.0.get(key).map(T::deserialize)
    }

    /// Adds an answer.
    pub fn insert<T: Serialize>(&mut self, key: impl Into<String>, answer: &T) -> Result<(), serde_json::Error> {
        self.0.insert(key.into(), serde_json::to_value(answer)?);
        Ok(())
    }
}
