//! One message that the client sends to the server in a POST, and the HTTP response to it.

#[cfg(feature = "legacy-sse")]
mod legacy;
mod refusal;

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, StatusCode};
use steadfast_model::Method;
use steadfast_proto::connection::{CallEnd, CallKey, TransmitKind};
use steadfast_proto::envelope::{Envelope, Message, ResultOrError};
use steadfast_proto::http::name;
use steadfast_proto::mutant;
use tokio::sync::{mpsc, oneshot};
use tracing::Level;

use super::fetch::{TransportBodyError, TransportFetchResponse, read_body};
use super::in_flight::{HttpClientInFlightRequest, HttpPostDelivery};
use super::shared::HttpClientConnection;
use super::shared::{ClientHttpRequest, ClientHttpRequestError};
use super::stream::backoff::StreamBackoff;
use super::stream::events::{SseMessageOrEnd, SseMessageReader, is_events};
use crate::runtime::RuntimeTask;
use crate::runtime::timeout::{sleep, timeout_at};

/// An event that an HTTP request of the client reports to the driver.
pub(crate) enum HttpClientDriverEvent {
    /// The server sent a message, which is parsed where it was read, and not again by the connection.
    Message(Box<Envelope>),
    /// A call of the client ended without a message of the server.
    CallEnded(CallKey, CallEnd),
    /// The server does not know the session of this client any more.
    SessionLost,
    /// The event stream of HTTP+SSE is open.
    #[cfg(feature = "legacy-sse")]
    LegacyStreamOpened(Box<SseMessageReader>),
    /// The event stream of HTTP+SSE has ended, and with it the connection.
    #[cfg(feature = "legacy-sse")]
    LegacyStreamEnded,
    /// A future that reads the rest of an HTTP response after the JSON-RPC response in it has arrived.
    ResponseTail(RuntimeTask),
}

/// How long a server may take to accept a message that is not a request.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the rest of an HTTP response is read after the JSON-RPC response in it has arrived. An HTTP connection can
/// be reused only after the response on it was read to its end.
const TAIL_TIMEOUT: Duration = Duration::from_secs(1);

/// Sends one message of the client in a POST and reads the HTTP response. Dropping the future of the POST closes the
/// HTTP response.
pub(crate) struct MessagePost {
    pub(crate) shared: Arc<HttpClientConnection>,
    /// The kind of the message: a request, a cancellation, another notification or a response.
    pub(crate) kind: TransmitKind,
    /// The headers that mirror the body, if it is a request of 2026-07-28.
    pub(crate) mirrored: Option<HeaderMap>,
    pub(crate) delivery: Arc<HttpPostDelivery>,
    /// The sender `delivered` is dropped when the server has received the message of the POST, or never will.
    /// Delivery is not reported as an event, because the driver may not handle events until the message is delivered.
    pub(crate) delivered: Option<oneshot::Sender<()>>,
    pub(crate) driver: mpsc::Sender<HttpClientDriverEvent>,
}

impl MessagePost {
    /// Sends the message. A cancellation is sent after the request that it cancels was delivered, and not at all if
    /// that request was never sent.
    pub(crate) async fn run(mut self, body: Vec<u8>, cancelled: Option<HttpClientInFlightRequest>) {
        if let Some(request) = cancelled
            && !request.abort(&*self.shared.runtime).await
        {
            return;
        }
        let call = self.kind.call();
        let done = match call {
            Some(_) => self.post(body.into()).await,
            None => self.post_in_time(body.into()).await,
        };
        match (call, done) {
            (Some(call), Err(end)) => self.report(HttpClientDriverEvent::CallEnded(call, end)).await,
            (None, Err(end)) => {
                let method = self.kind.method().map_or("response", Method::name);
                let why = format!("{method}: {}", describe_send_failure(&end));
                self.shared.log(Level::WARN, "a message could not be sent to the server", &why);
            }
            (_, Ok(())) => {}
        }
    }

    /// The event that the driver handles if the future of this POST panics.
    pub(crate) fn failure(&self) -> impl FnOnce() -> Option<HttpClientDriverEvent> + Send + use<> {
        let (call, delivery) = (self.kind.call(), Arc::clone(&self.delivery));
        move || {
            let why = "the HTTP client panicked".to_owned();
            Some(HttpClientDriverEvent::CallEnded(call?, CallEnd::Lost { sent: delivery.may_be_delivered(), why }))
        }
    }

    async fn report(&self, event: HttpClientDriverEvent) {
        // Fails only if the driver is gone, and then no caller waits.
        let _ = self.driver.send(event).await;
    }

    /// Notes that the server has received this message, because later messages may wait for its delivery.
    fn note_delivered(&mut self) {
        self.delivered = None;
    }

    /// Sends a message that is not a request. A request has the timeouts of its call; any other message has the timeout
    /// `MESSAGE_TIMEOUT`, even if the HTTP client does not observe it.
    async fn post_in_time(&mut self, body: Bytes) -> Result<(), CallEnd> {
        let runtime = Arc::clone(&self.shared.runtime);
        let posted = timeout_at(&*runtime, Some(runtime.now() + MESSAGE_TIMEOUT), self.post(body)).await;
        posted.unwrap_or_else(|| {
            Err(lost("timed out: no response to this message, the server may have received it".to_owned()))
        })
    }

    async fn post(&mut self, body: Bytes) -> Result<(), CallEnd> {
        #[cfg(feature = "legacy-sse")]
        if let Some(done) = self.post_legacy(&body).await {
            return done;
        }
        let in_session = self.mirrored.is_none() && self.shared.session().id.is_some();
        let mut sent = self.shared.send(self.request(body.clone())).await;
        if mutant!(ResendInterrupted)
            && matches!(&sent, Err(ClientHttpRequestError::Failed(error)) if error.may_be_sent())
        {
            sent = self.shared.send(self.request(body.clone())).await;
        }
        let response = sent.map_err(request_failed)?;
        let initializes = self.kind.method() == Some(Method::Initialize);
        if initializes && response.status().is_success() {
            let mut id = response.headers().get(name::SESSION_ID).cloned();
            // The id is what lets a client into the session.
            if let Some(id) = &mut id {
                id.set_sensitive(true);
            }
            self.shared.session().id = id;
        }
        match response.status() {
            StatusCode::NOT_FOUND if in_session => {
                self.report(HttpClientDriverEvent::SessionLost).await;
                Err(CallEnd::SessionLost)
            }
            status if status.is_success() => {
                self.note_delivered();
                self.read(response).await
            }
            #[cfg(feature = "legacy-sse")]
            _ if initializes => self.refused_or_legacy(response, body).await,
            _ => self.refused(response).await,
        }
    }

    fn request(&self, body: Bytes) -> ClientHttpRequest<'_> {
        ClientHttpRequest {
            method: http::Method::POST,
            mirrored: self.mirrored.as_ref(),
            body: Some(body),
            delivery: Some(&self.delivery),
            // A call has timeouts of its own.
            timeout: self.kind.call().is_none().then_some(MESSAGE_TIMEOUT),
            ..ClientHttpRequest::default()
        }
    }

    async fn read(&mut self, response: TransportFetchResponse) -> Result<(), CallEnd> {
        if let Some(encoding) = content_encoding(&response) {
            return Err(CallEnd::Unreadable(format!(
                "the HTTP response is compressed ({encoding}), which was not asked for"
            )));
        }
        if is_events(&response) {
            return self.read_events(response).await;
        }
        let max_bytes = self.shared.max_message_bytes;
        let body = read_body(response, max_bytes).await.map_err(|why| match why {
            TransportBodyError::TooLong => too_long(max_bytes),
            TransportBodyError::BrokeOff(error) => lost(error.to_string()),
        })?;
        let is_call = self.kind.call().is_some();
        if body.is_empty() {
            let no_response = || lost("the server accepted the request, but its HTTP response is empty".to_owned());
            return if is_call { Err(no_response()) } else { Ok(()) };
        }
        let message = self.shared.parse(body);
        let relation = self.relation_of(&message);
        if let ReceivedMessageRole::ErrorResponse(end) = relation {
            return Err(end);
        }
        self.report(HttpClientDriverEvent::Message(message)).await;
        match relation {
            ReceivedMessageRole::Other if is_call => {
                // The driver handles the message first: if it ends the call after all, this has no effect.
                Err(CallEnd::Unreadable("the HTTP response holds no JSON-RPC response to the request".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Reads server-sent events until the response to the request has arrived. An event stream that breaks off before
    /// the response is resumed, in revisions that support this.
    async fn read_events(&mut self, response: TransportFetchResponse) -> Result<(), CallEnd> {
        let max_bytes = self.shared.max_message_bytes;
        let mut events = SseMessageReader::new(response, max_bytes);
        let mut backoff = StreamBackoff::for_response();
        loop {
            match events.next().await {
                SseMessageOrEnd::Message(message) => {
                    let message = self.shared.parse(message);
                    match self.relation_of(&message) {
                        ReceivedMessageRole::ErrorResponse(end) => return Err(end),
                        ReceivedMessageRole::Response => {
                            // First: when the message has ended the call, the driver aborts this task.
                            self.leave_tail(events).await;
                            self.report(HttpClientDriverEvent::Message(message)).await;
                            return Ok(());
                        }
                        ReceivedMessageRole::Other => {
                            backoff.note_message();
                            self.report(HttpClientDriverEvent::Message(message)).await;
                        }
                    }
                }
                SseMessageOrEnd::TooLong => return Err(too_long(max_bytes)),
                SseMessageOrEnd::End(_) if self.kind.call().is_none() => return Ok(()),
                SseMessageOrEnd::End(why) => {
                    let next = match events.last_event_id() {
                        Some(last) if self.mirrored.is_none() => self.resume(last, events.retry(), &mut backoff).await,
                        _ => None,
                    };
                    let Some(next) = next else { return Err(lost(why)) };
                    events.resume_with(next, max_bytes);
                }
            }
        }
    }

    /// Resumes an event stream that broke off; `None` if the server does not have the rest of the stream, or could not
    /// be reached after all retries.
    async fn resume(
        &self,
        last: &str,
        retry: Option<Duration>,
        backoff: &mut StreamBackoff,
    ) -> Option<TransportFetchResponse> {
        let runtime = &*self.shared.runtime;
        loop {
            sleep(runtime, backoff.pause(retry, runtime)?).await;
            let request = ClientHttpRequest { last_event_id: Some(last), ..ClientHttpRequest::default() };
            match self.shared.send(request).await {
                Ok(response) if response.status().is_success() && is_events(&response) => {
                    backoff.note_opened(runtime.now());
                    return Some(response);
                }
                Ok(response) if response.status() == StatusCode::NOT_FOUND && self.shared.session().id.is_some() => {
                    self.report(HttpClientDriverEvent::SessionLost).await;
                    return None;
                }
                // A retry would be refused too.
                Ok(response) if response.status().is_client_error() => return None,
                Err(why) if why.is_final() => return None,
                _ => {}
            }
        }
    }

    /// Hands the rest of an HTTP response to the driver, which polls a separate future that reads it.
    async fn leave_tail(&self, events: SseMessageReader) {
        let mut tail: RuntimeTask = Box::pin(events.finish());
        let ended = std::future::poll_fn(|cx| Poll::Ready(tail.as_mut().poll(cx).is_ready())).await;
        if !ended {
            let runtime = Arc::clone(&self.shared.runtime);
            let deadline = runtime.now() + TAIL_TIMEOUT;
            let reading = async move { timeout_at(&*runtime, Some(deadline), tail).await.unwrap_or_default() };
            self.report(HttpClientDriverEvent::ResponseTail(Box::pin(reading))).await;
        }
    }

    /// How a message in an HTTP response relates to the message in its POST. A message that cannot be parsed is passed
    /// to the connection, which decides what to do.
    fn relation_of(&self, message: &Envelope) -> ReceivedMessageRole {
        let TransmitKind::Request { id: request_id, .. } = &self.kind else { return ReceivedMessageRole::Other };
        match message.message() {
            Ok(Message::Response { id: Some(id), .. }) if id == *request_id => ReceivedMessageRole::Response,
            Ok(Message::Response { id: None, body: ResultOrError::Error(error) }) => serde_json::from_str(error)
                .map_or(ReceivedMessageRole::Other, |error| {
                    ReceivedMessageRole::ErrorResponse(CallEnd::Refused(error))
                }),
            _ => ReceivedMessageRole::Other,
        }
    }
}

/// How a message in an HTTP response relates to the message in its POST.
enum ReceivedMessageRole {
    /// The response to the request in the POST.
    Response,
    /// A JSON-RPC error without an id: in the HTTP response to a request, it ends that request.
    ErrorResponse(CallEnd),
    /// Another message, such as a notification.
    Other,
}

/// How a call ends whose HTTP request got no response.
fn request_failed(why: ClientHttpRequestError) -> CallEnd {
    match why {
        // The authorizer has tried what it could: a retry changes nothing.
        ClientHttpRequestError::Unauthorized(why) => CallEnd::Unsendable(format!("not authorized: {why}")),
        ClientHttpRequestError::Failed(error) if error.is_invalid_request() => CallEnd::Unsendable(error.to_string()),
        ClientHttpRequestError::Failed(error) => {
            CallEnd::Lost { sent: error.may_be_sent() && !mutant!(BrokenIsUnsent), why: error.to_string() }
        }
    }
}

/// How a call ends whose request was sent and whose outcome is unknown.
pub(super) fn lost(why: String) -> CallEnd {
    CallEnd::Lost { sent: true, why }
}

/// Describes, for the log, why a notification or response that this client sent by POST was lost, or refused by the server.
fn describe_send_failure(end: &CallEnd) -> &str {
    match end {
        CallEnd::Refused(error) => &error.message,
        CallEnd::Lost { why, .. } | CallEnd::Unreadable(why) | CallEnd::Unsendable(why) => why,
        CallEnd::SessionLost => "the server does not know the session any more",
        _ => "cancelled",
    }
}

/// How a call ends whose response is too long. A call whose response is too long does not count as lost, because a
/// retry would get the same response.
fn too_long(max_bytes: usize) -> CallEnd {
    CallEnd::Unreadable(format!("the server sent a message of more than {max_bytes} bytes"))
}

/// The content encoding of an HTTP response, if its body is compressed.
fn content_encoding(response: &TransportFetchResponse) -> Option<String> {
    let encoding = response.headers().get(CONTENT_ENCODING)?.to_str().unwrap_or("unreadable").trim().to_owned();
    (!encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity")).then_some(encoding)
}
