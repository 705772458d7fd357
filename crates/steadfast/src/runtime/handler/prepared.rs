//! A handler that was found for a request and is ready to run. Handlers are launched only in this module.

use std::sync::Arc;
use std::time::Duration;

use steadfast_model::wire;
use steadfast_proto::encode::EncodedResponse;

use super::execution::HandlerExecution;
use super::launch::{HandlerJob, launch};
use super::task::{HandlerStage, HandlerTask};
use crate::error::Error;
use crate::runtime::{FirstPollHistory, InboundDispatchResult};

/// Encodes the return values of all handlers of a server, or of all handlers of a client. A server has one output type
/// for all of its handlers, and so has a client, so that the task around the handlers is compiled once for each.
pub(crate) trait HandlerOutputEncoder: Send + 'static {
    /// The type that all handlers of the server or client return.
    type Output: Send + 'static;

    /// Encodes the output of a handler as its response. Called on the thread on which the handler ran.
    fn encode(self, output: Self::Output, execution: &HandlerExecution) -> EncodedResponse;
}

/// A handler that is ready to be launched, with everything that its task needs. No user code of the handler has run so
/// far.
pub(crate) struct PreparedHandler<E: HandlerOutputEncoder> {
    execution: Arc<HandlerExecution>,
    job: HandlerJob<E::Output>,
    encoder: E,
    grace: Option<Duration>,
    acknowledgement: Option<Box<str>>,
    history: Option<Arc<FirstPollHistory>>,
}

impl<E: HandlerOutputEncoder> PreparedHandler<E> {
    pub(crate) fn new(execution: Arc<HandlerExecution>, job: HandlerJob<E::Output>, encoder: E) -> Self {
        Self { execution, job, encoder, grace: None, acknowledgement: None, history: None }
    }

    /// Makes the handler cooperative, if `grace` is set: when the handler is cancelled it is not dropped at once, but
    /// may go on for this long.
    pub(crate) fn cooperative(mut self, grace: Option<Duration>) -> Self {
        self.grace = grace;
        self
    }

    /// Sets the history of the handler's first polls. Without a history, no first poll runs on the thread of an I/O loop.
    pub(crate) fn history(mut self, history: Option<&Arc<FirstPollHistory>>) -> Self {
        self.history = history.cloned();
        self
    }

    /// Marks the request as one that opens a stream of notifications, which begins with an acknowledgement with these
    /// parameters.
    pub(crate) fn acknowledged(mut self, params: Box<str>) -> Self {
        self.acknowledgement = Some(params);
        self
    }

    /// Launches the handler.
    pub(crate) fn launch(self) -> InboundDispatchResult {
        let Self { execution, job, encoder, grace, acknowledgement, history } = self;
        let stage = HandlerStage::WaitingForBudget(job);
        launch(HandlerTask::new(Arc::clone(&execution), stage, encoder, grace, history));
        match acknowledgement {
            Some(acknowledged) => InboundDispatchResult::Listening { execution, acknowledged },
            None => InboundDispatchResult::Running(execution),
        }
    }
}

/// The output of a handler that encodes its result itself, for the peer's revision.
pub(crate) type EncodedResult = Result<Vec<u8>, Error>;

/// Returns the response with a result that the handler has encoded, or with the handler's error.
pub(crate) fn response_of(encoded: EncodedResult, execution: &HandlerExecution) -> EncodedResponse {
    match encoded {
        Ok(bytes) => EncodedResponse::result(&execution.id, |out| {
            out.extend_from_slice(&bytes);
            Ok::<_, std::convert::Infallible>(())
        }),
        Err(error) => EncodedResponse::error(&execution.id, &wire::error_for(execution.peer.revision, error.object())),
    }
}
