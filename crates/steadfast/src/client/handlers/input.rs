//! The input requests of a server, answered by the client's handlers. Since 2026-07-28 a server sends input requests in
//! place of the result of a call.

use std::pin::Pin;
use std::task::{Context, Poll};

use serde_json::Value;
use steadfast_model::{InputRequest, InputRequests, InputResponses, JsonObject, Method, Revision};

use super::{ClientContext, ClientHandlerFuture, ClientHandlers, EncodedResult};
use crate::error::Error;
use crate::runtime::poll_catching_panics;

/// The maximum number of input requests in one result of the server: a handler of the client runs for each of them, and
/// may show a dialog to the user.
const MAX_REQUESTS: usize = 64;

/// A future that runs the client's handlers for several input requests at the same time, and completes with their
/// responses. If one handler fails, the future completes with that error, and the other handlers are dropped.
pub(crate) struct InputHandlersFuture(Vec<InputHandlerRun>);

struct InputHandlerRun {
    key: String,
    method: Method,
    state: InputHandlerState,
}

enum InputHandlerState {
    Running(ClientHandlerFuture),
    Done(Value),
}

impl InputHandlersFuture {
    /// Starts the handlers for the input requests; their results are encoded for this revision. If the server sent
    /// more than `MAX_REQUESTS` input requests at once, no handler is started.
    pub(crate) fn start(handlers: &ClientHandlers, requests: InputRequests, revision: Revision) -> Result<Self, Error> {
        let count = requests.len();
        if count > MAX_REQUESTS {
            let message = format!("the server sent {count} input requests at once, the limit is {MAX_REQUESTS}");
            return Err(Error::unanswerable(message));
        }
        let entries =
            requests.into_iter().map(|(key, request)| InputHandlerRun::start(handlers, key, &request, revision));
        entries.collect::<Result<_, _>>().map(Self)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Future for InputHandlersFuture {
    type Output = Result<InputResponses, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut pending = false;
        for entry in &mut self.0 {
            let InputHandlerState::Running(future) = &mut entry.state else { continue };
            let encoded = match poll_catching_panics(future.as_mut(), cx) {
                Ok(Poll::Pending) => {
                    pending = true;
                    continue;
                }
                Ok(Poll::Ready(encoded)) => encoded,
                Err(_) => Err(Error::internal("the handler of the input request panicked")),
            };
            match entry.decode(encoded) {
                Ok(value) => entry.state = InputHandlerState::Done(value),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        if pending {
            return Poll::Pending;
        }
        let mut responses = InputResponses::new();
        for entry in self.0.drain(..) {
            if let InputHandlerState::Done(value) = entry.state {
                responses.as_object_mut().insert(entry.key, value);
            }
        }
        Poll::Ready(Ok(responses))
    }
}

impl InputHandlerRun {
    fn start(
        handlers: &ClientHandlers,
        key: String,
        request: &InputRequest,
        revision: Revision,
    ) -> Result<Self, Error> {
        let method = request.method();
        let request: JsonObject =
            serde_json::to_value(request).and_then(serde_json::from_value).map_err(Error::encode)?;
        let params = request.get("params").map_or_else(|| "{}".to_owned(), Value::to_string);
        let Some(future) = handlers.handle(method, &params, ClientContext::of_input_request(revision)) else {
            let message = format!("the client has no handler for the input request `{key}` ({method})");
            return Err(Error::unanswered(message));
        };
        Ok(Self { key, method, state: InputHandlerState::Running(future) })
    }

    fn decode(&self, encoded: EncodedResult) -> Result<Value, Error> {
        let Self { key, method, .. } = self;
        let failed = |error| {
            Error::unanswered(format!("the handler for the input request `{key}` ({method}) failed")).with_source(error)
        };
        serde_json::from_slice(&encoded.map_err(failed)?).map_err(Error::encode)
    }
}
