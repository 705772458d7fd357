//! Input requests of a server's handler to the client, as one future type for all revisions.
//!
//! Up to 2025-11-25 an input request is a request from the server to the client. Since 2026-07-28 servers do not send
//! requests: an input request without an answer stays pending, the response to the handler's own request asks the
//! client for the input, and the handler runs again when the client retries the request with the answer.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Duration;

use serde_json::Value;
use steadfast_model::request::{self, Request};
use steadfast_model::{CreateMessageParams, ElicitParams, EmptyParams, InputRequest};

use super::need::{self, RequiredClientCapability};
use crate::error::{Error, Outcome};
use crate::runtime::{HandlerExecution, HandlerInputStatus};
use crate::server::context::{CALL_TIMEOUT, Context};

/// An input request that a handler of this server has sent to the client: completes with the client's answer.
type InputRequestFuture<A> = Pin<Box<dyn Future<Output = Result<A, Error>> + Send>>;

type StartInputRequestFn<A> = Box<dyn FnOnce(InputRequestOptions) -> InputRequestFuture<A> + Send>;

/// An input request of a handler to the client: await it for the client's answer.
///
/// Several input requests may be awaited at the same time, with `join!` for example; a client of 2026-07-28 gets them
/// together.
#[must_use = "nothing is asked until this is awaited"]
pub struct Ask<A> {
    options: InputRequestOptions,
    start: Option<StartInputRequestFn<A>>,
    running: Option<InputRequestFuture<A>>,
}

/// The options of an input request.
pub(super) struct InputRequestOptions {
    key: Option<String>,
    timeout: Duration,
}

impl<A: 'static> Ask<A> {
    pub(super) fn new<F, T>(start: F) -> Self
    where
        F: FnOnce(InputRequestOptions) -> T + Send + 'static,
        T: Future<Output = Result<A, Error>> + Send + 'static,
    {
        let options = InputRequestOptions { key: None, timeout: CALL_TIMEOUT };
        Self { options, start: Some(Box::new(move |options| Box::pin(start(options)))), running: None }
    }

    /// The key of the input request in a result of 2026-07-28, and of its answer in the next round. By default the key
    /// is made of the kind of the input request and of a number. Each input request of a handler needs its own key.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.options.key = Some(key.into());
        self
    }

    /// The timeout of the input request, in revisions in which the server sends requests to the client (up to
    /// 2025-11-25). By default, an input request times out after ten minutes. Since 2026-07-28 the server does not
    /// wait for the client's answer: see [`StateKeys::lifetime`](crate::server::StateKeys::lifetime).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = timeout;
        self
    }
}

impl<A> Future for Ask<A> {
    type Output = Result<A, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        if let Some(start) = self.start.take() {
            let timeout = self.options.timeout;
            let options = std::mem::replace(&mut self.options, InputRequestOptions { key: None, timeout });
            self.running = Some(start(options));
        }
        // If it is polled after completion, which no caller should do, it stays pending instead of panicking.
        let Some(running) = &mut self.running else { return Poll::Pending };
        let answer = task::ready!(running.as_mut().poll(cx));
        self.running = None;
        Poll::Ready(answer)
    }
}

impl<A> fmt::Debug for Ask<A> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Ask").field("key", &self.options.key).finish_non_exhaustive()
    }
}

/// A client's answer to an input request.
pub(super) struct InputAnswer<R: Request> {
    pub(super) result: R::Result,
    /// The key of the answer in `inputResponses`; `None` if the answer is the response to a call.
    key: Option<String>,
}

impl<R: Request> InputAnswer<R> {
    /// The error for an answer that does not match the input request.
    pub(super) fn invalid(&self, complaint: &str) -> Error {
        match &self.key {
            Some(key) => invalid_input_response(key, complaint),
            None => Error::decode(R::METHOD, complaint.to_owned()),
        }
    }
}

fn invalid_input_response(key: &str, complaint: &str) -> Error {
    Error::invalid_params(format!("params.inputResponses has an invalid answer under `{key}`: {complaint}"))
}

/// A kind of request that a server can send to a client, or include in an input-required result.
pub(super) trait InputRequestMethod: Request {
    /// The prefix of the default key of such an input request.
    const KIND: &'static str;
    fn input(params: Self::Params) -> InputRequest;
}

impl InputRequestMethod for request::Elicit {
    const KIND: &'static str = "elicit";
    fn input(params: ElicitParams) -> InputRequest {
        InputRequest::Elicit(params)
    }
}

impl InputRequestMethod for request::CreateMessage {
    const KIND: &'static str = "sample";
    fn input(params: CreateMessageParams) -> InputRequest {
        InputRequest::CreateMessage(params)
    }
}

impl InputRequestMethod for request::ListRoots {
    const KIND: &'static str = "roots";
    fn input(_: EmptyParams) -> InputRequest {
        InputRequest::ListRoots(None)
    }
}

/// Requests input from the client: with a request to the client or, since 2026-07-28, in the response to the handler's
/// own request.
pub(super) async fn request_input<R: InputRequestMethod>(
    ctx: &Context,
    need: RequiredClientCapability,
    params: R::Params,
    options: InputRequestOptions,
) -> Result<InputAnswer<R>, Error> {
    let Some(execution) = ctx.execution() else { return Err(Error::closed(Outcome::NotSent)) };
    let peer = &execution.peer;
    need::check(&[need], peer)?;
    if !peer.revision.is_stateless() {
        let result = ctx.call_with_timeout::<R>(params, options.timeout).await?;
        return Ok(InputAnswer { result, key: None });
    }
    if execution.input_rounds().is_none() {
        return Err(Error::unsupported("only tools, prompts and resources can request input from a 2026-07-28 client"));
    }
    let pending = InputResponseFuture {
        execution: Arc::clone(execution),
        key: options.key,
        kind: R::KIND,
        request: R::input(params),
        waiting: false,
    };
    let (key, value) = pending.await?;
    let result = serde_json::from_value(value).map_err(|error| invalid_input_response(&key, &error.to_string()))?;
    Ok(InputAnswer { result, key: Some(key) })
}

/// An input request of 2026-07-28 that waits for its answer.
struct InputResponseFuture {
    execution: Arc<HandlerExecution>,
    /// The key of the input request: chosen by the handler, or assigned when the future is first polled.
    key: Option<String>,
    kind: &'static str,
    request: InputRequest,
    waiting: bool,
}

impl Future for InputResponseFuture {
    type Output = Result<(String, Value), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        let pending = &mut *self;
        let Some(input_rounds) = pending.execution.input_rounds() else { return Poll::Pending };
        if let (true, Some(key)) = (pending.waiting, &pending.key) {
            return input_rounds.wait(key, cx.waker()).map_or_else(|error| Poll::Ready(Err(error)), |()| Poll::Pending);
        }
        match input_rounds.ask(pending.key.as_deref(), pending.kind, &pending.request, cx.waker()) {
            Ok(HandlerInputStatus::Answered(key, value)) => Poll::Ready(Ok((key, value))),
            Ok(HandlerInputStatus::Waiting(key)) => {
                (pending.key, pending.waiting) = (Some(key), true);
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl Drop for InputResponseFuture {
    fn drop(&mut self) {
        if let (true, Some(input_rounds), Some(key)) = (self.waiting, self.execution.input_rounds(), &self.key) {
            input_rounds.withdraw(key);
        }
    }
}
