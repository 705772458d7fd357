//! A call in several rounds (2026-07-28): the server asks back, the client's handlers answer, and the call is made again.
//!
//! Each round is a request of its own with an id of its own. The caller notices nothing but the time it takes: what was asked
//! is answered by the handlers that answer servers of the older revisions as well.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use serde_json::Value;
use steadfast_model::{InputRequiredResult, InputResponses, JsonObject, Method};
use steadfast_proto::Moment;

use super::Client;
use super::questions::Questions;
use crate::error::{Error, Outcome};
use crate::runtime::Timer;

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
    looked_up: bool,
}

/// Between two rounds.
pub(super) struct Between {
    questions: Questions,
    state: Option<String>,
    /// Set if there is nothing to answer.
    pause: Option<Box<dyn Timer>>,
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
        Some(Box::new(Self {
            params: params.into(),
            end,
            timer: runtime.timer(),
            made: 1,
            put_off: 0,
            looked_up: false,
        }))
    }

    /// Whether this is not the first round.
    pub(super) fn is_later(&self) -> bool {
        self.made > 1
    }

    /// Whether the tool may be looked up again.
    pub(super) fn may_look_up(&self) -> bool {
        self.made == 1 && !self.looked_up
    }

    pub(super) fn note_look_up(&mut self) {
        self.looked_up = true;
    }

    /// The parameters as they were first written.
    pub(super) fn first_params(&self) -> Box<str> {
        self.params.clone()
    }

    /// When the call has taken long enough.
    pub(super) fn end(&self) -> Option<Moment> {
        self.end
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
        let questions = Questions::put(&client.inner.handlers, requests)?;
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
        if between.pause.as_mut().is_some_and(|pause| pause.poll(cx).is_pending()) {
            return Poll::Pending;
        }
        let responses = std::task::ready!(Pin::new(&mut between.questions).poll(cx))?;
        Poll::Ready(self.next_params(responses, between.state.take()))
    }

    fn next_params(&self, responses: InputResponses, state: Option<String>) -> Result<Box<str>, Error> {
        let mut params: JsonObject = serde_json::from_str(&self.params).map_err(Error::encode)?;
        if !responses.0.is_empty() {
            params.insert("inputResponses".to_owned(), Value::Object(responses.0));
        }
        if let Some(state) = state {
            params.insert("requestState".to_owned(), Value::String(state));
        }
        serde_json::to_string(&params).map(String::into_boxed_str).map_err(Error::encode)
    }
}
