//! A call in several rounds (2026-07-28): the server asks for input, the client's handlers answer, and the request is
//! sent again with the answers.
//!
//! Each round of a call is a request with an id of its own. The caller sees one call, however many rounds the call
//! takes. The input requests of the server go to the same handlers of the client that answer the requests of servers
//! of older revisions.

use std::time::Duration;

use serde_json::Value;
use steadfast_model::{InputRequiredResult, InputResponses, JsonObject, Revision};

use crate::client::Client;
use crate::client::handlers::input::InputHandlersFuture;
use crate::error::Error;
use crate::runtime::timeout::{exponential_backoff, sleep};

/// The maximum number of rounds of one call, as a protection against servers that ask for input without end.
const MAX_ROUNDS: u32 = 100;

/// The pause before the next round if the server returned a request state but no input request. The pause doubles
/// with each round without an input request, up to five seconds.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The rounds of a call, in which the server asks for input and the client answers.
#[derive(Default)]
pub(crate) struct CallRounds {
    /// The number of times that the server has asked for input in this call.
    count: u32,
    /// The number of times that the server has returned a request state without an input request.
    pauses: u32,
    /// The JSON members that the request of the next round adds to the parameters of the first request.
    added_members: Option<JsonObject>,
}

impl CallRounds {
    /// Whether the server has already asked for input at least once in this call.
    pub(crate) fn is_later_round(&self) -> bool {
        self.count > 0
    }

    /// Answers the input requests of the server. Completes when the request of the next round can be sent.
    pub(crate) async fn answer(&mut self, client: &Client, input: InputRequiredResult) -> Result<(), Error> {
        self.count += 1;
        if self.count > MAX_ROUNDS {
            return Err(Error::unanswerable(format!("the server asked for input more than {MAX_ROUNDS} times")));
        }
        let requests = input.input_requests.unwrap_or_default();
        if requests.is_empty() && input.request_state.is_none() {
            return Err(Error::unanswerable(
                "the server asked for input, but its result has neither input requests nor a request state",
            ));
        }
        let pending =
            InputHandlersFuture::start(&client.inner.connection.opener.handlers, requests, client.revision())?;
        if pending.is_empty() {
            let pause = exponential_backoff(FIRST_PAUSE, self.pauses, LONGEST_PAUSE);
            self.pauses += 1;
            sleep(&**client.inner.runtime(), pause).await;
        }
        self.prepare_next(pending.await?, input.request_state);
        Ok(())
    }

    fn prepare_next(&mut self, responses: InputResponses, state: Option<String>) {
        let mut members = JsonObject::new();
        if !responses.as_object().is_empty() {
            members.insert("inputResponses".to_owned(), Value::Object(responses.into()));
        }
        if let Some(state) = state {
            members.insert("requestState".to_owned(), Value::String(state));
        }
        self.added_members = Some(members);
    }

    /// Returns the parameters for the request of the next round, made from the parameters of the first request.
    pub(crate) fn add_input_responses(&self, params: Box<str>, revision: Revision) -> Result<Box<str>, Error> {
        let Some(members) = &self.added_members else { return Ok(params) };
        if !revision.is_stateless() {
            // The client has reconnected, to another server.
            return Err(Error::unsupported(format!(
                "the server asked for input and now speaks {revision}, in which its request cannot be answered"
            )));
        }
        add_members(&params, members.clone())
    }
}

/// Adds members to the parameters of a request, which are JSON text.
pub(crate) fn add_members(params: &str, members: JsonObject) -> Result<Box<str>, Error> {
    let mut params: JsonObject = serde_json::from_str(params).map_err(Error::encode)?;
    params.extend(members);
    serde_json::to_string(&params).map(String::into_boxed_str).map_err(Error::encode)
}
