//! What a client answers when a server asks: roots, sampling, elicitation. On the older wires that is a request of the
//! server's; since 2026-07-28 it comes with the answer to a call (see `rounds`).

pub(crate) mod capabilities;
pub(crate) mod questions;
pub(crate) mod server_request;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use steadfast_model::era::{self, Decoration};
use steadfast_model::request::Request;
use steadfast_model::{ClientCapabilities, ErrorObject, Method, Revision};
use steadfast_proto::connection::{self, Peer};
use steadfast_proto::encode::Answer;
use steadfast_proto::envelope::OwnedParams;

use super::cache::ClientCache;
use super::notifications::changes::ChangeListeners;
use super::tasks::cancel;
use super::tasks::registry::TaskRegistry;
use crate::error::Error;
use crate::runtime::{DispatchResult, Execution, Job, Mailbox, Runtime, Service, launch};
use capabilities::RequestedInput;

/// What a handler comes to: the result, written for the peer's revision, or an error.
pub(crate) type EncodedResult = Result<Vec<u8>, Error>;

/// An answer in the making.
pub(crate) type AnswerFuture = Pin<Box<dyn Future<Output = EncodedResult> + Send>>;

/// Takes the text of the parameters, and the revision to answer in.
type Handler = Arc<dyn Fn(&str, Revision) -> AnswerFuture + Send + Sync>;

/// The handlers of a client, and what it has declared.
#[derive(Default)]
pub(crate) struct Handlers {
    by_method: BTreeMap<Method, Handler>,
    declared: ClientCapabilities,
}

/// What a client does when a server asks or tells something by itself.
pub(crate) struct ClientService {
    pub(crate) handlers: Arc<Handlers>,
    pub(crate) told: ChangeListeners,
    pub(crate) cache: Arc<ClientCache>,
    /// Of what the client says by itself.
    pub(crate) decoration: Decoration,
    pub(crate) followed: Arc<TaskRegistry>,
}

impl Handlers {
    pub(crate) fn add<R, F, A>(&mut self, handler: F)
    where
        R: Request,
        F: Fn(R::Params) -> A + Send + Sync + 'static,
        A: Future<Output = Result<R::Result, Error>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let boxed: Handler = Arc::new(move |params, revision| {
            let params =
                serde_json::from_str(params).map_err(|error| Error::invalid_params(format!("{}: {error}", R::METHOD)));
            let handler = Arc::clone(&handler);
            Box::pin(async move {
                let result = handler(params?).await?;
                let mut out = Vec::new();
                // Where results say what they are, these are not results but members of a request.
                era::write(revision, &result, &mut out).map_err(Error::encode)?;
                Ok(out)
            })
        });
        self.by_method.insert(R::METHOD, boxed);
    }

    /// Holds servers to what was declared.
    pub(crate) fn declaring(mut self, declared: ClientCapabilities) -> Arc<Self> {
        self.declared = declared;
        Arc::new(self)
    }

    pub(crate) fn has(&self, method: Method) -> bool {
        self.by_method.contains_key(&method)
    }

    /// The answer to a request with these parameters; `None`: there is no handler for it.
    pub(crate) fn answer(&self, method: Method, params: &str, revision: Revision) -> Option<AnswerFuture> {
        let handler = self.by_method.get(&method)?;
        let asked = match RequestedInput::read(&self.declared, method, params) {
            Ok(asked) => asked,
            Err(error) => return Some(Box::pin(std::future::ready(Err(error)))),
        };
        let answering = handler(params, revision);
        Some(Box::pin(async move {
            let written = answering.await?;
            asked.check(&written)?;
            Ok(written)
        }))
    }
}

impl Service for ClientService {
    fn start(
        &mut self,
        request: connection::Request,
        mailbox: &Arc<Mailbox>,
        runtime: &Arc<dyn Runtime>,
    ) -> DispatchResult {
        let not_found = ErrorObject::method_not_found(request.method.name());
        if !self.handlers.has(request.method) {
            return DispatchResult::Answered(Answer::error(&request.id, &not_found));
        }
        let execution = Execution::new(&request, Arc::clone(mailbox), Arc::clone(runtime));
        let handlers = Arc::clone(&self.handlers);
        // The handler itself is called where it may block or panic, not here.
        let job = Job::Future(Box::pin(async move {
            match handlers.answer(request.method, request.params.text(), request.peer.revision) {
                Some(answering) => answering.await,
                None => Err(Error::refused(request.method, not_found)),
            }
        }));
        launch(Arc::clone(&execution), job, encode, None);
        DispatchResult::Running(execution)
    }

    fn on_notification(&mut self, method: Method, params: OwnedParams) {
        self.told.tell(method, &params);
    }

    fn on_late_result(&mut self, result: String, peer: &Arc<Peer>, mailbox: &Arc<Mailbox>, runtime: &Arc<dyn Runtime>) {
        cancel::cancel_late(result, peer, &self.decoration, mailbox, runtime, &self.followed);
    }

    fn observe_notification(&mut self, method: Method, params: &OwnedParams) {
        self.cache.overhear(method, params);
    }
}

fn encode(written: EncodedResult, execution: &Execution) -> Answer {
    match written {
        Ok(bytes) => Answer::result(&execution.id, |out| {
            out.extend_from_slice(&bytes);
            Ok::<_, std::convert::Infallible>(())
        }),
        Err(error) => Answer::error(&execution.id, &era::error_for(execution.peer.revision, error.object())),
    }
}
