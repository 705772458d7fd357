//! The change notifications of a server. Up to 2025-11-25 each client is notified of the changes of all lists, and of
//! the resources that it subscribed to. Since 2026-07-28 each `subscriptions/listen` stream gets the notifications that
//! it asked for; notifications about MCP tasks only go to the client that owns the task.

pub(crate) mod watch;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steadfast_model::wire::{self, Encode, PerMessageMembers};
use steadfast_model::{
    Capability, EmptyParams, EmptyResult, ErrorObject, Method, RequestId, ResourceUriParams, Revision,
    ServerCapabilities, SubscriptionFilter, SubscriptionParams, TASKS_EXTENSION,
};
use steadfast_proto::connection::Request;
use steadfast_proto::encode::EncodedResponse;

use super::dispatch::ServerDispatchContext;
use super::dispatch::encode::ServerHandlerOutput;
use super::dispatch::routes::ServerDispatchResult;
use super::tasks::{self, TaskChangeNotifier, TaskRecord};
use super::{Server, ServerChange, ServerChangeCallback};
use crate::runtime::{DriverMailbox, HandlerExecution, HandlerJob, OutboundNotifications, PreparedHandler};

/// The subscriptions of one client connection, in revisions up to 2025-11-25.
pub(super) struct ServerConnectionSubscriptions {
    uris: Arc<Mutex<BTreeSet<String>>>,
    most: usize,
    /// The callback that queues notifications of changes for the client, as long as the connection exists.
    _watcher: Arc<ServerChangeCallback>,
}

impl ServerConnectionSubscriptions {
    /// Creates the subscriptions of a connection on which the server has declared these capabilities.
    pub(super) fn new(server: &Server, declared: &ServerCapabilities, mailbox: &Arc<DriverMailbox>) -> Self {
        let told = SubscriptionFilter::new()
            .with_tools_list_changed(declared.tools.as_ref().is_some_and(|tools| tools.list_changed == Some(true)))
            .with_prompts_list_changed(
                declared.prompts.as_ref().is_some_and(|prompts| prompts.list_changed == Some(true)),
            )
            .with_resources_list_changed(tells_resources(declared));
        let uris: Arc<Mutex<BTreeSet<String>>> = Arc::default();
        let notices = OutboundNotifications::new(mailbox, None);
        let watcher: Arc<ServerChangeCallback> = {
            let uris = Arc::clone(&uris);
            Arc::new(move |change: &ServerChange<'_>| {
                let Some(method) = matching_method(change, &told, &lock(&uris)) else { return };
                let params = match change {
                    // No parameters of these differ by revision.
                    ServerChange::Updated(uri) => Some(params_text(
                        Revision::V2025_11_25,
                        &ResourceUriParams::new(*uri),
                        &PerMessageMembers::none(),
                    )),
                    _ => None,
                };
                notices.post(method, params);
            })
        };
        server.watch(&watcher);
        Self { uris, most: mailbox.subscribed, _watcher: watcher }
    }

    /// Handles `resources/subscribe`, and returns the response.
    pub(super) fn subscribe(&self, server: &Server, request: &Request) -> EncodedResponse {
        let uri = match uri_of(request) {
            Ok(uri) => uri,
            Err(answer) => return answer,
        };
        if !server.has_resource(&uri) {
            return refuse(request, &ErrorObject::resource_not_found(&uri));
        }
        let mut uris = lock(&self.uris);
        if uris.len() >= self.most && !uris.contains(&uri) {
            let message =
                format!("subscription limit reached: this connection may subscribe to {} resources", self.most);
            let error = ErrorObject::internal(message).with_data(serde_json::json!({ "limit": self.most }));
            return refuse(request, &error);
        }
        uris.insert(uri);
        drop(uris);
        done(server, request)
    }

    /// Handles `resources/unsubscribe`, and returns the response. Unsubscribing twice is not an error.
    pub(super) fn unsubscribe(&self, server: &Server, request: &Request) -> EncodedResponse {
        match uri_of(request) {
            Ok(uri) => {
                lock(&self.uris).remove(&uri);
                done(server, request)
            }
            Err(answer) => answer,
        }
    }
}

/// Handles `subscriptions/listen`: opens a stream of notifications, which exists as long as the request.
pub(super) fn listen(scope: ServerDispatchContext<'_>, request: &Request) -> ServerDispatchResult {
    let ServerDispatchContext { server, mailbox, .. } = scope;
    let asked = match serde_json::from_str::<SubscriptionParams>(request.params.text()) {
        Ok(params) => params.notifications,
        Err(error) => {
            let message = format!("params of subscriptions/listen: {error}");
            return Err(refuse(request, &ErrorObject::invalid_params(message)));
        }
    };
    let most = mailbox.subscribed;
    if asked.resource_subscriptions.len().saturating_add(asked.task_ids.len()) > most {
        let message = format!("too many resources and tasks in one subscription: the limit is {most}");
        return Err(refuse(request, &ErrorObject::invalid_params(message)));
    }
    let declared = server.capabilities();
    let task_ids = if declared.has(Capability::Tasks) { asked.task_ids.clone() } else { Vec::new() };
    if !task_ids.is_empty() && !request.peer.client_capabilities.has_extension(TASKS_EXTENSION) {
        return Err(refuse(request, &tasks::without_tasks("a subscription that names tasks")));
    }
    let stream = ServerSubscriptionStream {
        honoured: supported_filter(asked, &declared),
        revision: request.peer.revision,
        id: request.id.clone(),
    };
    let execution = scope.execution(request);
    if let (false, Some(routes)) = (task_ids.is_empty(), server.task_routes()) {
        return Ok((routes.listen)(server, stream, task_ids, execution));
    }
    let acknowledged = stream.acknowledgement();
    let watcher = stream.watcher(OutboundNotifications::new(mailbox, Some(request.key)), None);
    server.watch(&watcher);
    if steadfast_proto::mutant!(TellTheCancelled) {
        std::mem::forget(Arc::clone(&watcher));
    }
    let lasting = HandlerJob::Future(Box::pin(async move {
        let _watcher = watcher;
        // The stream ends when the client cancels it, or with the connection.
        std::future::pending().await
    }));
    Ok(PreparedHandler::new(execution, lasting, server.clone()).acknowledged(acknowledged))
}

/// Handles a `subscriptions/listen` request that names MCP tasks. The task store knows which of the named tasks belong
/// to the client: until the store has answered, the acknowledgement waits, and notifications queue after it.
pub(super) fn listen_to_tasks(
    server: &Server,
    mut stream: ServerSubscriptionStream,
    task_ids: Vec<String>,
    execution: Arc<HandlerExecution>,
) -> PreparedHandler<Server> {
    let mailbox = &execution.mailbox;
    let notices = OutboundNotifications::before_acknowledgement(mailbox, execution.key);
    let (revision, common_members) = (stream.revision, PerMessageMembers::of_subscription(&stream.id));
    let write = move |record: &TaskRecord| params_text(revision, &record.task, &common_members);
    let listener = Arc::new(TaskChangeNotifier::new(task_ids, mailbox.owner(), Arc::clone(&notices), write));
    let on_task = {
        let listener = Arc::clone(&listener);
        Box::new(move |record: &TaskRecord| listener.notify(record))
    };
    let watcher = stream.watcher(Arc::clone(&notices), Some(on_task));
    server.watch(&watcher);
    let (tasks, id) = (Arc::clone(server.tasks()), execution.id.clone());
    let lasting = HandlerJob::Future(Box::pin(async move {
        let _watcher = watcher;
        let found = match listener.find(&tasks).await {
            Ok(found) => found,
            Err(error) => return ServerHandlerOutput::Response(EncodedResponse::error(&id, &error)),
        };
        stream.honoured.task_ids = found.iter().map(|record| record.id().to_owned()).collect();
        // The state of each task now: a task that ended before the stream began changes no more.
        for record in &found {
            listener.notify(record);
        }
        notices.acknowledge(stream.acknowledgement());
        std::future::pending().await
    }));
    PreparedHandler::new(execution, lasting, server.clone())
}

/// Called with each change of an MCP task.
type ServerTaskChangeCallback = dyn Fn(&TaskRecord) + Send + Sync;

/// A `subscriptions/listen` stream, and the filter of the notifications that it gets.
pub(crate) struct ServerSubscriptionStream {
    honoured: SubscriptionFilter,
    revision: Revision,
    id: RequestId,
}

impl ServerSubscriptionStream {
    fn acknowledgement(&self) -> Box<str> {
        let common_members = PerMessageMembers::of_subscription(&self.id);
        params_text(self.revision, &SubscriptionParams::new(self.honoured.clone()), &common_members)
    }

    /// Creates a callback that queues notifications for the changes that match the filter of the stream.
    fn watcher(
        &self,
        notices: Arc<OutboundNotifications>,
        on_task: Option<Box<ServerTaskChangeCallback>>,
    ) -> Arc<ServerChangeCallback> {
        let (filter, revision) = (self.honoured.clone(), self.revision);
        let mut uris = BTreeSet::new();
        for uri in &filter.resource_subscriptions {
            uris.insert(uri.clone());
        }
        let common_members = PerMessageMembers::of_subscription(&self.id);
        let of_a_list = params_text(revision, &EmptyParams::new(), &common_members);
        Arc::new(move |change: &ServerChange<'_>| {
            if let (ServerChange::Task(record), Some(on_task)) = (change, &on_task) {
                on_task(record);
            }
            let Some(method) = matching_method(change, &filter, &uris) else { return };
            let params = match change {
                ServerChange::Updated(uri) => params_text(revision, &ResourceUriParams::new(*uri), &common_members),
                _ => of_a_list.clone(),
            };
            notices.post(method, Some(params));
        })
    }
}

/// The part of a requested filter that this server supports.
fn supported_filter(asked: SubscriptionFilter, declared: &ServerCapabilities) -> SubscriptionFilter {
    let mut honoured = SubscriptionFilter::new();
    honoured.tools_list_changed = asked.tools_list_changed.filter(|asked| *asked && declared.tools.is_some());
    honoured.prompts_list_changed = asked.prompts_list_changed.filter(|asked| *asked && declared.prompts.is_some());
    if tells_resources(declared) {
        honoured.resources_list_changed = asked.resources_list_changed.filter(|asked| *asked);
        honoured.resource_subscriptions = asked.resource_subscriptions;
    }
    honoured
}

fn tells_resources(declared: &ServerCapabilities) -> bool {
    declared.resources.as_ref().is_some_and(|resources| resources.list_changed == Some(true))
}

/// The method of the notification to send for a change, if the filter of the subscription matches the change.
fn matching_method(change: &ServerChange<'_>, filter: &SubscriptionFilter, uris: &BTreeSet<String>) -> Option<Method> {
    let (method, wanted) = match change {
        ServerChange::Tools => (Method::ToolListChanged, filter.tools()),
        ServerChange::Prompts => (Method::PromptListChanged, filter.prompts()),
        ServerChange::Resources => (Method::ResourceListChanged, filter.resources()),
        ServerChange::Updated(uri) => {
            (Method::ResourceUpdated, uris.contains(*uri) || steadfast_proto::mutant!(IgnoreFilters))
        }
        // `TaskChangeNotifier` posts these: it knows the owners of tasks.
        ServerChange::Task(_) => return None,
    };
    wanted.then_some(method)
}

fn params_text(revision: Revision, params: &impl Encode, common_members: &PerMessageMembers) -> Box<str> {
    // The parameters are types of ours with string keys: encoding cannot fail.
    wire::params_text(revision, params, common_members).unwrap_or_default()
}

fn uri_of(request: &Request) -> Result<String, EncodedResponse> {
    let uri = request.params.get_string("uri").map(std::borrow::Cow::into_owned);
    uri.ok_or_else(|| refuse(request, &ErrorObject::invalid_params("params.uri must be the URI of a resource")))
}

fn done(server: &Server, request: &Request) -> EncodedResponse {
    let revision = request.peer.revision;
    EncodedResponse::result(&request.id, |out| {
        wire::write_result(revision, &EmptyResult::default(), server.common_members(), out)
    })
}

fn refuse(request: &Request, error: &ErrorObject) -> EncodedResponse {
    EncodedResponse::error(&request.id, &wire::error_for(request.peer.revision, error))
}

fn lock(uris: &Mutex<BTreeSet<String>>) -> MutexGuard<'_, BTreeSet<String>> {
    uris.lock().unwrap_or_else(PoisonError::into_inner)
}
