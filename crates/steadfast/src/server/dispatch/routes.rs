//! The routes of a server: for each method that runs a handler, how the handler is found, which capabilities the client
//! has to have, and how the handler's result becomes the response.
//!
//! Routing runs no user code: the arguments of a request are decoded and checked where its handler runs.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use steadfast_model::error::excerpt;
use steadfast_model::{CompleteParams, ErrorObject, Reference, VendorMethod, wire};
use steadfast_proto::connection::{PeerInfo, Request};
use steadfast_proto::encode::EncodedResponse;

use super::ServerDispatchContext;
use super::encode::ServerHandlerOutput;
use crate::error::Error;
use crate::runtime::handler::prepared::response_of;
use crate::runtime::{FirstPollHistory, HandlerJob, PreparedHandler};
use crate::server::completion::PreparedCompletion;
use crate::server::input::need;
use crate::server::tasks::{self, ServerTaskRounds, TaskDecision};
use crate::server::{Context, RawArguments, Server};

/// How long a cooperative handler may go on after it was cancelled, while the connection is open.
const GRACE: Duration = Duration::from_secs(30);

/// How a request is answered: by a handler, or with a response that is known already.
pub(crate) type ServerDispatchResult = Result<PreparedHandler<Server>, EncodedResponse>;

/// Routes `tools/call`. A call within an MCP task runs the handler of the tool, and does not begin another task.
pub(super) fn call_tool(
    scope: ServerDispatchContext<'_>,
    request: Request,
    task: Option<&Arc<ServerTaskRounds>>,
) -> ServerDispatchResult {
    let ServerDispatchContext { server, .. } = scope;
    let refuse = |error: &ErrorObject| Err(EncodedResponse::error(&request.id, error));
    let Some(name) = request.params.get_string("name") else {
        return refuse(&ErrorObject::invalid_params("params.name must be the name of a tool"));
    };
    let Some(tool) = server.tool_list().find(&name).cloned() else {
        return refuse(&ErrorObject::invalid_params(format!("unknown tool: `{}`", excerpt(&name))));
    };
    if let Err(error) = tool.check_needs(&request.peer) {
        return refuse(error.object());
    }
    if task.is_none() {
        match tasks::task_decision(&tool, &request.peer) {
            TaskDecision::Inline => {}
            TaskDecision::Task(routes) => return (routes.begin)(scope, &tool, &request),
            TaskDecision::Refused(error) => return refuse(&error),
        }
    }
    let execution = match task {
        Some(rounds) => scope.execution_in_task(&request, rounds),
        None => scope.execution_with_input(&request),
    };
    let ctx = Context::new(Arc::clone(&execution), server);
    let job = tool.start(arguments(request), ctx);
    let grace = tool.is_cooperative().then_some(GRACE);
    let history = server.io_loop_history(tool.history());
    Ok(PreparedHandler::new(execution, job, server.clone()).cooperative(grace).history(history))
}

/// Routes a vendor request, whose method is not in the specification.
pub(super) fn vendor(scope: ServerDispatchContext<'_>, request: Request, method: VendorMethod) -> ServerDispatchResult {
    let ServerDispatchContext { server, .. } = scope;
    let Some(handler) = server.vendor_handlers().request(method).cloned() else {
        return Err(EncodedResponse::error(&request.id, &ErrorObject::method_not_found(method.name())));
    };
    let execution = scope.execution(&request);
    let ctx = Context::new(Arc::clone(&execution), server);
    let (running, common_members) = (Arc::clone(&execution), server.common_members().clone());
    // The handler is called inside of the job, where it may block or panic, and not on this thread.
    let job = HandlerJob::Future(Box::pin(async move {
        let encoded = handler(request.params, ctx, common_members).await;
        ServerHandlerOutput::Response(response_of(encoded, &running))
    }));
    Ok(PreparedHandler::new(execution, job, server.clone()))
}

/// `prompts/get`.
pub(super) fn get_prompt(scope: ServerDispatchContext<'_>, request: Request) -> ServerDispatchResult {
    let ServerDispatchContext { server, .. } = scope;
    let Some(name) = request.params.get_string("name") else {
        return invalid_params(&request, "params.name must be the name of a prompt");
    };
    let Some(prompt) = server.prompt(&name) else {
        return invalid_params(&request, format!("unknown prompt: `{}`", excerpt(&name)));
    };
    if let Err(error) = need::check(prompt.needs(), &request.peer) {
        return Err(EncodedResponse::error(&request.id, error.object()));
    }
    let execution = scope.execution_with_input(&request);
    let ctx = Context::new(Arc::clone(&execution), server);
    let job = prompt.start(arguments(request), ctx);
    let grace = prompt.is_cooperative().then_some(GRACE);
    let history = server.io_loop_history(Some(prompt.history()));
    Ok(PreparedHandler::new(execution, job, server.clone()).cooperative(grace).history(history))
}

/// `resources/read`.
pub(super) fn read_resource(scope: ServerDispatchContext<'_>, request: Request) -> ServerDispatchResult {
    let ServerDispatchContext { server, .. } = scope;
    let refuse =
        |error: &ErrorObject| Err(EncodedResponse::error(&request.id, &wire::error_for(request.peer.revision, error)));
    let Some(uri) = request.params.get_string("uri") else {
        return refuse(&ErrorObject::invalid_params(
            "params.uri is missing or not a string: it must be the URI of the resource to read",
        ));
    };
    let execution = scope.execution_with_input(&request);
    let ctx = Context::new(Arc::clone(&execution), server);
    let FoundResource { job, cooperative, history } = match find_resource(server, &uri, &request.peer, ctx) {
        Ok(found) => found,
        Err(error) => return refuse(error.object()),
    };
    let grace = cooperative.then_some(GRACE);
    let history = server.io_loop_history(Some(&history));
    Ok(PreparedHandler::new(execution, job, server.clone()).cooperative(grace).history(history))
}

/// The handler of the resource or resource template that reads a URI.
struct FoundResource {
    job: HandlerJob<ServerHandlerOutput>,
    cooperative: bool,
    history: Arc<FirstPollHistory>,
}

/// Finds the handler that reads a URI: of the resource with that URI, else of the first resource template that the URI
/// matches.
fn find_resource(server: &Server, uri: &str, client: &PeerInfo, ctx: Context) -> Result<FoundResource, Error> {
    if let Some(resource) = server.resource_list().find(uri) {
        need::check(resource.needs(), client)?;
        let (cooperative, history) = (resource.is_cooperative(), Arc::clone(resource.history()));
        return Ok(FoundResource { job: resource.start(ctx), cooperative, history });
    }
    let templates = server.resource_template_list();
    let found = templates.iter().find_map(|template| Some((template, template.start(uri)?)));
    let (template, start) = found.ok_or_else(|| Error::resource_not_found(uri))?;
    need::check(template.needs(), client)?;
    let (cooperative, history) = (template.is_cooperative(), Arc::clone(template.history()));
    Ok(FoundResource { job: start(ctx), cooperative, history })
}

/// `completion/complete`.
pub(super) fn complete(scope: ServerDispatchContext<'_>, request: &Request) -> ServerDispatchResult {
    let ServerDispatchContext { server, .. } = scope;
    let params = match serde_json::from_str::<CompleteParams>(request.params.text()) {
        Ok(params) => params,
        Err(error) => return invalid_params(request, format!("params of completion/complete: {error}")),
    };
    let completion = match find_completer(server, params) {
        Ok(completion) => completion,
        Err(message) => return invalid_params(request, message),
    };
    let execution = scope.execution(request);
    let ctx = Context::new(Arc::clone(&execution), server);
    let job = HandlerJob::Future(Box::pin(async move { ServerHandlerOutput::Completion(completion.run(ctx).await) }));
    Ok(PreparedHandler::new(execution, job, server.clone()))
}

/// Finds the completer of an argument of a prompt, or of a variable of a resource template.
fn find_completer(server: &Server, params: CompleteParams) -> Result<PreparedCompletion, String> {
    let (argument, context) = (params.argument, params.context.unwrap_or_default());
    match params.reference {
        Reference::Prompt(reference) => {
            let name = excerpt(&reference.name);
            let prompt = server.prompt(&reference.name).ok_or_else(|| format!("unknown prompt: `{name}`"))?;
            if !prompt.takes(&argument.name) {
                return Err(format!("the prompt `{name}` has no argument `{}`", excerpt(&argument.name)));
            }
            Ok(prompt.completers().complete(&argument.name, argument.value, context))
        }
        Reference::Resource(reference) => {
            let uri = excerpt(&reference.uri);
            let template = server.resource_template(&reference.uri);
            let template = template.ok_or_else(|| format!("unknown resource template: `{uri}`"))?;
            if !template.takes(&argument.name) {
                return Err(format!("the template `{uri}` has no variable `{}`", excerpt(&argument.name)));
            }
            Ok(template.completers().complete(&argument.name, argument.value, context))
        }
        _ => Err("params.ref.type must be `ref/prompt` or `ref/resource`".to_owned()),
    }
}

fn arguments(request: Request) -> RawArguments {
    match request.params.range_of("arguments") {
        Some(range) => RawArguments::within(request.params.into_text(), range),
        None => RawArguments::none(),
    }
}

fn invalid_params(request: &Request, message: impl Into<Cow<'static, str>>) -> ServerDispatchResult {
    Err(EncodedResponse::error(&request.id, &ErrorObject::invalid_params(message)))
}
