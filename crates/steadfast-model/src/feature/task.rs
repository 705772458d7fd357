//! Tasks: requests whose result is fetched later.
//!
//! They are experimental in 2025-11-25, and an extension with other messages since 2026-07-28. The types here hold either;
//! [`crate::wire`] encodes the one that the revision has.

use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::JsonObject;
use crate::message::error::ErrorObject;
use crate::message::input::{InputRequests, InputResponses};
use crate::message::meta::Meta;
use crate::setters::setters;

/// Asks to run a request as a task (2025-11-25; since then the server decides).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskMetadata {
    /// How many milliseconds the task should be stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u64>,
}

setters!(TaskMetadata { with_ttl(ttl: u64) });

/// Names the task that a message belongs to, under [`crate::meta::key::RELATED_TASK`] (2025-11-25).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RelatedTask {
    /// The task.
    pub task_id: String,
}

impl RelatedTask {
    /// That task.
    pub fn new(task_id: impl Into<String>) -> Self {
        Self { task_id: task_id.into() }
    }
}

/// The status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskStatus {
    /// It runs.
    Working,
    /// It waits for input.
    InputRequired,
    /// It has a result.
    Completed,
    /// It failed.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl TaskStatus {
    /// True if the status is final.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Task {
    /// The id of the task, chosen by the side that runs the task.
    pub task_id: String,
    /// Its status.
    pub status: TaskStatus,
    /// A description of the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// When it was created, as an ISO 8601 time.
    pub created_at: String,
    /// When it last changed, as an ISO 8601 time.
    pub last_updated_at: String,
    /// How many milliseconds after its creation it is deleted; `None` is encoded as `null` and means never.
    #[serde(default, alias = "ttl")]
    pub ttl_ms: Option<u64>,
    /// How many milliseconds to wait before the next poll.
    #[serde(default, alias = "pollInterval", skip_serializing_if = "Option::is_none")]
    pub poll_interval_ms: Option<u64>,
}

impl Task {
    /// A task that was created at that time.
    pub fn new(task_id: impl Into<String>, status: TaskStatus, created_at: impl Into<String>) -> Self {
        let created_at = created_at.into();
        Self {
            task_id: task_id.into(),
            status,
            status_message: None,
            last_updated_at: created_at.clone(),
            created_at,
            ttl_ms: None,
            poll_interval_ms: None,
        }
    }
}

setters!(Task {
    with_status_message(status_message: String),
    with_last_updated_at(last_updated_at: String),
    with_ttl_ms(ttl_ms: u64),
    with_poll_interval_ms(poll_interval_ms: u64),
});

/// A task with its input requests, result or error: the result of `tasks/get`, and the parameters of the notifications about
/// tasks. In 2025-11-25 there is only the task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DetailedTask {
    /// The task.
    #[serde(flatten)]
    pub task: Task,
    /// The input requests that it waits for, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// Its result, if it is completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<JsonObject>,
    /// The error, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl DetailedTask {
    /// That task, without details.
    pub fn new(task: Task) -> Self {
        Self { task, input_requests: None, result: None, error: None, meta: None }
    }
}

setters!(DetailedTask {
    with_input_requests(input_requests: InputRequests),
    with_result(result: JsonObject),
    with_error(error: ErrorObject),
    with_meta(meta: Meta),
});

/// The result of a request that continues as a task.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CreateTaskResult {
    /// The task. Since 2026-07-28 its members are those of the result itself; before, they are in the member `task`.
    #[serde(flatten)]
    pub task: Task,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CreateTaskResult {
    /// The request continues as that task.
    pub fn new(task: Task) -> Self {
        Self { task, meta: None }
    }
}

setters!(CreateTaskResult { with_meta(meta: Meta) });

impl<'de> Deserialize<'de> for CreateTaskResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut object = JsonObject::deserialize(deserializer)?;
        let meta = object.shift_remove("_meta").map(serde_json::from_value).transpose().map_err(D::Error::custom)?;
        let task = object.shift_remove("task").unwrap_or(Value::Object(object));
        Ok(Self { task: serde_json::from_value(task).map_err(D::Error::custom)?, meta })
    }
}

/// The parameters of `tasks/get`, `tasks/result` and `tasks/cancel`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskParams {
    /// The task.
    pub task_id: String,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl TaskParams {
    /// That task.
    pub fn new(task_id: impl Into<String>) -> Self {
        Self { task_id: task_id.into(), meta: None }
    }
}

setters!(TaskParams { with_meta(meta: Meta) });

/// The parameters of `tasks/update`: input that a task waits for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UpdateTaskParams {
    /// The task.
    pub task_id: String,
    /// The client's responses to the input requests of the task.
    pub input_responses: InputResponses,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl UpdateTaskParams {
    /// These responses for that task.
    pub fn new(task_id: impl Into<String>, input_responses: InputResponses) -> Self {
        Self { task_id: task_id.into(), input_responses, meta: None }
    }
}

setters!(UpdateTaskParams { with_meta(meta: Meta) });

/// The result of `tasks/cancel`: the task in 2025-11-25, nothing since.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CancelTaskResult {
    /// The task, cancelled.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CancelTaskResult {
    /// That task was cancelled.
    pub fn new(task: Task) -> Self {
        Self { task: Some(task), meta: None }
    }
}

setters!(CancelTaskResult { with_meta(meta: Meta) });

impl<'de> Deserialize<'de> for CancelTaskResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut object = JsonObject::deserialize(deserializer)?;
        let meta = object.shift_remove("_meta").map(serde_json::from_value).transpose().map_err(D::Error::custom)?;
        let named = object.contains_key("taskId");
        let task = named.then(|| serde_json::from_value(Value::Object(object))).transpose();
        Ok(Self { task: task.map_err(D::Error::custom)?, meta })
    }
}

/// The result of `tasks/list` (2025-11-25).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListTasksResult {
    /// This page of tasks.
    pub tasks: Vec<Task>,
    /// Where the next page begins, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ListTasksResult {
    /// A page of tasks.
    pub fn new(tasks: Vec<Task>) -> Self {
        Self { tasks, ..Self::default() }
    }
}

setters!(ListTasksResult { with_next_cursor(next_cursor: String), with_meta(meta: Meta) });

#[cfg(test)]
mod tests {
    use super::*;

    const CORE: &str =
        r#"{"taskId":"1","status":"working","createdAt":"t","lastUpdatedAt":"t","ttl":null,"pollInterval":5}"#;
    const EXTENSION: &str =
        r#"{"taskId":"1","status":"working","createdAt":"t","lastUpdatedAt":"t","ttlMs":null,"pollIntervalMs":5}"#;

    #[test]
    fn both_shapes_of_a_task_are_one_task() {
        let task: Task = serde_json::from_str(CORE).unwrap();
        assert_eq!(task, serde_json::from_str(EXTENSION).unwrap());
        assert_eq!(serde_json::to_string(&task).unwrap(), EXTENSION);
        let wrapped = format!(r#"{{"task":{CORE},"_meta":{{"k":1}}}}"#);
        let created: CreateTaskResult = serde_json::from_str(&wrapped).unwrap();
        assert_eq!(created.task, task);
        assert_eq!(serde_json::from_str::<CreateTaskResult>(EXTENSION).unwrap().task, task);
    }

    #[test]
    fn the_result_of_tasks_cancel_is_read_with_and_without_the_task() {
        assert!(serde_json::from_str::<CancelTaskResult>(CORE).unwrap().task.is_some());
        let empty = r#"{"resultType":"complete"}"#;
        assert_eq!(serde_json::from_str::<CancelTaskResult>(empty).unwrap(), CancelTaskResult::default());
    }

    #[test]
    fn details_are_members_of_the_task_object() {
        let text = EXTENSION.replace("working", "completed").replace('}', r#","result":{"content":[]}}"#);
        let detailed: DetailedTask = serde_json::from_str(&text).unwrap();
        assert!(detailed.task.status.is_final());
        assert_eq!(serde_json::to_string(&detailed).unwrap(), text);
    }
}
