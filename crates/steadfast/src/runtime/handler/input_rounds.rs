//! The input that the handler of one request gets from its client in several rounds, as retries of the request
//! (2026-07-28).
//!
//! In revision 2026-07-28 a server cannot send requests to its client. A request whose handler needs input ends with a
//! result that lists the input requests, and the client retries the request with the input responses. This module holds
//! the input requests of a handler by key, the input responses of the current round and of earlier rounds, and the
//! values that the handler stores for later rounds. An input request without a response is pending until the handler
//! is dropped and the client is asked for the input. In the next round, the handler runs again from its start, and
//! has to issue the same input requests again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use steadfast_model::{ErrorObject, InputRequest, InputRequests, JsonObject};
use steadfast_proto::encode::EncodedResponse;

use crate::error::{Error, Outcome};

/// The input requests and input responses of one request.
pub(crate) struct HandlerInputs {
    store: Box<dyn InputRoundStore>,
    state: Mutex<HandlerInputState>,
}

/// Carries the state of a handler's input requests from one round to the next.
pub(crate) trait InputRoundStore: Send + Sync {
    /// Reads the state of earlier rounds and the input responses of this round, which came with the request.
    fn open(&self) -> Result<(InputRoundState, JsonObject), ErrorObject>;

    /// Whether the state or the input responses of an earlier round came with the request.
    fn is_resumed(&self) -> bool {
        false
    }

    /// Encodes the response that asks the client for input, and that carries the state to the next round.
    fn suspend(&self, requests: InputRequests, state: &InputRoundState) -> EncodedResponse;
}

/// The state of a handler's input requests that is carried from one round to the next.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct InputRoundState {
    /// The input requests that have a response, by key.
    #[serde(default, rename = "a")]
    answered: BTreeMap<String, InputResponseRecord>,
    /// The digests of the input requests of the last round, which had no response then, by key.
    #[serde(default, rename = "w")]
    waiting: BTreeMap<String, String>,
    /// The values that the handler has stored for its next round, by name.
    #[serde(default, rename = "v")]
    values: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct InputResponseRecord {
    /// The digest of the input request.
    #[serde(rename = "d")]
    digest: String,
    #[serde(rename = "v")]
    value: Value,
}

#[derive(Default)]
struct HandlerInputState {
    rounds: InputRoundState,
    /// Whether the request came with the state of earlier rounds. An input response then counts only if that state
    /// contains its input request.
    resumed: bool,
    /// The input responses of this round that the handler has not requested yet.
    responses: JsonObject,
    /// The keys of the input requests that the handler has made in this run.
    used_keys: BTreeSet<String>,
    /// The number of input requests that the handler has made in this run without a key of their own.
    unnamed: usize,
    pending: Vec<PendingInputRequest>,
    /// Whether the handler task is polling the handler now.
    in_poll: bool,
    /// The waker of the handler task, for input requests that are made outside of the handler's poll.
    task: Option<Waker>,
    /// Whether the handler is a plain function, which cannot wait for input.
    blocking: bool,
    /// Whether the current run of the handler is over: the handler has returned, or was dropped until the client
    /// supplies input.
    ended: bool,
}

/// An input request without a response.
struct PendingInputRequest {
    key: String,
    request: InputRequest,
    digest: String,
    waker: Waker,
}

/// The status of an input request.
#[derive(Debug, PartialEq)]
pub(crate) enum HandlerInputStatus {
    /// The key of the input request, and its response.
    Answered(String, Value),
    /// The input request with this key has no response yet.
    Waiting(String),
}

/// The methods for the code that requests input.
impl HandlerInputs {
    pub(crate) fn new(store: Box<dyn InputRoundStore>) -> Self {
        Self { store, state: Mutex::default() }
    }

    /// Requests input from the client, under the given key or under the next free key of this kind.
    pub(crate) fn ask(
        &self,
        key: Option<&str>,
        kind: &str,
        request: &InputRequest,
        waker: &Waker,
    ) -> Result<HandlerInputStatus, Error> {
        let digest = digest(request)?;
        let mut state = self.lock();
        if state.ended {
            return Err(cancelled());
        }
        let key = key.map_or_else(|| state.next_key(kind), str::to_owned);
        if !state.used_keys.insert(key.clone()) {
            return Err(Error::usage(format!(
                "duplicate input key `{key}`: each input request needs a key of its own"
            )));
        }
        if let Some(value) = state.response(&key, &digest)? {
            return Ok(HandlerInputStatus::Answered(key, value));
        }
        if state.blocking {
            return Err(Error::usage("a plain `fn` cannot wait for the client: make it an `async fn`"));
        }
        state.pending.push(PendingInputRequest {
            key: key.clone(),
            request: request.clone(),
            digest,
            waker: waker.clone(),
        });
        let task = if state.in_poll { None } else { state.task.take() };
        drop(state);
        if let Some(task) = task {
            task.wake();
        }
        Ok(HandlerInputStatus::Waiting(key))
    }

    /// Updates the waker of a pending input request. Returns an error if the input request gets no response in this run
    /// of the handler.
    pub(crate) fn wait(&self, key: &str, waker: &Waker) -> Result<(), Error> {
        let mut state = self.lock();
        match state.pending.iter_mut().find(|pending| pending.key == key) {
            Some(pending) => {
                pending.waker.clone_from(waker);
                Ok(())
            }
            None => Err(cancelled()),
        }
    }

    /// Withdraws an input request, because the future that waited for its response was dropped.
    pub(crate) fn withdraw(&self, key: &str) {
        self.lock().pending.retain(|pending| pending.key != key);
    }

    /// Returns the value that the handler has stored under this name in an earlier round.
    pub(crate) fn remembered(&self, name: &str) -> Option<Value> {
        self.lock().rounds.values.get(name).cloned()
    }

    /// Whether the state or the input responses of an earlier round came with the request.
    #[cfg(feature = "server")]
    pub(crate) fn is_resumed(&self) -> bool {
        self.store.is_resumed()
    }

    /// Stores a value of the handler for later rounds of the request.
    pub(crate) fn remember(&self, name: &str, value: Value) {
        self.lock().rounds.values.insert(name.to_owned(), value);
    }
}

/// Methods that are called by the task that runs the handler.
impl HandlerInputs {
    /// Reads the state of earlier rounds and the input responses from the request, before the handler runs.
    pub(crate) fn open(&self) -> Result<(), ErrorObject> {
        let (rounds, responses) = self.store.open()?;
        let mut state = self.lock();
        state.resumed = rounds != InputRoundState::default();
        (state.rounds, state.responses) = (rounds, responses);
        Ok(())
    }

    /// Returns what [`HandlerInputs::open`] read and the handler has not used yet: the state of earlier rounds, and the
    /// input responses.
    #[cfg(feature = "server")]
    pub(crate) fn opened(&self) -> (InputRoundState, JsonObject) {
        let state = self.lock();
        (state.rounds.clone(), state.responses.clone())
    }

    /// Marks the handler as a plain function, which cannot wait for input.
    pub(crate) fn set_blocking(&self) {
        self.lock().blocking = true;
    }

    /// Called when the handler task with this waker is about to poll the handler.
    pub(crate) fn enter(&self, task: &Waker) {
        let mut state = self.lock();
        state.in_poll = true;
        if !state.task.as_ref().is_some_and(|known| known.will_wake(task)) {
            state.task = Some(task.clone());
        }
    }

    /// Called after the handler was polled. Returns whether the handler has pending input requests.
    pub(crate) fn leave(&self) -> bool {
        let mut state = self.lock();
        state.in_poll = false;
        !state.pending.is_empty()
    }

    /// Returns the number of pending input requests of the handler that hold a clone of `waker`.
    pub(crate) fn holders(&self, waker: &Waker) -> usize {
        self.lock().pending.iter().filter(|pending| pending.waker.data() == waker.data()).count()
    }

    /// Ends the current run of the handler and encodes the response that asks the client for all pending input.
    pub(crate) fn suspend(&self) -> EncodedResponse {
        let mut state = self.lock();
        state.ended = true;
        let pending = std::mem::take(&mut state.pending);
        let mut rounds = std::mem::take(&mut state.rounds);
        drop(state);
        rounds.waiting.clear();
        let mut requests = InputRequests::new();
        for PendingInputRequest { key, request, digest, waker } in pending {
            // Inserted one by one: `collect` would bring the code of a sort along.
            rounds.waiting.insert(key.clone(), digest);
            requests.insert(key, request);
            // The request may be from a task that the handler has spawned.
            waker.wake();
        }
        self.store.suspend(requests, &rounds)
    }

    /// Called when the handler has ended: pending input requests of tasks that the handler has spawned fail.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        let pending = std::mem::take(&mut state.pending);
        drop(state);
        for pending in pending {
            pending.waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HandlerInputState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HandlerInputState {
    fn next_key(&mut self, kind: &str) -> String {
        self.unnamed += 1;
        format!("{kind}-{}", self.unnamed)
    }

    /// Returns the client's input response under this key, if it is a response to this same input request.
    fn response(&mut self, key: &str, digest: &str) -> Result<Option<Value>, Error> {
        let before = self.rounds.answered.get(key).map(|answered| &answered.digest);
        let before = before.or_else(|| self.rounds.waiting.get(key));
        match before {
            Some(before) if before != digest => {
                let message = format!("the input request `{key}` differs from the one of the previous round");
                return Err(Error::internal(message));
            }
            // This input was not requested yet, so a response under its key is not a response to it.
            None if self.resumed => return Ok(None),
            _ => {}
        }
        if let Some(answered) = self.rounds.answered.get(key) {
            return Ok(Some(answered.value.clone()));
        }
        let Some(value) = self.responses.shift_remove(key).filter(|value| !value.is_null()) else { return Ok(None) };
        let answered = InputResponseRecord { digest: digest.to_owned(), value: value.clone() };
        self.rounds.answered.insert(key.to_owned(), answered);
        Ok(Some(value))
    }
}

/// A short digest that tells one input request from another.
fn digest(request: &InputRequest) -> Result<String, Error> {
    let text = serde_json::to_vec(request).map_err(Error::encode)?;
    let digest = Sha256::digest(text);
    Ok(URL_SAFE_NO_PAD.encode(digest.first_chunk::<16>().copied().unwrap_or_default()))
}

fn cancelled() -> Error {
    Error::cancelled(Outcome::NotSent)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use steadfast_model::{ElicitParams, FormSchema, RequestId};

    use super::*;

    /// A store whose state is set by the test.
    #[derive(Default)]
    struct FixedStore {
        state: InputRoundState,
        responses: JsonObject,
    }

    impl InputRoundStore for FixedStore {
        fn open(&self) -> Result<(InputRoundState, JsonObject), ErrorObject> {
            Ok((self.state.clone(), self.responses.clone()))
        }

        fn suspend(&self, requests: InputRequests, state: &InputRoundState) -> EncodedResponse {
            EncodedResponse::result(&RequestId::from(1), |out| serde_json::to_writer(out, &(requests, state)))
        }
    }

    fn round(state: InputRoundState, responses: Value) -> HandlerInputs {
        let responses = responses.as_object().cloned().unwrap_or_default();
        let input_rounds = HandlerInputs::new(Box::new(FixedStore { state, responses }));
        input_rounds.open().unwrap();
        input_rounds
    }

    fn elicitation(message: &str) -> InputRequest {
        InputRequest::Elicit(ElicitParams::form(message, FormSchema::new()))
    }

    fn ask(input_rounds: &HandlerInputs, key: Option<&str>, message: &str) -> Result<HandlerInputStatus, Error> {
        input_rounds.ask(key, "elicit", &elicitation(message), Waker::noop())
    }

    fn waiting(key: &str) -> HandlerInputStatus {
        HandlerInputStatus::Waiting(key.to_owned())
    }

    /// The state with which the next round starts.
    fn state_after(input_rounds: &HandlerInputs) -> InputRoundState {
        let mut state = input_rounds.lock().rounds.clone();
        state.waiting =
            input_rounds.lock().pending.iter().map(|pending| (pending.key.clone(), pending.digest.clone())).collect();
        state
    }

    #[test]
    fn input_requests_without_a_key_are_numbered() {
        let input_rounds = round(InputRoundState::default(), json!({}));
        assert_eq!(ask(&input_rounds, None, "a").unwrap(), waiting("elicit-1"));
        assert_eq!(ask(&input_rounds, Some("own"), "b").unwrap(), waiting("own"));
        assert_eq!(ask(&input_rounds, None, "c").unwrap(), waiting("elicit-2"));
        assert!(input_rounds.leave());
    }

    #[test]
    fn a_response_is_returned_for_its_input_request_in_later_rounds_too() {
        let first = round(InputRoundState::default(), json!({}));
        ask(&first, None, "a").unwrap();
        let second = round(state_after(&first), json!({"elicit-1": 7, "elicit-2": 8}));
        assert_eq!(ask(&second, None, "a").unwrap(), HandlerInputStatus::Answered("elicit-1".to_owned(), json!(7)));
        assert_eq!(ask(&second, None, "b").unwrap(), waiting("elicit-2"), "this was not requested yet");
        let third = round(state_after(&second), json!({"elicit-2": 9}));
        assert_eq!(ask(&third, None, "a").unwrap(), HandlerInputStatus::Answered("elicit-1".to_owned(), json!(7)));
        assert_eq!(ask(&third, None, "b").unwrap(), HandlerInputStatus::Answered("elicit-2".to_owned(), json!(9)));
    }

    #[test]
    fn an_input_request_that_changes_between_rounds_is_an_error() {
        let first = round(InputRoundState::default(), json!({}));
        ask(&first, Some("k"), "a").unwrap();
        let second = round(state_after(&first), json!({"k": 7}));
        let error = ask(&second, Some("k"), "b").unwrap_err();
        assert!(error.to_string().contains("`k` differs from the one of the previous round"), "{error}");
    }

    #[test]
    fn responses_without_the_state_of_earlier_rounds_are_matched_by_key() {
        let input_rounds = round(InputRoundState::default(), json!({"k": 7}));
        assert_eq!(ask(&input_rounds, Some("k"), "a").unwrap(), HandlerInputStatus::Answered("k".to_owned(), json!(7)));
    }

    #[test]
    fn a_duplicate_key_is_an_error() {
        let input_rounds = round(InputRoundState::default(), json!({}));
        ask(&input_rounds, Some("k"), "a").unwrap();
        assert!(ask(&input_rounds, Some("k"), "a").is_err());
    }

    #[test]
    fn a_withdrawn_input_request_is_not_pending() {
        let input_rounds = round(InputRoundState::default(), json!({}));
        ask(&input_rounds, Some("k"), "a").unwrap();
        input_rounds.withdraw("k");
        assert!(!input_rounds.leave());
    }

    #[test]
    fn after_the_end_input_requests_fail() {
        let input_rounds = round(InputRoundState::default(), json!({}));
        ask(&input_rounds, Some("k"), "a").unwrap();
        input_rounds.wait("k", Waker::noop()).unwrap();
        input_rounds.end();
        assert!(input_rounds.wait("k", Waker::noop()).is_err());
        assert!(ask(&input_rounds, None, "b").is_err());
    }

    #[test]
    fn a_plain_function_gets_responses_but_cannot_wait_for_them() {
        let input_rounds = round(InputRoundState::default(), json!({"k": 7}));
        input_rounds.set_blocking();
        assert!(matches!(ask(&input_rounds, Some("k"), "a").unwrap(), HandlerInputStatus::Answered(..)));
        assert!(ask(&input_rounds, None, "b").unwrap_err().to_string().contains("async fn"));
    }
}
