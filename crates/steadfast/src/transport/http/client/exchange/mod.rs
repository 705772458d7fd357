//! One message on its way to the server, and what comes back.

#[cfg(feature = "legacy-sse")]
mod legacy;
mod refusal;

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_ENCODING;
use steadfast_model::Method;
use steadfast_proto::connection::{CallEnd, CallKey};
use steadfast_proto::envelope::{self, Message, ResponseBody};
use steadfast_proto::http::name;
use steadfast_proto::mutant;
use tokio::sync::{mpsc, oneshot};
use tracing::Level;

use super::fetch::{FetchResponse, NoBody, body_of};
use super::in_flight::delivery::{Delivery, SentRequest};
use super::outgoing::Outgoing;
use super::request::{HttpRequest, NoResponse};
use super::shared::Shared;
use super::stream::backoff::StreamBackoff;
use super::stream::events::{Events, StreamEvent, is_events};
use super::task::RequestTask;
use crate::runtime::Task;
use crate::runtime::timeout::{sleep, timeout_at};
use refusal::{lost, unanswered};

/// What a task tells the driver.
pub(crate) enum DriverEvent {
    /// A message of the server's.
    Message(Vec<u8>),
    /// A call has ended without one.
    Ended(CallKey, CallEnd),
    /// The server does not know the session.
    SessionLost,
    /// The stream of HTTP+SSE is open.
    #[cfg(feature = "legacy-sse")]
    StreamOpened(Box<Events>),
    /// It has ended, and with it the connection.
    #[cfg(feature = "legacy-sse")]
    StreamEnded,
    /// The rest of a response whose answer has come.
    Lingering(RequestTask),
}

/// How long a server may take to accept a message that wants no answer.
const DELIVERING: Duration = Duration::from_secs(30);

/// How long a server may take to end a response behind the answer in it. Read to its end, its connection can be used again.
const LINGERING: Duration = Duration::from_secs(1);

/// Carries one message. Dropping it closes the connection that it is on.
pub(crate) struct MessagePost {
    pub(crate) shared: Arc<Shared>,
    pub(crate) outgoing: Outgoing,
    pub(crate) call: Option<CallKey>,
    pub(crate) delivery: Arc<Delivery>,
    /// Dropped when the server has the message, or never will. It is no word among the others: those may not be taken before.
    pub(crate) delivered: Option<oneshot::Sender<()>>,
    pub(crate) driver: mpsc::Sender<DriverEvent>,
}

impl MessagePost {
    /// Carries the message. If it says that a request was given up, it does so behind that request, and not at all if the request
    /// has not left.
    pub(crate) async fn run(mut self, body: Vec<u8>, given_up: Option<SentRequest>) {
        if let Some(request) = given_up
            && !request.give_up(&*self.shared.runtime).await
        {
            return;
        }
        let done = match self.call {
            Some(_) => self.post(body.into()).await,
            None => self.post_in_time(body.into()).await,
        };
        match (self.call, done) {
            (Some(call), Err(outcome)) => self.tell(DriverEvent::Ended(call, outcome)).await,
            (None, Err(outcome)) => {
                let method = self.outgoing.method.map_or("an answer", Method::name);
                let why = format!("{method}: {}", words(&outcome));
                self.shared.log(Level::WARN, "a message did not reach the server", &why);
            }
            (_, Ok(())) => {}
        }
    }

    /// What the driver has to know if this does not come to its end.
    pub(crate) fn last_word(&self) -> impl FnOnce() -> Option<DriverEvent> + Send + use<> {
        let (call, delivery) = (self.call, Arc::clone(&self.delivery));
        move || {
            let why = "what makes the requests failed unexpectedly".to_owned();
            Some(DriverEvent::Ended(call?, CallEnd::Lost { sent: delivery.has_left(), why }))
        }
    }

    async fn tell(&self, incoming: DriverEvent) {
        // If the driver is gone, so is whoever waited.
        let _ = self.driver.send(incoming).await;
    }

    /// The server has this message. Others may wait for that.
    fn note_delivered(&mut self) {
        self.delivered = None;
    }

    /// A call has deadlines of its own. What wants no answer has this one, whether or not who makes the requests keeps to it.
    async fn post_in_time(&mut self, body: Bytes) -> Result<(), CallEnd> {
        let runtime = Arc::clone(&self.shared.runtime);
        let posted = timeout_at(&*runtime, Some(runtime.now() + DELIVERING), self.post(body)).await;
        posted.unwrap_or_else(|| Err(lost("the server did not take it in time".to_owned())))
    }

    async fn post(&mut self, body: Bytes) -> Result<(), CallEnd> {
        #[cfg(feature = "legacy-sse")]
        if let Some(done) = self.post_legacy(&body).await {
            return done;
        }
        let in_session = self.outgoing.mirrored.is_none() && self.shared.session().id.is_some();
        let mut sent = self.shared.send(self.wanted(body.clone())).await;
        if mutant!(SendAgain) && matches!(&sent, Err(NoResponse::Failed(error)) if error.is_sent()) {
            sent = self.shared.send(self.wanted(body.clone())).await;
        }
        let response = sent.map_err(unanswered)?;
        if self.outgoing.method == Some(Method::Initialize) && response.status().is_success() {
            let mut id = response.headers().get(name::SESSION_ID).cloned();
            // Whoever has it is in the session.
            if let Some(id) = &mut id {
                id.set_sensitive(true);
            }
            self.shared.session().id = id;
        }
        match response.status() {
            StatusCode::NOT_FOUND if in_session => {
                self.tell(DriverEvent::SessionLost).await;
                Err(CallEnd::SessionLost)
            }
            status if status.is_success() => {
                self.note_delivered();
                self.read(response).await
            }
            #[cfg(feature = "legacy-sse")]
            _ if self.outgoing.method == Some(Method::Initialize) => self.refused_or_legacy(response, body).await,
            _ => self.refused(response).await,
        }
    }

    fn wanted(&self, body: Bytes) -> HttpRequest<'_> {
        HttpRequest {
            method: http::Method::POST,
            mirrored: self.outgoing.mirrored.as_ref(),
            body: Some(body),
            delivery: Some(&self.delivery),
            // A call has deadlines of its own.
            timeout: self.call.is_none().then_some(DELIVERING),
            ..HttpRequest::default()
        }
    }

    async fn read(&mut self, response: FetchResponse) -> Result<(), CallEnd> {
        if let Some(encoding) = packed(&response) {
            return Err(CallEnd::Unreadable(format!("it is packed ({encoding}), which was not asked for")));
        }
        if is_events(&response) {
            return self.read_events(response).await;
        }
        let longest = self.shared.longest;
        let body = body_of(response, longest).await.map_err(|why| match why {
            NoBody::TooLong => too_long(longest),
            NoBody::BrokeOff(error) => lost(error.to_string()),
        })?;
        if body.is_empty() {
            return match self.call {
                Some(_) => Err(lost("the server took the request and did not answer".to_owned())),
                None => Ok(()),
            };
        }
        let said = self.classify(&body);
        if let Relation::Refusal(refused) = said {
            return Err(refused);
        }
        self.tell(DriverEvent::Message(body)).await;
        match said {
            Relation::Other if self.call.is_some() => {
                // What was heard is looked at first: if it holds the answer after all, this is of no effect.
                Err(CallEnd::Unreadable("the response is not an answer to the request".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Reads until the answer has come. What breaks off before is resumed, in revisions that know how.
    async fn read_events(&mut self, response: FetchResponse) -> Result<(), CallEnd> {
        let longest = self.shared.longest;
        let mut events = Events::new(response, longest);
        let mut backoff = StreamBackoff::of_an_answer();
        loop {
            match events.next().await {
                StreamEvent::Message(message) => match self.classify(&message) {
                    Relation::Refusal(refused) => return Err(refused),
                    Relation::Answer => {
                        // Whoever waits for it gives up this response when it has come.
                        self.linger(events).await;
                        self.tell(DriverEvent::Message(message)).await;
                        return Ok(());
                    }
                    Relation::Other => {
                        backoff.note_message();
                        self.tell(DriverEvent::Message(message)).await;
                    }
                },
                StreamEvent::TooLong => return Err(too_long(longest)),
                StreamEvent::End(_) if self.call.is_none() => return Ok(()),
                StreamEvent::End(why) => {
                    let next = match events.last_event_id() {
                        Some(last) if self.outgoing.mirrored.is_none() => {
                            self.resume(last, events.retry(), &mut backoff).await
                        }
                        _ => None,
                    };
                    let Some(next) = next else { return Err(lost(why)) };
                    events.go_on(next, longest);
                }
            }
        }
    }

    /// The rest of a stream that broke off; `None` if the server does not have it, or cannot be reached often enough.
    async fn resume(&self, last: &str, retry: Option<Duration>, backoff: &mut StreamBackoff) -> Option<FetchResponse> {
        let runtime = &*self.shared.runtime;
        loop {
            sleep(runtime, backoff.pause(retry, runtime)?).await;
            let wanted = HttpRequest { last_event_id: Some(last), ..HttpRequest::default() };
            match self.shared.send(wanted).await {
                Ok(response) if response.status().is_success() && is_events(&response) => {
                    backoff.note_opened(runtime.now());
                    return Some(response);
                }
                Ok(response) if response.status() == StatusCode::NOT_FOUND && self.shared.session().id.is_some() => {
                    self.tell(DriverEvent::SessionLost).await;
                    return None;
                }
                // It will not know better next time.
                Ok(response) if response.status().is_client_error() => return None,
                Err(why) if why.is_final() => return None,
                _ => {}
            }
        }
    }

    /// Leaves the rest of a response to be read behind our back.
    async fn linger(&self, events: Events) {
        let mut rest: Task = Box::pin(events.finish());
        let ended = std::future::poll_fn(|cx| Poll::Ready(rest.as_mut().poll(cx).is_ready())).await;
        if !ended {
            let runtime = Arc::clone(&self.shared.runtime);
            let until = runtime.now() + LINGERING;
            // Longer than that, it is not worth it.
            let reading = async move { timeout_at(&*runtime, Some(until), rest).await.unwrap_or_default() };
            let task = RequestTask::begin(&*self.shared.runtime, reading, || ());
            self.tell(DriverEvent::Lingering(task)).await;
        }
    }

    /// What a message is to the one that this carries. One that is too deep is for the engine to judge.
    fn classify(&self, message: &[u8]) -> Relation {
        match envelope::read(message, self.shared.depth) {
            Ok(Message::Response { id: Some(id), .. }) if Some(&id) == self.outgoing.id.as_ref() => Relation::Answer,
            Ok(Message::Response { id: None, body: ResponseBody::Error(error) }) if self.call.is_some() => {
                serde_json::from_str(error).map_or(Relation::Other, |error| Relation::Refusal(CallEnd::Refused(error)))
            }
            _ => Relation::Other,
        }
    }
}

/// What a message of the server's is to the one that was sent.
enum Relation {
    Answer,
    /// An error without an id is the outcome of the request that it answers.
    Refusal(CallEnd),
    Other,
}

/// What is known of a message that wants no answer and was not taken.
fn words(outcome: &CallEnd) -> &str {
    match outcome {
        CallEnd::Refused(error) => &error.message,
        CallEnd::Lost { why, .. } | CallEnd::Unreadable(why) | CallEnd::Unsendable(why) => why,
        CallEnd::SessionLost => "the server does not know the session",
        _ => "it was given up",
    }
}

/// It came, and would come again: this is no lost connection.
fn too_long(longest: usize) -> CallEnd {
    CallEnd::Unreadable(format!("a message of more than {longest} bytes"))
}

/// How a body was made smaller, if it was.
fn packed(response: &FetchResponse) -> Option<String> {
    let encoding =
        response.headers().get(CONTENT_ENCODING)?.to_str().unwrap_or("in an unreadable way").trim().to_owned();
    (!encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity")).then_some(encoding)
}
