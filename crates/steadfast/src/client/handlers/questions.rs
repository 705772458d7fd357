//! What a server asks in place of a result, put to the client's handlers.

use std::pin::Pin;
use std::task::{Context, Poll};

use serde_json::Value;
use steadfast_model::{InputRequest, InputRequests, InputResponses, JsonObject, Method, Revision};

use super::{AnswerFuture, EncodedResult, Handlers};
use crate::error::Error;
use crate::runtime::poll_catching_panics;

/// So many are answered at once: each has a handler running, and perhaps a user who looks at it.
const MOST: usize = 64;

/// Questions that are being answered, all at the same time: await it for the answers. The first that cannot be answered is the
/// error, and the others are dropped.
pub(crate) struct Questions(Vec<Question>);

struct Question {
    key: String,
    method: Method,
    answer: Answer,
}

enum Answer {
    Awaited(AnswerFuture),
    Given(Value),
}

impl Questions {
    /// Puts them to the handlers. If they are too many, none is put.
    pub(crate) fn put(handlers: &Handlers, requests: InputRequests) -> Result<Self, Error> {
        let asked = requests.len();
        if asked > MOST {
            let message = format!("the server asked {asked} questions at once, and at most {MOST} are answered");
            return Err(Error::unanswerable(message));
        }
        let questions = requests.into_iter().map(|(key, request)| Question::put(handlers, key, &request));
        questions.collect::<Result<_, _>>().map(Self)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Future for Questions {
    type Output = Result<InputResponses, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut waiting = false;
        for question in &mut self.0 {
            let Answer::Awaited(answer) = &mut question.answer else { continue };
            let written = match poll_catching_panics(answer.as_mut(), cx) {
                Ok(Poll::Pending) => {
                    waiting = true;
                    continue;
                }
                Ok(Poll::Ready(written)) => written,
                Err(_) => Err(Error::internal("the handler failed unexpectedly")),
            };
            match question.read(written) {
                Ok(value) => question.answer = Answer::Given(value),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        if waiting {
            return Poll::Pending;
        }
        let mut responses = InputResponses::new();
        for question in self.0.drain(..) {
            if let Answer::Given(value) = question.answer {
                responses.0.insert(question.key, value);
            }
        }
        Poll::Ready(Ok(responses))
    }
}

impl Question {
    fn put(handlers: &Handlers, key: String, request: &InputRequest) -> Result<Self, Error> {
        let method = request.method();
        let asked: JsonObject =
            serde_json::to_value(request).and_then(serde_json::from_value).map_err(Error::encode)?;
        let params = asked.get("params").map_or_else(|| "{}".to_owned(), Value::to_string);
        let Some(answer) = handlers.answer(method, &params, Revision::LATEST) else {
            let message = format!("the server asked for {method} under `{key}`, and there is no handler for it");
            return Err(Error::unanswered(message));
        };
        Ok(Self { key, method, answer: Answer::Awaited(answer) })
    }

    fn read(&self, written: EncodedResult) -> Result<Value, Error> {
        let Self { key, method, .. } = self;
        let failed = |error| {
            Error::unanswered(format!("{method}, which the server asked for under `{key}`, failed")).with_source(error)
        };
        serde_json::from_slice(&written.map_err(failed)?).map_err(Error::encode)
    }
}
