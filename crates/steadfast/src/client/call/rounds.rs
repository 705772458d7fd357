//! A call in several rounds (2026-07-28): the server asks back, the client's handlers answer, and the call is made again.
//!
//! Each round is a request of its own with an id of its own. The caller notices nothing but the time it takes: what was asked
//! is answered by the handlers that answer servers of the older revisions as well.

use std::time::Duration;

use serde_json::Value;
use steadfast_model::{InputRequiredResult, InputResponses, JsonObject, Revision};

use crate::client::Client;
use crate::client::handlers::questions::Questions;
use crate::error::Error;
use crate::runtime::timeout::{exponential_backoff, sleep};

/// A server that asks more often than this goes on for ever.
const MOST: u32 = 100;

/// How long to wait before a request is made again that was put off without a question. It doubles up to the ceiling.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The rounds of a call.
#[derive(Default)]
pub(crate) struct Rounds {
    /// How often the server has asked.
    asked: u32,
    put_off: u32,
    /// What the next round says more than the first.
    more: Option<JsonObject>,
}

impl Rounds {
    /// Whether this is not the first round.
    pub(crate) fn is_later(&self) -> bool {
        self.asked > 0
    }

    /// The server has asked: completes when there are answers for the next round.
    pub(crate) async fn answer(&mut self, client: &Client, asked: InputRequiredResult) -> Result<(), Error> {
        self.asked += 1;
        if self.asked > MOST {
            return Err(Error::unanswerable(format!("the server has asked back {MOST} times, and asks again")));
        }
        let requests = asked.input_requests.unwrap_or_default();
        if requests.is_empty() && asked.request_state.is_none() {
            return Err(Error::unanswerable("the server asked back without a question"));
        }
        let questions = Questions::put(&client.inner.connection.opener.handlers, requests)?;
        if questions.is_empty() {
            let pause = exponential_backoff(PAUSE, self.put_off, LONGEST_PAUSE);
            self.put_off += 1;
            sleep(&**client.inner.runtime(), pause).await;
        }
        self.note(questions.await?, asked.request_state);
        Ok(())
    }

    fn note(&mut self, responses: InputResponses, state: Option<String>) {
        let mut more = JsonObject::new();
        if !responses.0.is_empty() {
            more.insert("inputResponses".to_owned(), Value::Object(responses.0));
        }
        if let Some(state) = state {
            more.insert("requestState".to_owned(), Value::String(state));
        }
        self.more = Some(more);
    }

    /// The parameters of this round, from those of the first.
    pub(crate) fn add_input_responses(&self, params: Box<str>, revision: Revision) -> Result<Box<str>, Error> {
        let Some(more) = &self.more else { return Ok(params) };
        if !revision.is_modern() {
            // Another server has taken the place of the one that asked.
            return Err(Error::unsupported("the server that asked back speaks another revision now"));
        }
        with_members(&params, more.clone())
    }
}

/// Parameters that say more.
pub(crate) fn with_members(params: &str, more: JsonObject) -> Result<Box<str>, Error> {
    let mut params: JsonObject = serde_json::from_str(params).map_err(Error::encode)?;
    params.extend(more);
    serde_json::to_string(&params).map(String::into_boxed_str).map_err(Error::encode)
}
