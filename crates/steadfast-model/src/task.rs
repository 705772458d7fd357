//! Tasks: requests whose result is fetched later.

use serde::{Deserialize, Serialize};

/// Asks to run a request as a task (2025-11-25).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskMetadata {
    /// How many milliseconds the task should be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u64>,
}
