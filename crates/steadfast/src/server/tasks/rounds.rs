//! The input rounds of an MCP task: the state that one run of the task's handler leaves to the next run is kept in the
//! record of the task, and never leaves the server.

use std::sync::{Arc, Mutex, PoisonError};

use steadfast_model::{ErrorObject, InputRequests, JsonObject, RequestId};
use steadfast_proto::encode::EncodedResponse;

use super::TaskRecord;
use crate::runtime::{InputRoundState, InputRoundStore};

/// The state of one run of an MCP task's handler: what the run got from earlier runs, and what it leaves to the next
/// run if the handler requests input.
pub(crate) struct ServerTaskRounds {
    state: Option<String>,
    answers: JsonObject,
    /// The maximum length of the state between two runs of the handler, in bytes of text.
    longest: usize,
    suspended: Mutex<Option<ServerTaskSuspension>>,
}

/// What a run of an MCP task's handler leaves if it ended with input requests.
pub(super) struct ServerTaskSuspension {
    pub(super) requests: InputRequests,
    /// The state for the next run of the handler, as JSON text; `None` if there is nothing to keep.
    pub(super) state: Option<String>,
}

impl ServerTaskRounds {
    pub(super) fn new(record: &TaskRecord, longest: usize) -> Arc<Self> {
        let (state, answers) = (record.state.clone(), JsonObject::from(record.input_responses.clone()));
        Arc::new(Self { state, answers, longest, suspended: Mutex::default() })
    }

    /// Creates the store for the input rounds of this run of the handler, whose request has this id.
    pub(crate) fn store(self: &Arc<Self>, id: &RequestId) -> Box<dyn InputRoundStore> {
        Box::new(TaskRoundStore { rounds: Arc::clone(self), id: id.clone() })
    }

    /// Takes the state that a run of the MCP task's handler left behind, if the run ended with input requests.
    pub(super) fn take_suspended(&self) -> Option<ServerTaskSuspension> {
        self.suspended.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Encodes the state of an input round for the record of an MCP task; `None` if there is nothing to keep.
pub(super) fn write_state(state: &InputRoundState) -> Result<Option<String>, ErrorObject> {
    if *state == InputRoundState::default() {
        return Ok(None);
    }
    serde_json::to_string(state).map(Some).map_err(|error| ErrorObject::internal(error.to_string()))
}

struct TaskRoundStore {
    rounds: Arc<ServerTaskRounds>,
    id: RequestId,
}

impl InputRoundStore for TaskRoundStore {
    fn open(&self) -> Result<(InputRoundState, JsonObject), ErrorObject> {
        let state = match &self.rounds.state {
            None => InputRoundState::default(),
            Some(text) => serde_json::from_str(text).map_err(|_| {
                ErrorObject::internal("the state of the task was written by another version of this server")
            })?,
        };
        Ok((state, self.rounds.answers.clone()))
    }

    fn suspend(&self, requests: InputRequests, state: &InputRoundState) -> EncodedResponse {
        let state = match write_state(state) {
            Ok(state) => state,
            Err(error) => return EncodedResponse::error(&self.id, &error),
        };
        if state.as_ref().is_some_and(|state| state.len() > self.rounds.longest) {
            let error = ErrorObject::internal("task state is too long: the answers so far exceed the limit");
            return EncodedResponse::error(&self.id, &error);
        }
        let suspended = Some(ServerTaskSuspension { requests, state });
        *self.rounds.suspended.lock().unwrap_or_else(PoisonError::into_inner) = suspended;
        // The runner of the task takes the requests themselves. This only tells it that the run has ended.
        EncodedResponse::result(&self.id, |out| {
            out.extend_from_slice(b"{}");
            Ok::<_, std::convert::Infallible>(())
        })
    }
}
