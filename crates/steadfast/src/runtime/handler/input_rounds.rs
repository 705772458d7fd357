//! What one request asks of its client in several rounds (2026-07-28).
//!
//! There is no way to call such a client: a request that needs input ends with a result that says what it needs, and is made
//! again with the answers. Here is what a handler has asked, by key, what was answered in this round and before, and what it
//! wants remembered for the next. A question that has no answer yet stays pending until the fence suspends the handler, and
//! the one that it is asked in has to ask the same again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use steadfast_model::{ErrorObject, InputRequest, InputRequests, JsonObject};
use steadfast_proto::encode::Answer;

use crate::error::{Error, Outcome};

/// The questions and answers of one request.
pub(crate) struct InputRounds {
    keeper: Box<dyn RoundStore>,
    state: Mutex<State>,
}

/// Who keeps what has to be known in the next round.
pub(crate) trait RoundStore: Send + Sync {
    /// What came with the request: what is remembered of earlier rounds, and the answers of this one.
    fn open(&self) -> Result<(RoundState, JsonObject), ErrorObject>;

    /// The answer that asks for input.
    fn suspend(&self, requests: InputRequests, memory: &RoundState) -> Answer;
}

/// What is known of earlier rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RoundState {
    /// What was asked and answered, by key.
    #[serde(default, rename = "a")]
    answered: BTreeMap<String, RecordedAnswer>,
    /// The digests of what was asked last and is not answered, by key.
    #[serde(default, rename = "w")]
    waiting: BTreeMap<String, String>,
    /// What the handler wants remembered.
    #[serde(default, rename = "v")]
    values: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct RecordedAnswer {
    #[serde(rename = "d")]
    digest: String,
    #[serde(rename = "v")]
    value: Value,
}

#[derive(Default)]
struct State {
    memory: RoundState,
    /// True if the request came with a memory: then only what was asked is answered.
    resumed: bool,
    /// The answers of this round that nobody has asked for yet.
    responses: JsonObject,
    /// The keys under which was asked in this run.
    used: BTreeSet<String>,
    /// How many have asked without a key of their own.
    unnamed: usize,
    pending: Vec<Pending>,
    /// The handler is being polled.
    polled: bool,
    /// Woken when somebody asks outside of the handler's poll.
    task: Option<Waker>,
    /// The handler is a plain function, which cannot be suspended.
    blocking: bool,
    /// The handler has ended or was suspended.
    over: bool,
}

struct Pending {
    key: String,
    request: InputRequest,
    digest: String,
    waker: Waker,
}

/// What a question comes to.
#[derive(Debug, PartialEq)]
pub(crate) enum InputStatus {
    /// The answer, and the key that it came under.
    Answered(String, Value),
    /// There is none yet; it is waited for under this key.
    Waiting(String),
}

/// For who asks.
impl InputRounds {
    pub(crate) fn new(keeper: Box<dyn RoundStore>) -> Self {
        Self { keeper, state: Mutex::default() }
    }

    /// Asks, under a key or under the next one of that kind.
    pub(crate) fn ask(
        &self,
        key: Option<&str>,
        kind: &str,
        request: &InputRequest,
        waker: &Waker,
    ) -> Result<InputStatus, Error> {
        let digest = digest(request)?;
        let mut state = self.lock();
        if state.over {
            return Err(over());
        }
        let key = key.map_or_else(|| state.next_key(kind), str::to_owned);
        if !state.used.insert(key.clone()) {
            return Err(Error::usage(format!("`{key}` was asked for already: each question needs a key of its own")));
        }
        if let Some(value) = state.answer(&key, &digest)? {
            return Ok(InputStatus::Answered(key, value));
        }
        if state.blocking {
            return Err(Error::usage("a plain `fn` cannot wait for the client: make it an `async fn`"));
        }
        state.pending.push(Pending { key: key.clone(), request: request.clone(), digest, waker: waker.clone() });
        let task = if state.polled { None } else { state.task.take() };
        drop(state);
        if let Some(task) = task {
            task.wake();
        }
        Ok(InputStatus::Waiting(key))
    }

    /// Goes on waiting; an error when there will be no answer in this run.
    pub(crate) fn wait(&self, key: &str, waker: &Waker) -> Result<(), Error> {
        let mut state = self.lock();
        match state.pending.iter_mut().find(|pending| pending.key == key) {
            Some(pending) => {
                pending.waker.clone_from(waker);
                Ok(())
            }
            None => Err(over()),
        }
    }

    /// Nobody waits for that answer any more.
    pub(crate) fn withdraw(&self, key: &str) {
        self.lock().pending.retain(|pending| pending.key != key);
    }

    /// What the handler wanted remembered under that name.
    pub(crate) fn remembered(&self, name: &str) -> Option<Value> {
        self.lock().memory.values.get(name).cloned()
    }

    /// Remembers a value for the rounds that follow.
    pub(crate) fn remember(&self, name: &str, value: Value) {
        self.lock().memory.values.insert(name.to_owned(), value);
    }
}

/// For the fence.
impl InputRounds {
    /// Reads what came with the request, before the handler runs.
    pub(crate) fn open(&self) -> Result<(), ErrorObject> {
        let (memory, responses) = self.keeper.open()?;
        let mut state = self.lock();
        state.resumed = memory != RoundState::default();
        (state.memory, state.responses) = (memory, responses);
        Ok(())
    }

    /// The handler is a plain function.
    pub(crate) fn set_blocking(&self) {
        self.lock().blocking = true;
    }

    /// The handler is about to be polled by a fence with this waker.
    pub(crate) fn enter(&self, task: &Waker) {
        let mut state = self.lock();
        state.polled = true;
        if !state.task.as_ref().is_some_and(|known| known.will_wake(task)) {
            state.task = Some(task.clone());
        }
    }

    /// The handler was polled. Returns whether there are questions without an answer.
    pub(crate) fn leave(&self) -> bool {
        let mut state = self.lock();
        state.polled = false;
        !state.pending.is_empty()
    }

    /// How many questions hold that very waker.
    pub(crate) fn holders(&self, waker: &Waker) -> usize {
        self.lock().pending.iter().filter(|pending| pending.waker.data() == waker.data()).count()
    }

    /// The result that asks for everything that is pending.
    pub(crate) fn suspend(&self) -> Answer {
        let mut state = self.lock();
        state.over = true;
        let pending = std::mem::take(&mut state.pending);
        let mut memory = std::mem::take(&mut state.memory);
        drop(state);
        memory.waiting = pending.iter().map(|pending| (pending.key.clone(), pending.digest.clone())).collect();
        let mut requests = InputRequests::new();
        for Pending { key, request, waker, .. } in pending {
            requests.insert(key, request);
            // It may be another task that asked.
            waker.wake();
        }
        self.keeper.suspend(requests, &memory)
    }

    /// The handler has ended: whoever else still waits will not be answered.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.over = true;
        let pending = std::mem::take(&mut state.pending);
        drop(state);
        for pending in pending {
            pending.waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn next_key(&mut self, kind: &str) -> String {
        self.unnamed += 1;
        format!("{kind}-{}", self.unnamed)
    }

    /// The answer under that key, if there is one to this very question.
    fn answer(&mut self, key: &str, digest: &str) -> Result<Option<Value>, Error> {
        let before = self.memory.answered.get(key).map(|answered| &answered.digest);
        let before = before.or_else(|| self.memory.waiting.get(key));
        match before {
            Some(before) if before != digest => {
                let message = format!("the handler asked something else under `{key}` than in the round before");
                return Err(Error::internal(message));
            }
            // Nobody was asked this yet, so what came under its key is an answer to something else.
            None if self.resumed => return Ok(None),
            _ => {}
        }
        if let Some(answered) = self.memory.answered.get(key) {
            return Ok(Some(answered.value.clone()));
        }
        let Some(value) = self.responses.shift_remove(key).filter(|value| !value.is_null()) else { return Ok(None) };
        let answered = RecordedAnswer { digest: digest.to_owned(), value: value.clone() };
        self.memory.answered.insert(key.to_owned(), answered);
        Ok(Some(value))
    }
}

/// What tells one question from another, in few bytes.
fn digest(request: &InputRequest) -> Result<String, Error> {
    let text = serde_json::to_vec(request).map_err(Error::encode)?;
    let digest = Sha256::digest(text);
    Ok(URL_SAFE_NO_PAD.encode(digest.first_chunk::<16>().copied().unwrap_or_default()))
}

fn over() -> Error {
    Error::cancelled(Outcome::NotSent)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use steadfast_model::{ElicitParams, FormSchema, RequestId};

    use super::*;

    /// Keeps the memory in a cell, and answers with it.
    #[derive(Default)]
    struct Cell {
        memory: RoundState,
        responses: JsonObject,
    }

    impl RoundStore for Cell {
        fn open(&self) -> Result<(RoundState, JsonObject), ErrorObject> {
            Ok((self.memory.clone(), self.responses.clone()))
        }

        fn suspend(&self, requests: InputRequests, memory: &RoundState) -> Answer {
            Answer::result(&RequestId::from(1), |out| serde_json::to_writer(out, &(requests, memory)))
        }
    }

    fn round(memory: RoundState, responses: Value) -> InputRounds {
        let responses = responses.as_object().cloned().unwrap_or_default();
        let input_rounds = InputRounds::new(Box::new(Cell { memory, responses }));
        input_rounds.open().unwrap();
        input_rounds
    }

    fn question(message: &str) -> InputRequest {
        InputRequest::Elicit(ElicitParams::form(message, FormSchema::new()))
    }

    fn ask(input_rounds: &InputRounds, key: Option<&str>, message: &str) -> Result<InputStatus, Error> {
        input_rounds.ask(key, "elicit", &question(message), Waker::noop())
    }

    fn waiting(key: &str) -> InputStatus {
        InputStatus::Waiting(key.to_owned())
    }

    /// What the next round begins with.
    fn suspended(input_rounds: &InputRounds) -> RoundState {
        let mut memory = input_rounds.lock().memory.clone();
        memory.waiting =
            input_rounds.lock().pending.iter().map(|pending| (pending.key.clone(), pending.digest.clone())).collect();
        memory
    }

    #[test]
    fn questions_have_keys_by_their_order() {
        let input_rounds = round(RoundState::default(), json!({}));
        assert_eq!(ask(&input_rounds, None, "a").unwrap(), waiting("elicit-1"));
        assert_eq!(ask(&input_rounds, Some("own"), "b").unwrap(), waiting("own"));
        assert_eq!(ask(&input_rounds, None, "c").unwrap(), waiting("elicit-2"));
        assert!(input_rounds.leave());
    }

    #[test]
    fn an_answer_is_given_to_its_question_and_kept_for_later_rounds() {
        let first = round(RoundState::default(), json!({}));
        ask(&first, None, "a").unwrap();
        let second = round(suspended(&first), json!({"elicit-1": 7, "elicit-2": 8}));
        assert_eq!(ask(&second, None, "a").unwrap(), InputStatus::Answered("elicit-1".to_owned(), json!(7)));
        assert_eq!(ask(&second, None, "b").unwrap(), waiting("elicit-2"), "nobody had asked that yet");
        let third = round(suspended(&second), json!({"elicit-2": 9}));
        assert_eq!(ask(&third, None, "a").unwrap(), InputStatus::Answered("elicit-1".to_owned(), json!(7)));
        assert_eq!(ask(&third, None, "b").unwrap(), InputStatus::Answered("elicit-2".to_owned(), json!(9)));
    }

    #[test]
    fn a_question_that_changes_between_rounds_is_an_error() {
        let first = round(RoundState::default(), json!({}));
        ask(&first, Some("k"), "a").unwrap();
        let second = round(suspended(&first), json!({"k": 7}));
        let error = ask(&second, Some("k"), "b").unwrap_err();
        assert!(error.to_string().contains("something else under `k`"), "{error}");
    }

    #[test]
    fn answers_without_a_memory_are_taken_by_their_keys() {
        let input_rounds = round(RoundState::default(), json!({"k": 7}));
        assert_eq!(ask(&input_rounds, Some("k"), "a").unwrap(), InputStatus::Answered("k".to_owned(), json!(7)));
    }

    #[test]
    fn one_key_is_for_one_question() {
        let input_rounds = round(RoundState::default(), json!({}));
        ask(&input_rounds, Some("k"), "a").unwrap();
        assert!(ask(&input_rounds, Some("k"), "a").is_err());
    }

    #[test]
    fn a_question_that_is_dropped_is_not_asked() {
        let input_rounds = round(RoundState::default(), json!({}));
        ask(&input_rounds, Some("k"), "a").unwrap();
        input_rounds.withdraw("k");
        assert!(!input_rounds.leave());
    }

    #[test]
    fn after_the_end_nobody_waits() {
        let input_rounds = round(RoundState::default(), json!({}));
        ask(&input_rounds, Some("k"), "a").unwrap();
        input_rounds.wait("k", Waker::noop()).unwrap();
        input_rounds.end();
        assert!(input_rounds.wait("k", Waker::noop()).is_err());
        assert!(ask(&input_rounds, None, "b").is_err());
    }

    #[test]
    fn a_plain_function_is_given_answers_but_cannot_wait() {
        let input_rounds = round(RoundState::default(), json!({"k": 7}));
        input_rounds.set_blocking();
        assert!(matches!(ask(&input_rounds, Some("k"), "a").unwrap(), InputStatus::Answered(..)));
        assert!(ask(&input_rounds, None, "b").unwrap_err().to_string().contains("async fn"));
    }
}
