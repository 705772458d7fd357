//! What a client answers when a server asks: roots, sampling, elicitation, on the older wires.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use steadfast_model::era::{self, Decoration};
use steadfast_model::request::Request;
use steadfast_model::{ErrorObject, Method};
use steadfast_proto::connection;
use steadfast_proto::encode::Answer;

use crate::error::Error;
use crate::runtime::{Execution, Job, Mailbox, Runtime, Service, Started, launch};

/// What a handler comes to: the result, written for the peer's revision, or an error.
type Written = Result<Vec<u8>, Error>;

type Handler = Arc<dyn Fn(connection::Request) -> Pin<Box<dyn Future<Output = Written> + Send>> + Send + Sync>;

/// The handlers of a client, by method.
#[derive(Clone, Default)]
pub(super) struct Handlers(BTreeMap<Method, Handler>);

impl Handlers {
    pub(super) fn add<R, F, A>(&mut self, handler: F)
    where
        R: Request,
        F: Fn(R::Params) -> A + Send + Sync + 'static,
        A: Future<Output = Result<R::Result, Error>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let boxed: Handler = Arc::new(move |request| {
            let handler = Arc::clone(&handler);
            Box::pin(async move {
                let params = serde_json::from_str(request.params.text())
                    .map_err(|error| Error::invalid_params(format!("{}: {error}", R::METHOD)))?;
                let result = handler(params).await?;
                let mut out = Vec::new();
                era::write_result(request.peer.revision, &result, &Decoration::none(), &mut out)
                    .map_err(Error::encode)?;
                Ok(out)
            })
        });
        self.0.insert(R::METHOD, boxed);
    }
}

impl Service for Handlers {
    fn start(&mut self, request: connection::Request, mailbox: &Arc<Mailbox>, runtime: &Arc<dyn Runtime>) -> Started {
        let Some(handler) = self.0.get(&request.method) else {
            return Started::Answered(Answer::error(
                &request.id,
                &ErrorObject::method_not_found(request.method.name()),
            ));
        };
        let execution = Execution::new(&request, Arc::clone(mailbox), Arc::clone(runtime));
        let handler = Arc::clone(handler);
        // The handler itself is called where it may block or panic, not here.
        let job = Job::Future(Box::pin(async move { handler(request).await }));
        launch(Arc::clone(&execution), job, encode, None);
        Started::Running(execution)
    }
}

fn encode(written: Written, execution: &Execution) -> Answer {
    match written {
        Ok(bytes) => Answer::result(&execution.id, |out| {
            out.extend_from_slice(&bytes);
            Ok::<_, std::convert::Infallible>(())
        }),
        Err(error) => Answer::error(&execution.id, &era::error_for(execution.peer.revision, error.object())),
    }
}
