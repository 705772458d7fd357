//! MCP tasks: requests whose result is fetched later.
//!
//! Tasks are experimental in 2025-11-25, and an extension with other messages since 2026-07-28. [`Task`] and the
//! types of the messages about tasks hold either kind of task; [`crate::wire`] encodes the kind that the protocol
//! revision has.

use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::JsonObject;
use crate::message::error::ErrorObject;
use crate::message::input::{InputRequests, InputResponses};
use crate::message::meta::Meta;
use crate::setters::setters;

/// Asks the receiver to run a request as a task (2025-11-25; since 2026-07-28 the server decides).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskMetadata {
    /// The time for which the receiver should keep the task, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u64>,
}

setters!(TaskMetadata { with_ttl(ttl: u64) });

/// The `_meta` entry that names the task that a message belongs to, under [`crate::meta::key::RELATED_TASK`] (2025-11-25).
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

/// The status of an MCP task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskStatus {
    /// The task is running.
    Working,
    /// The task waits for input from the side that requested it.
    InputRequired,
    /// The task has completed with a result.
    Completed,
    /// The task failed.
    Failed,
    /// The task was cancelled.
    Cancelled,
}

impl TaskStatus {
    /// True if the task does not change any more after this status.
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
    /// A description of the status of the task, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// When the task was created, as an ISO 8601 time.
    pub created_at: String,
    /// When the task last changed, as an ISO 8601 time.
    pub last_updated_at: String,
    /// The time from the creation of the task to its deletion, in milliseconds; `None` is encoded as `null` and means that the
    /// task is never deleted.
    #[serde(default, alias = "ttl")]
    pub ttl_ms: Option<u64>,
    /// The time to wait before the status of the task is polled again, in milliseconds.
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
/// tasks. In 2025-11-25 the message has only the task, without its input requests, result or error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DetailedTask {
    /// The task.
    #[serde(flatten)]
    pub task: Task,
    /// The input requests that the task waits for, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// The result of the task, if it is completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<JsonObject>,
    /// The error of the task, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl DetailedTask {
    /// A detailed task without input requests, result or error.
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
    /// The task. Since 2026-07-28 the members of the task are members of the result itself; before, they are in its member
    /// `task`.
    #[serde(flatten)]
    pub task: Task,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CreateTaskResult {
    /// The result of a request that continues as this task.
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

/// The parameters of `tasks/update`: the input that a task waits for.
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
    /// The parameters of `tasks/update`, with responses to the input requests of this task.
    pub fn new(task_id: impl Into<String>, input_responses: InputResponses) -> Self {
        Self { task_id: task_id.into(), input_responses, meta: None }
    }
}

setters!(UpdateTaskParams { with_meta(meta: Meta) });

/// The result of `tasks/cancel`: the cancelled task in 2025-11-25, an empty result since 2026-07-28.
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
    /// The result of `tasks/cancel` with the cancelled task, as 2025-11-25 defines it.
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
    /// The tasks on this page of the `tasks/list` result.
    pub tasks: Vec<Task>,
    /// The cursor of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ListTasksResult {
    /// The result of `tasks/list` with these tasks, as the last page.
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
