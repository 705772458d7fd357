//! A handler that was found for a request, and the only place that launches one.

use std::sync::Arc;
use std::time::Duration;

use steadfast_model::wire;
use steadfast_proto::encode::EncodedResponse;

use super::execution::HandlerExecution;
use super::launch::{HandlerJob, launch};
use crate::error::Error;
use crate::runtime::InboundDispatchResult;

/// Encodes what the handlers of one side return: those of a server, or those of a client. Each side has one type for all of its
/// handlers, so that the task around them is compiled once.
pub(crate) trait HandlerOutputEncoder: Send + 'static {
    /// What the handlers return.
    type Output: Send + 'static;

    /// Encodes the output of a handler as its response. Called where the handler ran.
    fn encode(self, output: Self::Output, execution: &HandlerExecution) -> EncodedResponse;
}

/// A handler with what its task needs: ready to be launched. No user code has run so far.
pub(crate) struct PreparedHandler<E: HandlerOutputEncoder> {
    execution: Arc<HandlerExecution>,
    job: HandlerJob<E::Output>,
    encoder: E,
    grace: Option<Duration>,
    acknowledgement: Option<Box<str>>,
}

impl<E: HandlerOutputEncoder> PreparedHandler<E> {
    pub(crate) fn new(execution: Arc<HandlerExecution>, job: HandlerJob<E::Output>, encoder: E) -> Self {
        Self { execution, job, encoder, grace: None, acknowledgement: None }
    }

    /// The handler is cooperative: when it is to stop it is not dropped, but may go on for this long.
    pub(crate) fn cooperative(mut self, grace: Option<Duration>) -> Self {
        self.grace = grace;
        self
    }

    /// The request opens a stream of notifications, which begins with an acknowledgement with these parameters.
    pub(crate) fn acknowledged(mut self, params: Box<str>) -> Self {
        self.acknowledgement = Some(params);
        self
    }

    /// Launches the handler.
    pub(crate) fn launch(self) -> InboundDispatchResult {
        let Self { execution, job, encoder, grace, acknowledgement } = self;
        launch(Arc::clone(&execution), job, encoder, grace);
        match acknowledgement {
            Some(acknowledged) => InboundDispatchResult::Listening { execution, acknowledged },
            None => InboundDispatchResult::Running(execution),
        }
    }
}

/// The output of a handler that encodes its result itself, for the peer's revision.
pub(crate) type EncodedResult = Result<Vec<u8>, Error>;

/// The response with a result that the handler has encoded, or with the handler's error.
pub(crate) fn response_of(encoded: EncodedResult, execution: &HandlerExecution) -> EncodedResponse {
    match encoded {
        Ok(bytes) => EncodedResponse::result(&execution.id, |out| {
            out.extend_from_slice(&bytes);
            Ok::<_, std::convert::Infallible>(())
        }),
        Err(error) => EncodedResponse::error(&execution.id, &wire::error_for(execution.peer.revision, error.object())),
    }
}
