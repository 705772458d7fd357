//! Runs a task: its handler, and again with the input of the client, until the task ends.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::SystemTime;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use steadfast_model::{
    DetailedTask, ErrorObject, InputRequiredResult, JsonObject, Method, ProgressParams, Revision, TaskStatus, meta,
};

use super::{TaskRecord, TaskRunWaker, Tasks};
use crate::runtime::{Exchange, Runtime, Service};

/// Runs a task to its end. `begin` starts one run of its handler with the message of a call.
pub(crate) async fn run<S: Service>(
    tasks: Arc<Tasks>,
    id: String,
    runtime: Arc<dyn Runtime>,
    begin: impl Fn(&[u8]) -> Exchange<S>,
) {
    let control = tasks.enter(&id);
    let work = work(&tasks, &id, &control, begin);
    let expired = expiry(&tasks, &id, &runtime);
    let (mut work, mut expired) = (pin!(work), pin!(expired));
    std::future::poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(()) => Poll::Ready(()),
        // The record has expired; dropping the run stops the handler.
        Poll::Pending => expired.as_mut().poll(cx),
    })
    .await;
    tasks.leave(&id);
}

/// The next event of a task.
enum RunResult {
    /// The response to the call.
    Response(Vec<u8>),
    /// A progress message.
    Progress(String),
    /// The record was changed by a request of the client.
    RecordChanged,
}

async fn work<S: Service>(tasks: &Tasks, id: &str, control: &TaskRunWaker, begin: impl Fn(&[u8]) -> Exchange<S>) {
    let mut run: Option<Exchange<S>> = None;
    loop {
        // If the store fails the task stays as it is, and the log says why.
        let Ok(Some(record)) = tasks.change(id, |_| false).await else { return };
        match record.shown.task.status {
            TaskStatus::Working if run.is_none() => run = Some(begin(&call_of(&record))),
            TaskStatus::Working | TaskStatus::InputRequired => {}
            _ => return,
        }
        let stored = match next(run.as_mut(), control).await {
            RunResult::RecordChanged => Ok(None),
            RunResult::Progress(message) => {
                tasks
                    .change(id, |record| {
                        record.shown.task.status_message = Some(message.clone());
                        true
                    })
                    .await
            }
            RunResult::Response(answer) => {
                run = None;
                tasks
                    .change(id, |record| {
                        settle(record, &answer);
                        true
                    })
                    .await
            }
        };
        if stored.is_err() {
            return;
        }
    }
}

/// Waits for the next event of the task.
async fn next<S: Service>(run: Option<&mut Exchange<S>>, control: &TaskRunWaker) -> RunResult {
    let mut changed = pin!(control.changed.notified());
    let mut run = run;
    std::future::poll_fn(|cx| {
        while let Some(exchange) = run.as_mut() {
            match exchange.poll_next(cx) {
                Poll::Ready(Some(message)) => {
                    if let Some(event) = read(message) {
                        return Poll::Ready(event);
                    }
                }
                Poll::Ready(None) => run = None,
                Poll::Pending => break,
            }
        }
        changed.as_mut().poll(cx).map(|()| RunResult::RecordChanged)
    })
    .await
}

/// Reads a message of the run: the response, or progress with a text.
fn read(message: Vec<u8>) -> Option<RunResult> {
    #[derive(Deserialize)]
    struct Notification {
        method: String,
        params: Option<ProgressParams>,
    }

    let Some(notification) = from_json::<Notification>(&message) else {
        return Some(RunResult::Response(message));
    };
    let progress = notification.params.filter(|_| notification.method == Method::Progress.name())?;
    progress.message.map(RunResult::Progress)
}

/// Decodes a message of this server. Uses `from_str`, as all other decoding does: `from_slice` would only add code.
fn from_json<T: DeserializeOwned>(message: &[u8]) -> Option<T> {
    serde_json::from_str(std::str::from_utf8(message).ok()?).ok()
}

/// Stores the response of a run in the record.
fn settle(record: &mut TaskRecord, answer: &[u8]) {
    #[derive(Deserialize)]
    struct EncodedResponse {
        result: Option<JsonObject>,
        error: Option<ErrorObject>,
    }

    let shown = &mut record.shown;
    let answer = from_json(answer).unwrap_or(EncodedResponse { result: None, error: None });
    let Some(result) = answer.result else {
        let error = answer.error.unwrap_or_else(|| ErrorObject::internal("the handler ended without a response"));
        return fail(shown, error);
    };
    if result.get("resultType").and_then(serde_json::Value::as_str) != Some("input_required") {
        shown.task.status = TaskStatus::Completed;
        shown.result = Some(result);
        return;
    }
    match serde_json::from_value::<InputRequiredResult>(result.into()) {
        Ok(input_rounds) => {
            shown.task.status = TaskStatus::InputRequired;
            shown.input_requests = Some(input_rounds.input_requests.unwrap_or_default());
            record.state = input_rounds.request_state;
            record.answers.0.clear();
        }
        Err(error) => {
            fail(shown, ErrorObject::internal(format!("the input requests of the handler cannot be decoded: {error}")));
        }
    }
}

/// Marks the task as failed, with the message of the error as its status message.
fn fail(shown: &mut DetailedTask, error: ErrorObject) {
    shown.task.status = TaskStatus::Failed;
    shown.task.status_message = Some(error.message.clone().into_owned());
    shown.error = Some(error);
}

/// The `tools/call` that a run of the handler answers.
fn call_of(record: &TaskRecord) -> Vec<u8> {
    let mut params = json!({
        "name": record.tool,
        "_meta": {
            meta::key::PROTOCOL_VERSION: Revision::V2026_07_28,
            meta::key::CLIENT_CAPABILITIES: record.client,
            "progressToken": "task",
        },
    });
    if let Some(arguments) = &record.arguments {
        params["arguments"] = json!(arguments);
    }
    if !record.answers.0.is_empty() {
        params["inputResponses"] = json!(record.answers);
    }
    if let Some(state) = &record.state {
        params["requestState"] = json!(state);
    }
    let call = json!({ "jsonrpc": "2.0", "id": "task", "method": Method::CallTool.name(), "params": params });
    call.to_string().into_bytes()
}

/// Completes when the task expires, if it does.
async fn expiry(tasks: &Tasks, id: &str, runtime: &Arc<dyn Runtime>) {
    let mut timer = runtime.timer();
    loop {
        let Ok(Some(record)) = tasks.change(id, |_| false).await else { return };
        let Some(left) = record.expires.map(|expires| expires.duration_since(SystemTime::now()).unwrap_or_default())
        else {
            return std::future::pending().await;
        };
        timer.reset(Some(runtime.now() + left));
        std::future::poll_fn(|cx| timer.poll(cx)).await;
    }
}
