//! A handler that was found for a request, and the only place that launches one.

use std::sync::Arc;
use std::time::Duration;

use steadfast_model::wire;
use steadfast_proto::encode::EncodedResponse;

use super::execution::Execution;
use super::launch::{Job, launch};
use crate::error::Error;
use crate::runtime::DispatchResult;

/// A handler with what its task needs: ready to be launched. No user code has run so far.
pub(crate) struct PreparedHandler<T, E> {
    execution: Arc<Execution>,
    job: Job<T>,
    encode: E,
    grace: Option<Duration>,
    acknowledgement: Option<Box<str>>,
}

impl<T, E> PreparedHandler<T, E>
where
    T: Send + 'static,
    E: FnOnce(T, &Execution) -> EncodedResponse + Send + 'static,
{
    /// `encode` writes what the handler returns as the response. It is called where the handler ran.
    pub(crate) fn new(execution: Arc<Execution>, job: Job<T>, encode: E) -> Self {
        Self { execution, job, encode, grace: None, acknowledgement: None }
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
}

/// The output of a handler that encodes its result itself, for the peer's revision.
pub(crate) type EncodedResult = Result<Vec<u8>, Error>;

/// The response with such a result.
pub(crate) fn response_of(encoded: EncodedResult, execution: &Execution) -> EncodedResponse {
    match encoded {
        Ok(bytes) => EncodedResponse::result(&execution.id, |out| {
            out.extend_from_slice(&bytes);
            Ok::<_, std::convert::Infallible>(())
        }),
        Err(error) => EncodedResponse::error(&execution.id, &wire::error_for(execution.peer.revision, error.object())),
    }
}

/// How a request is answered.
pub(crate) enum Route<T, E> {
    /// The response is known already.
    Response(EncodedResponse),
    /// A handler makes the response.
    Handler(PreparedHandler<T, E>),
}

/// What a request was routed to, ready to start.
pub(crate) trait Start {
    /// Launches the handler, if there is one.
    fn start(self) -> DispatchResult;
}

impl<T, E> Start for Route<T, E>
where
    T: Send + 'static,
    E: FnOnce(T, &Execution) -> EncodedResponse + Send + 'static,
{
    fn start(self) -> DispatchResult {
        let PreparedHandler { execution, job, encode, grace, acknowledgement } = match self {
            Self::Response(answer) => return DispatchResult::Answered(answer),
            Self::Handler(prepared) => prepared,
        };
        launch(Arc::clone(&execution), job, encode, grace);
        match acknowledgement {
            Some(acknowledged) => DispatchResult::Listening { execution, acknowledged },
            None => DispatchResult::Running(execution),
        }
    }
}

/// A response that is known already, for methods that never have a handler.
impl Start for EncodedResponse {
    fn start(self) -> DispatchResult {
        DispatchResult::Answered(self)
    }
}
