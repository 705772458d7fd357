//! Encodes tasks and subscriptions for one revision.

use serde::ser::SerializeMap;

use super::{Encode, ObjectEncoder, RequestResult};
use crate::feature::task::{
    CancelTaskResult, CreateTaskResult, DetailedTask, ListTasksResult, Task, TaskParams, UpdateTaskParams,
};
use crate::message::subscription::{ListenResult, SubscriptionParams};

impl Encode for Task {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        let modern = object.revision().is_stateless();
        object.put("taskId", &self.task_id)?;
        object.put("status", &self.status)?;
        object.some("statusMessage", self.status_message.as_ref())?;
        object.put("createdAt", &self.created_at)?;
        object.put("lastUpdatedAt", &self.last_updated_at)?;
        object.put(if modern { "ttlMs" } else { "ttl" }, &self.ttl_ms)?;
        object.some(if modern { "pollIntervalMs" } else { "pollInterval" }, self.poll_interval_ms.as_ref())
    }
}

impl Encode for DetailedTask {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        self.task.encode(object)?;
        if object.revision().is_stateless() {
            object.inner_some("inputRequests", self.input_requests.as_ref())?;
            object.some("result", self.result.as_ref())?;
            object.some("error", self.error.as_ref())?;
        }
        object.meta(self.meta.as_ref())
    }
}

impl RequestResult for DetailedTask {}

impl Encode for CreateTaskResult {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        if object.revision().is_stateless() {
            self.task.encode(object)?;
        } else {
            object.inner("task", &self.task)?;
        }
        object.meta(self.meta.as_ref())
    }
}

impl RequestResult for CreateTaskResult {
    const RESULT_TYPE: &'static str = "task";
}

impl Encode for TaskParams {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("taskId", &self.task_id)?;
        object.meta(self.meta.as_ref())
    }
}

impl Encode for UpdateTaskParams {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("taskId", &self.task_id)?;
        object.put("inputResponses", &self.input_responses)?;
        object.meta(self.meta.as_ref())
    }
}

impl Encode for CancelTaskResult {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        if let Some(task) = &self.task
            && !object.revision().is_stateless()
        {
            task.encode(object)?;
        }
        object.meta(self.meta.as_ref())
    }
}

impl RequestResult for CancelTaskResult {}

impl Encode for ListTasksResult {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.inner_list("tasks", &self.tasks)?;
        object.some("nextCursor", self.next_cursor.as_ref())?;
        object.meta(self.meta.as_ref())
    }
}

impl RequestResult for ListTasksResult {}

impl Encode for SubscriptionParams {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("notifications", &self.notifications)?;
        object.meta(self.meta.as_ref())
    }
}

impl Encode for ListenResult {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.meta(self.meta.as_ref())
    }
}

impl RequestResult for ListenResult {}
