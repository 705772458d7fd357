//! The client's handlers for what a server asks of the client: roots, sampling, elicitation. Up to 2025-11-25 a server
//! sends requests for roots, sampling and elicitation; since 2026-07-28 it sends input requests in the response to a
//! call (see `call::rounds`).

pub(crate) mod capabilities;
pub(crate) mod input;
pub(crate) mod server_request;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use steadfast_model::request::Request;
use steadfast_model::wire::{self, Encode, PerMessageMembers};
use steadfast_model::{ClientCapabilities, ErrorObject, Method, RequestId, Revision, VendorMethod};
use steadfast_proto::connection::{self, PeerInfo};
use steadfast_proto::encode::EncodedResponse;
use steadfast_proto::envelope::OwnedParams;

use super::cache::ClientCache;
use super::dispatch::{ClientOutboundRequestSender, ClientRequestPipeline};
use super::notifications::changes::ClientChangeListeners;
use super::tasks::cancel;
use super::tasks::registry::FollowedTaskRegistry;
use crate::error::Error;
use crate::runtime::connection::notification_handlers::{VendorNotificationHandlers, VendorNotificationQueue};
use crate::runtime::handler::async_handler::AsyncHandlerFn;
use crate::runtime::handler::prepared::{EncodedResult, response_of};
use crate::runtime::{
    DriverMailbox, HandlerExecution, HandlerJob, HandlerOutputEncoder, InboundDispatchResult, InboundDispatcher,
    PeerNotification, PreparedHandler, Runtime,
};
use capabilities::ClientHandlerResultCheck;

/// Encodes the result of a client's handler for a revision, and appends it to the buffer.
type EncodeResultFn<T> = fn(Revision, &T, &mut Vec<u8>) -> Result<(), serde_json::Error>;

/// A running handler.
pub(crate) type ClientHandlerFuture = Pin<Box<dyn Future<Output = EncodedResult> + Send>>;

/// A client's handler as a function of the JSON text of the parameters, and the context.
type ErasedClientHandler = Arc<dyn Fn(&str, ClientContext) -> ClientHandlerFuture + Send + Sync>;

/// What a handler of a client can know about the request that it handles.
#[derive(Clone, Debug)]
pub struct ClientContext {
    revision: Revision,
    request_id: Option<RequestId>,
}

impl ClientContext {
    /// The context of an input request, which is part of the response to a call.
    pub(crate) fn of_input_request(revision: Revision) -> Self {
        Self { revision, request_id: None }
    }

    /// The protocol revision of the connection to the server.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The id of the server's request. `None` since 2026-07-28, where servers send no requests, but ask for input in
    /// the response to a call.
    pub fn request_id(&self) -> Option<&RequestId> {
        self.request_id.as_ref()
    }
}

/// The handlers of a client, and the capabilities that it has declared.
#[derive(Default)]
pub(crate) struct ClientHandlers {
    by_method: BTreeMap<Method, ErasedClientHandler>,
    pub(crate) notifications: VendorNotificationHandlers,
    declared: ClientCapabilities,
}

/// Handles the requests and notifications of the server on one connection.
pub(crate) struct ClientInboundDispatcher {
    pub(crate) handlers: Arc<ClientHandlers>,
    pub(crate) change_listeners: ClientChangeListeners,
    pub(crate) cache: Arc<ClientCache>,
    /// Encodes the requests that this dispatcher sends, which are only `tasks/cancel`.
    pub(crate) dispatch: Arc<ClientRequestPipeline>,
    pub(crate) task_registry: Arc<FollowedTaskRegistry>,
    /// The vendor notifications of the server that wait for their handlers.
    pub(crate) notification_queue: VendorNotificationQueue,
}

impl ClientHandlers {
    /// Adds the client's handler for a request that is in the specification. The handler's result is written without a
    /// `resultType`: since 2026-07-28 it is sent not as a result but as a member of a request.
    pub(crate) fn add<R: Request<Result: Encode>>(
        &mut self,
        handler: impl AsyncHandlerFn<R::Params, ClientContext, Result<R::Result, Error>>,
    ) {
        self.add_encoded::<R>(handler, wire::write);
    }

    /// Adds the client's handler for a vendor request (whose method is not in the specification).
    pub(crate) fn add_vendor<R: Request>(
        &mut self,
        handler: impl AsyncHandlerFn<R::Params, ClientContext, Result<R::Result, Error>>,
    ) {
        self.add_encoded::<R>(handler, |revision, result, out| {
            wire::request_result::<R>(revision, result, &PerMessageMembers::none(), out)
        });
    }

    fn add_encoded<R: Request>(
        &mut self,
        handler: impl AsyncHandlerFn<R::Params, ClientContext, Result<R::Result, Error>>,
        encode: EncodeResultFn<R::Result>,
    ) {
        let handler = Arc::new(handler);
        let boxed: ErasedClientHandler = Arc::new(move |params, ctx| {
            let params =
                serde_json::from_str(params).map_err(|error| Error::invalid_params(format!("{}: {error}", R::METHOD)));
            let handler = Arc::clone(&handler);
            Box::pin(async move {
                let revision = ctx.revision();
                let result = handler(params?, ctx).await?;
                let mut out = Vec::new();
                encode(revision, &result, &mut out).map_err(Error::encode)?;
                Ok(out)
            })
        });
        self.by_method.insert(R::METHOD, boxed);
    }

    /// Sets the declared capabilities of the client: requests of the server that need other capabilities are refused.
    pub(crate) fn with_declared(mut self, declared: ClientCapabilities) -> Arc<Self> {
        self.declared = declared;
        Arc::new(self)
    }

    /// The vendor methods for which the client has a handler.
    pub(crate) fn vendor_methods(&self) -> impl Iterator<Item = VendorMethod> + '_ {
        let requests = self.by_method.keys().filter_map(|method| match method {
            Method::Vendor(method) => Some(*method),
            _ => None,
        });
        requests.chain(self.notifications.methods())
    }

    pub(crate) fn has(&self, method: Method) -> bool {
        self.by_method.contains_key(&method)
    }

    /// Starts the client's handler for a method. Returns `None` if the method has no handler.
    pub(crate) fn handle(&self, method: Method, params: &str, ctx: ClientContext) -> Option<ClientHandlerFuture> {
        let handler = self.by_method.get(&method)?;
        let check = match ClientHandlerResultCheck::for_request(&self.declared, method, params) {
            Ok(check) => check,
            Err(error) => return Some(Box::pin(std::future::ready(Err(error)))),
        };
        let running = handler(params, ctx);
        Some(Box::pin(async move {
            let encoded = running.await?;
            check.check(&encoded)?;
            Ok(encoded)
        }))
    }
}

impl InboundDispatcher for ClientInboundDispatcher {
    fn start(
        &mut self,
        request: connection::Request,
        mailbox: &Arc<DriverMailbox>,
        runtime: &Arc<dyn Runtime>,
    ) -> InboundDispatchResult {
        let not_found = ErrorObject::method_not_found(request.method.name());
        if !self.handlers.has(request.method) {
            return InboundDispatchResult::Answered(EncodedResponse::error(&request.id, &not_found));
        }
        let execution = HandlerExecution::new(&request, Arc::clone(mailbox), Arc::clone(runtime));
        let handlers = Arc::clone(&self.handlers);
        // The handler is called inside of the job, where it may block or panic, and not on this thread.
        let job = HandlerJob::Future(Box::pin(async move {
            let ctx = ClientContext { revision: request.peer.revision, request_id: Some(request.id) };
            match handlers.handle(request.method, request.params.text(), ctx) {
                Some(running) => running.await,
                None => Err(Error::refused(request.method, not_found)),
            }
        }));
        PreparedHandler::new(execution, job, ClientResultEncoder).launch()
    }

    fn on_notification(&mut self, notification: PeerNotification<'_>) {
        match notification.method {
            Method::Vendor(_) => self.notification_queue.push(&self.handlers.notifications, notification),
            method => self.change_listeners.deliver(method, &notification.params),
        }
    }

    fn on_closed(&mut self) {
        self.notification_queue.stop();
    }

    fn on_late_result(
        &mut self,
        result: String,
        peer: &Arc<PeerInfo>,
        mailbox: &Arc<DriverMailbox>,
        runtime: &Arc<dyn Runtime>,
    ) {
        let sender = ClientOutboundRequestSender::new(&self.dispatch, mailbox, peer.revision);
        cancel::cancel_late(result, peer, sender, runtime, &self.task_registry);
    }

    fn observe_notification(&mut self, method: Method, params: &OwnedParams) {
        self.cache.handle_notification(method, params);
    }
}

/// Encodes the return values of a client's handlers.
struct ClientResultEncoder;

impl HandlerOutputEncoder for ClientResultEncoder {
    type Output = EncodedResult;

    fn encode(self, encoded: EncodedResult, execution: &HandlerExecution) -> EncodedResponse {
        response_of(encoded, execution)
    }
}
