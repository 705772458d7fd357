//! The way of every request through a server, from the transport to its handler, whatever its method and transport.
//!
//! ```text
//!   transport              checks headers and the sender (HTTP), finds the messages
//!   core                   checks the envelope, the revision, the id and the limits
//!   ServerDispatcher::route   1. layers: each may refuse the request          (layer.rs)
//!                          2. route: find the handler, check capabilities  (routes.rs)
//!   ServerDispatcher::start   3. launch the handler                           (runtime/handler/prepared.rs)
//!   HandlerTask            runs the handler, encodes the response          (runtime/handler/task.rs, encode.rs)
//! ```
//!
//! The dispatch of a request does not run user code, and does not block. Requests for lists are answered at once;
//! handlers decode their arguments on the thread on which they run.

pub(crate) mod encode;
pub(crate) mod layer;
pub(crate) mod routes;

use std::convert::Infallible;
use std::sync::Arc;

use steadfast_model::wire;
use steadfast_model::{ErrorObject, Method, Principal};
use steadfast_proto::connection::{ClientOrServerDescription, Request, ServerDescription};
use steadfast_proto::encode::EncodedResponse;

use super::input::round;
use super::subscriptions::{self, ServerConnectionSubscriptions};
use super::tasks::{self, ServerTaskRounds};
use super::{Catalog, CatalogItem, Server};
use crate::runtime::connection::notification_handlers::VendorNotificationQueue;
use crate::runtime::{
    ConnectionEngine, DriverMailbox, HandlerExecution, HandlerInputs, InboundDispatchResult, InboundDispatcher,
    PeerNotification, RequestExchange, Runtime,
};
use layer::ServerRequestInfo;
use routes::ServerDispatchResult;

/// Dispatches the requests of one client connection to the handlers of the server.
pub(crate) struct ServerDispatcher {
    server: Server,
    /// The notifications that the client of this connection gets. `None` if the connection exists only for one request.
    subscriptions: Option<ServerConnectionSubscriptions>,
    /// The input rounds of an MCP task, if the connection runs the handler of the task.
    task: Option<Arc<ServerTaskRounds>>,
    /// The vendor notifications of the client that wait for their handlers.
    notification_queue: VendorNotificationQueue,
}

/// What the server needs to route a request to its handler, besides the request itself.
#[derive(Clone, Copy)]
pub(crate) struct ServerDispatchContext<'a> {
    pub(crate) server: &'a Server,
    pub(crate) mailbox: &'a Arc<DriverMailbox>,
    pub(crate) runtime: &'a Arc<dyn Runtime>,
}

impl ServerDispatchContext<'_> {
    /// Creates the execution of a request whose handler requests no input from the client.
    pub(crate) fn execution(&self, request: &Request) -> Arc<HandlerExecution> {
        HandlerExecution::new(request, Arc::clone(self.mailbox), Arc::clone(self.runtime))
    }

    /// Creates the execution of a request whose handler may ask its client for input.
    pub(crate) fn execution_with_input(&self, request: &Request) -> Arc<HandlerExecution> {
        round::execution(self.server, request, self.mailbox, self.runtime)
    }

    /// Creates the execution of a tool call that runs as an MCP task.
    fn execution_in_task(&self, request: &Request, rounds: &Arc<ServerTaskRounds>) -> Arc<HandlerExecution> {
        let rounds = Box::new(HandlerInputs::new(rounds.store(&request.id)));
        HandlerExecution::with_input_rounds(request, Arc::clone(self.mailbox), Arc::clone(self.runtime), Some(rounds))
    }
}

impl ServerDispatcher {
    pub(crate) fn new(server: Server, mailbox: &Arc<DriverMailbox>) -> Self {
        let subscriptions = ServerConnectionSubscriptions::new(&server, &server.capabilities(), mailbox);
        Self { subscriptions: Some(subscriptions), ..Self::for_exchange(server) }
    }

    /// Creates a dispatcher for a single request of 2026-07-28, which has no subscriptions that outlive the request.
    pub(crate) fn for_exchange(server: Server) -> Self {
        Self { server, subscriptions: None, task: None, notification_queue: VendorNotificationQueue::default() }
    }

    /// Starts one run of the handler of an MCP task.
    pub(super) fn exchange_for_task(
        server: &Server,
        principal: Option<&Principal>,
        runtime: &Arc<dyn Runtime>,
        message: &[u8],
        rounds: Arc<ServerTaskRounds>,
    ) -> RequestExchange<Self> {
        let mut limits = server.limits().clone();
        // A task may run until it expires.
        limits.handler_deadline = None;
        let service = Self { task: Some(rounds), ..Self::for_exchange(server.clone()) };
        let hello =
            ClientOrServerDescription::Server(ServerDescription::new(server.info().clone(), server.capabilities()));
        let service = |mailbox: &Arc<DriverMailbox>| {
            mailbox.identify(principal);
            service
        };
        RequestExchange::begin(ConnectionEngine::new(service, hello, limits, Arc::clone(runtime)), message, ())
    }

    /// Decides how a request is answered: asks the layers, then the route of the request's method.
    fn route(
        &self,
        request: Request,
        mailbox: &Arc<DriverMailbox>,
        runtime: &Arc<dyn Runtime>,
    ) -> ServerDispatchResult {
        let info = ServerRequestInfo::new(&request);
        for layer in self.server.layers() {
            if let Err(error) = layer.on_request(&info) {
                let error = wire::error_for(request.peer.revision, &error);
                return Err(EncodedResponse::error(&request.id, &error));
            }
        }
        let server = &self.server;
        let scope = ServerDispatchContext { server, mailbox, runtime };
        match request.method {
            Method::CallTool => routes::call_tool(scope, request, self.task.as_ref()),
            Method::ListTools => Err(self.list(&server.tool_list(), &request)),
            Method::GetPrompt => routes::get_prompt(scope, request),
            Method::ListPrompts => Err(self.list(&server.prompt_list(), &request)),
            Method::ReadResource => routes::read_resource(scope, request),
            Method::ListResources => Err(self.list(&server.resource_list(), &request)),
            Method::ListResourceTemplates => Err(self.list(&server.resource_template_list(), &request)),
            Method::Subscribe => Err(self.subscribe(&request, ServerConnectionSubscriptions::subscribe)),
            Method::Unsubscribe => Err(self.subscribe(&request, ServerConnectionSubscriptions::unsubscribe)),
            Method::Listen => subscriptions::listen(scope, &request),
            Method::Complete => routes::complete(scope, &request),
            Method::GetTask | Method::UpdateTask | Method::CancelTask
                if request.peer.revision.has_tasks_extension() =>
            {
                match server.task_routes() {
                    Some(routes) => (routes.serve)(scope, &request),
                    None => Err(tasks::refuse_unknown_task(&request)),
                }
            }
            Method::Vendor(method) => routes::vendor(scope, request, method),
            _ => Err(method_not_found(&request)),
        }
    }

    /// Responds with a page of a list, from the beginning or from a cursor. An empty cursor is not the same as no
    /// cursor: it is refused, because this server does not issue empty cursors.
    fn list<T: CatalogItem>(&self, catalog: &Catalog<T>, request: &Request) -> EncodedResponse {
        let cursor = request.params.get("cursor").filter(|cursor| *cursor != "null");
        let text = cursor.map(|_| request.params.get_string("cursor").unwrap_or_default());
        match catalog.list_answer(text.as_deref(), request.peer.revision, self.server.common_members()) {
            Ok(list) => EncodedResponse::result(&request.id, |out| {
                out.extend_from_slice(&list);
                Ok::<_, Infallible>(())
            }),
            Err(error) => EncodedResponse::error(&request.id, &wire::error_for(request.peer.revision, error.object())),
        }
    }

    fn subscribe(
        &self,
        request: &Request,
        answer: impl Fn(&ServerConnectionSubscriptions, &Server, &Request) -> EncodedResponse,
    ) -> EncodedResponse {
        match &self.subscriptions {
            Some(subscriptions) => answer(subscriptions, &self.server, request),
            None => method_not_found(request),
        }
    }
}

impl InboundDispatcher for ServerDispatcher {
    fn start(
        &mut self,
        request: Request,
        mailbox: &Arc<DriverMailbox>,
        runtime: &Arc<dyn Runtime>,
    ) -> InboundDispatchResult {
        match self.route(request, mailbox, runtime) {
            Ok(handler) => handler.launch(),
            Err(response) => InboundDispatchResult::Answered(response),
        }
    }

    fn on_closed(&mut self) {
        self.notification_queue.stop();
    }

    fn on_notification(&mut self, notification: PeerNotification<'_>) {
        if let Method::Vendor(_) = notification.method {
            self.notification_queue.push(&self.server.vendor_handlers().notifications, notification);
        }
    }
}

fn method_not_found(request: &Request) -> EncodedResponse {
    EncodedResponse::error(&request.id, &ErrorObject::method_not_found(request.method.name()))
}
