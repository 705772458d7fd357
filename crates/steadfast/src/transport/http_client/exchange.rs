//! One message on its way to the server, and what comes back.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use serde_json::json;
use steadfast_model::{ErrorObject, Method, code};
use steadfast_proto::connection::{CallKey, Outcome};
use steadfast_proto::envelope::{self, AnswerBody, Message};
use steadfast_proto::http::name;
use steadfast_proto::mutant;
use tokio::sync::mpsc;

use super::events::{Events, Heard, is_events};
use super::fetch::{FetchResponse, body_of};
use super::headers::Kind;
use super::shared::{Shared, Unsent, Wanted};
use crate::error::HTTP_STATUS;
use crate::runtime::waiting::sleep;

/// What a task tells the driver.
pub(super) enum Incoming {
    /// A message of the server's.
    Message(Vec<u8>),
    /// A call has ended without one.
    Ended(CallKey, Outcome),
    /// The server knows that the handshake is done, or never will.
    Initialized,
    /// The server does not know the session.
    SessionLost,
}

/// How long a server may take to accept a message that wants no answer.
const DELIVERING: Duration = Duration::from_secs(30);

/// Carries one message. Dropping it closes the connection that it is on.
pub(super) struct Exchange {
    pub(super) shared: Arc<Shared>,
    pub(super) kind: Kind,
    pub(super) call: Option<CallKey>,
    pub(super) driver: mpsc::Sender<Incoming>,
}

/// Why there is no answer.
type Failure = Outcome;

impl Exchange {
    pub(super) async fn run(mut self, body: Vec<u8>) {
        let done = self.post(body).await;
        let told = match (self.call, done) {
            (Some(call), Err(outcome)) => Incoming::Ended(call, outcome),
            (Some(_), Ok(())) => return,
            (None, done) => {
                if let Err(outcome) = done {
                    tracing::warn!(method = ?self.kind.method, ?outcome, "a message did not reach the server");
                }
                if self.kind.method != Some(Method::Initialized) {
                    return;
                }
                Incoming::Initialized
            }
        };
        self.tell(told).await;
    }

    async fn tell(&self, incoming: Incoming) {
        // If the driver is gone, so is whoever waited.
        let _ = self.driver.send(incoming).await;
    }

    async fn hear(&self, message: Vec<u8>) {
        if self.kind.method == Some(Method::ListTools) {
            self.shared.tools.note(&message);
        }
        self.tell(Incoming::Message(message)).await;
    }

    async fn post(&mut self, body: Vec<u8>) -> Result<(), Failure> {
        let in_session = self.kind.mirrored.is_none() && self.shared.session().id.is_some();
        let wanted = Wanted {
            method: http::Method::POST,
            mirrored: self.kind.mirrored.as_ref(),
            body: Some(body.into()),
            // A call has deadlines of its own.
            timeout: self.call.is_none().then_some(DELIVERING),
            ..Wanted::default()
        };
        let mut sent = self.shared.send(wanted.clone()).await;
        if mutant!(SendAgain) && matches!(&sent, Err(Unsent::Failed(error)) if error.is_sent()) {
            sent = self.shared.send(wanted).await;
        }
        let response = sent.map_err(unsent)?;
        if self.kind.method == Some(Method::Initialize) && response.status().is_success() {
            self.shared.session().id = response.headers().get(name::SESSION_ID).cloned();
        }
        match response.status() {
            StatusCode::NOT_FOUND if in_session => {
                self.tell(Incoming::SessionLost).await;
                Err(Outcome::SessionLost)
            }
            status if status.is_success() => self.read(response).await,
            status => self.refused(status, response).await,
        }
    }

    async fn read(&mut self, response: FetchResponse) -> Result<(), Failure> {
        if is_events(&response) {
            return self.read_events(response).await;
        }
        let body = body_of(response, self.shared.longest).await.map_err(lost)?;
        if body.is_empty() {
            return match self.call {
                Some(_) => Err(lost("the server took the request and did not answer".to_owned())),
                None => Ok(()),
            };
        }
        if let Some(refused) = refusal_of(&body).filter(|_| self.call.is_some()) {
            return Err(refused);
        }
        let answer = self.call.is_none() || self.is_answer(&body);
        self.hear(body).await;
        // What was heard is looked at first: if it holds the answer after all, this is of no effect.
        if answer { Ok(()) } else { Err(lost("the response is not an answer to the request".to_owned())) }
    }

    /// Reads until the answer has come. What breaks off before is resumed, in revisions that know how.
    async fn read_events(&mut self, response: FetchResponse) -> Result<(), Failure> {
        let longest = self.shared.longest;
        let mut events = Events::new(response, longest);
        loop {
            match events.next().await {
                Heard::Message(message) => {
                    if let Some(refused) = refusal_of(&message).filter(|_| self.call.is_some()) {
                        return Err(refused);
                    }
                    let answer = self.is_answer(&message);
                    self.hear(message).await;
                    if answer {
                        return Ok(());
                    }
                }
                Heard::TooLong => return Err(Outcome::Unreadable(format!("a message of more than {longest} bytes"))),
                Heard::End(_) if self.call.is_none() => return Ok(()),
                Heard::End(why) => {
                    let resumable = self.kind.mirrored.is_none() && events.last_event_id().is_some();
                    let next = if resumable { self.resume(&mut events).await } else { None };
                    let Some(next) = next else { return Err(lost(why)) };
                    events.go_on(next, longest);
                }
            }
        }
    }

    /// The rest of a stream that broke off; `None` if the server does not have it, or cannot be reached often enough.
    async fn resume(&self, events: &mut Events) -> Option<FetchResponse> {
        loop {
            let runtime = &*self.shared.runtime;
            sleep(runtime, events.pause(runtime)?).await;
            events.note_attempt();
            let wanted = Wanted { last_event_id: Some(events.last_event_id()?), ..Wanted::default() };
            match self.shared.send(wanted).await {
                Ok(response) if response.status().is_success() && is_events(&response) => return Some(response),
                // It will not know better next time.
                Ok(response) if response.status().is_client_error() => return None,
                _ => {}
            }
        }
    }

    fn is_answer(&self, message: &[u8]) -> bool {
        match envelope::read(message, usize::MAX) {
            Ok(Message::Answer { id, .. }) => id.is_some() && id == self.kind.id,
            _ => false,
        }
    }

    /// The server says no, in its own words or with a bare status.
    async fn refused(&self, status: StatusCode, response: FetchResponse) -> Result<(), Failure> {
        let body = body_of(response, self.shared.longest).await.unwrap_or_default();
        let message = envelope::read(&body, usize::MAX);
        if let Ok(Message::Answer { id, body: AnswerBody::Error(error) }) = message {
            if id.is_some() && id == self.kind.id {
                self.tell(Incoming::Message(body)).await;
                return Ok(());
            }
            // It was refused before its id was read; but it is the answer to this request.
            if let Ok(error) = serde_json::from_str::<ErrorObject>(error) {
                return Err(Outcome::Refused(error));
            }
        }
        let why = format!("the server answered with status {status}");
        if status.is_client_error() {
            let error = ErrorObject::new(code::INTERNAL_ERROR, why).with_data(json!({ HTTP_STATUS: status.as_u16() }));
            return Err(Outcome::Refused(error));
        }
        // A server that fails may have failed in the middle of it, and 303 says where to look for what was done. One that
        // wants the same request made elsewhere has not begun.
        let elsewhere = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        Err(Outcome::Lost { sent: !elsewhere, why })
    }
}

fn unsent(unsent: Unsent) -> Failure {
    match unsent {
        // Whoever authorizes has tried what there is to try.
        Unsent::Unauthorized(why) => Outcome::Unsendable(format!("not authorized: {why}")),
        Unsent::Failed(error) if error.is_unwritable() => Outcome::Unsendable(error.to_string()),
        Unsent::Failed(error) => {
            Outcome::Lost { sent: error.is_sent() && !mutant!(BrokenIsUnsent), why: error.to_string() }
        }
    }
}

/// An error without an id is the outcome of the request that it answers.
fn refusal_of(message: &[u8]) -> Option<Failure> {
    match envelope::read(message, usize::MAX) {
        Ok(Message::Answer { id: None, body: AnswerBody::Error(error) }) => {
            serde_json::from_str(error).ok().map(Outcome::Refused)
        }
        _ => None,
    }
}

fn lost(why: String) -> Failure {
    Outcome::Lost { sent: true, why }
}
