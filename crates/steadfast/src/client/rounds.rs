//! A call in several rounds (2026-07-28): the server asks back, the client's handlers answer, and the call is made again.
//!
//! Each round is a request of its own with an id of its own. The caller notices nothing but the time it takes: what was asked
//! is answered by the handlers that answer servers of the older revisions as well.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use serde_json::Value;
use steadfast_model::{InputRequiredResult, InputResponses, JsonObject, Method, Revision};
use steadfast_proto::Moment;

use super::Client;
use super::handlers::{Handlers, Written};
use crate::error::{Error, Outcome};
use crate::runtime::{Timer, poll_quietly};

/// A server that asks more often than this goes on for ever.
const MOST: u32 = 100;

/// How long to wait before a request is made again that was put off without a question. It doubles up to the ceiling.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// What it takes to make a call again.
pub(super) struct Rounds {
    /// The parameters as they were first written.
    params: Box<str>,
    /// When the call has taken long enough, over all rounds.
    end: Option<Moment>,
    timer: Box<dyn Timer>,
    made: u32,
    put_off: u32,
}

/// Between two rounds.
pub(super) struct Between {
    questions: Vec<Question>,
    state: Option<String>,
    /// Set if there is nothing to answer.
    pause: Option<Box<dyn Timer>>,
}

struct Question {
    key: String,
    method: Method,
    answer: Answer,
}

enum Answer {
    Awaited(Pin<Box<dyn Future<Output = Written> + Send>>),
    Given(Value),
}

impl Rounds {
    /// For a call with these parameters, if its server can ask back.
    pub(super) fn of(
        client: &Client,
        method: Method,
        params: &str,
        total_timeout: Option<Duration>,
    ) -> Option<Box<Self>> {
        let asking = matches!(method, Method::CallTool | Method::GetPrompt | Method::ReadResource);
        if !asking || !client.revision().is_modern() {
            return None;
        }
        let runtime = &client.inner.runtime;
        let end = total_timeout.map(|total| runtime.now() + total);
        Some(Box::new(Self { params: params.into(), end, timer: runtime.timer(), made: 1, put_off: 0 }))
    }

    /// What is left of the time.
    pub(super) fn left(&self, now: Moment) -> Option<Duration> {
        self.end.map(|end| end.since(now))
    }

    /// The server has asked.
    pub(super) fn ask(&mut self, client: &Client, asked: InputRequiredResult) -> Result<Between, Error> {
        if self.made >= MOST {
            return Err(Error::unanswered(format!("the server has asked back {MOST} times, and asks again")));
        }
        self.made += 1;
        let requests = asked.input_requests.unwrap_or_default();
        if requests.is_empty() && asked.request_state.is_none() {
            return Err(Error::unanswered("the server asked back without a question"));
        }
        let handlers = &client.inner.handlers;
        let questions: Result<Vec<_>, _> =
            requests.into_iter().map(|(key, request)| Question::put(handlers, key, &request)).collect();
        let questions = questions?;
        let runtime = &client.inner.runtime;
        self.timer.reset(self.end);
        let pause = questions.is_empty().then(|| {
            let pause = PAUSE.saturating_mul(1 << self.put_off.min(10)).min(LONGEST_PAUSE);
            self.put_off += 1;
            let mut timer = runtime.timer();
            timer.reset(Some(runtime.now() + pause));
            timer
        });
        Ok(Between { questions, state: asked.request_state, pause })
    }

    /// The parameters of the next round, once all is answered.
    pub(super) fn poll(&mut self, between: &mut Between, cx: &mut Context<'_>) -> Poll<Result<Box<str>, Error>> {
        if self.timer.poll(cx).is_ready() {
            // The last round was answered, and the next was not sent.
            return Poll::Ready(Err(Error::timed_out(Outcome::Answered)));
        }
        std::task::ready!(between.poll(cx))?;
        Poll::Ready(self.next_params(between))
    }

    fn next_params(&self, between: &mut Between) -> Result<Box<str>, Error> {
        let mut params: JsonObject = serde_json::from_str(&self.params).map_err(Error::encode)?;
        let mut responses = InputResponses::new();
        for question in between.questions.drain(..) {
            if let Answer::Given(value) = question.answer {
                responses.0.insert(question.key, value);
            }
        }
        if !responses.0.is_empty() {
            params.insert("inputResponses".to_owned(), Value::Object(responses.0));
        }
        if let Some(state) = between.state.take() {
            params.insert("requestState".to_owned(), Value::String(state));
        }
        serde_json::to_string(&params).map(String::into_boxed_str).map_err(Error::encode)
    }
}

impl Between {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let mut waiting = self.pause.as_mut().is_some_and(|pause| pause.poll(cx).is_pending());
        for question in &mut self.questions {
            let Answer::Awaited(answer) = &mut question.answer else { continue };
            let written = match poll_quietly(answer.as_mut(), cx) {
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
        if waiting { Poll::Pending } else { Poll::Ready(Ok(())) }
    }
}

impl Question {
    fn put(handlers: &Handlers, key: String, request: &steadfast_model::InputRequest) -> Result<Self, Error> {
        let method = request.method();
        let asked: JsonObject =
            serde_json::to_value(request).and_then(serde_json::from_value).map_err(Error::encode)?;
        let params = asked.get("params").map_or_else(|| "{}".to_owned(), Value::to_string);
        let Some(answer) = handlers.answer(method, &params, Revision::LATEST) else {
            return Err(Error::unanswered(format!(
                "the server asked for {method} under `{key}`, and there is no handler for it"
            )));
        };
        Ok(Self { key, method, answer: Answer::Awaited(answer) })
    }

    fn read(&self, written: Written) -> Result<Value, Error> {
        let Self { key, method, .. } = self;
        let failed = |error| {
            Error::unanswered(format!("{method}, which the server asked for under `{key}`, failed")).with_source(error)
        };
        serde_json::from_slice(&written.map_err(failed)?).map_err(Error::encode)
    }
}
