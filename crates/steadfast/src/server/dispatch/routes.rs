//! Routes: for each method that runs a handler, how it is found, what its client has to be able to do, and how its result
//! becomes the response.
//!
//! No user code runs here. Arguments are read and checked where the handler runs.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use steadfast_model::error::excerpt;
use steadfast_model::{CacheHints, CompleteParams, CompleteResult, ErrorObject, Reference, wire};
use steadfast_proto::connection::{Peer, Request};
use steadfast_proto::encode::EncodedResponse;

use super::RouteContext;
use super::encode::encode;
use crate::error::Error;
use crate::runtime::{DispatchResult, Execution, Job, PreparedHandler, Route, Start};
use crate::server::completion::{CompletionFuture, CompletionReply};
use crate::server::input::{need, round};
use crate::server::resource::reply::ResourceReply;
use crate::server::tasks::{self, TaskDecision, TaskRounds};
use crate::server::{Arguments, Context, PromptReply, Run, Server, ToolReply};

/// How long a cooperative handler may go on after it was told to stop, while the connection lives.
const GRACE: Duration = Duration::from_secs(30);

/// The route of a `tools/call`: the handler of the tool, or a task that runs it.
pub(super) enum ToolRoute<Inline, Task> {
    Inline(Inline),
    Task(Task),
}

impl<Inline: Start, Task: Start> Start for ToolRoute<Inline, Task> {
    fn start(self) -> DispatchResult {
        match self {
            Self::Inline(route) => route.start(),
            Self::Task(route) => route.start(),
        }
    }
}

/// `tools/call`. Within a task the handler of the tool runs, and no other task begins.
pub(super) fn call_tool(
    scope: RouteContext<'_>,
    request: Request,
    task: Option<&Arc<TaskRounds>>,
) -> impl Start + use<> {
    let RouteContext { server, .. } = scope;
    let refuse = |error: &ErrorObject| ToolRoute::Inline(Route::Response(EncodedResponse::error(&request.id, error)));
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
            TaskDecision::Task => return ToolRoute::Task(tasks::begin(scope, &tool, &request)),
            TaskDecision::Refused(error) => return refuse(&error),
        }
    }
    let execution = match task {
        Some(rounds) => scope.execution_in_task(&request, rounds),
        None => scope.execution_with_input(&request),
    };
    let ctx = Context::new(Arc::clone(&execution), server);
    let job = match tool.start(arguments(request), ctx) {
        Run::Future(future) => Job::Future(future),
        Run::Blocking(function) => Job::Blocking(function),
    };
    let server = server.clone();
    let encode = move |reply: ToolReply, execution: &Execution| encode(reply, execution, &server);
    let grace = tool.is_cooperative().then_some(GRACE);
    ToolRoute::Inline(Route::Handler(PreparedHandler::new(execution, job, encode).cooperative(grace)))
}

/// `prompts/get`.
pub(super) fn get_prompt(scope: RouteContext<'_>, request: Request) -> impl Start + use<> {
    let RouteContext { server, .. } = scope;
    let Some(name) = request.params.get_string("name") else {
        return invalid_params(&request, "params.name must be the name of a prompt");
    };
    let Some(prompt) = server.prompt(&name) else {
        return invalid_params(&request, format!("unknown prompt: `{}`", excerpt(&name)));
    };
    if let Err(error) = need::check(prompt.needs(), &request.peer) {
        return Route::Response(EncodedResponse::error(&request.id, error.object()));
    }
    let execution = scope.execution_with_input(&request);
    let ctx = Context::new(Arc::clone(&execution), server);
    let job = prompt.start(arguments(request), ctx);
    let server = server.clone();
    let encode = move |reply: PromptReply, execution: &Execution| encode(reply, execution, &server);
    let grace = prompt.is_cooperative().then_some(GRACE);
    Route::Handler(PreparedHandler::new(execution, job, encode).cooperative(grace))
}

/// `resources/read`.
pub(super) fn read_resource(scope: RouteContext<'_>, request: Request) -> impl Start + use<> {
    let RouteContext { server, .. } = scope;
    let refuse = |error: &ErrorObject| {
        Route::Response(EncodedResponse::error(&request.id, &wire::error_for(request.peer.revision, error)))
    };
    let Some(uri) = request.params.get_string("uri") else {
        return refuse(&ErrorObject::invalid_params("params.uri must be the URI of a resource"));
    };
    let execution = scope.execution_with_input(&request);
    let ctx = Context::new(Arc::clone(&execution), server);
    let (job, cooperative) = match find_resource(server, &uri, &request.peer, ctx) {
        Ok(found) => found,
        Err(error) => return refuse(error.object()),
    };
    let resumed = round::is_resumed(&request);
    let server = server.clone();
    let encode = move |reply: ResourceReply, execution: &Execution| {
        // A result that depends on the user's answers is for this client alone, and must not be cached.
        let reply = reply.map(|result| if resumed { result.with_cache(CacheHints::default()) } else { result });
        encode(reply, execution, &server)
    };
    Route::Handler(PreparedHandler::new(execution, job, encode).cooperative(cooperative.then_some(GRACE)))
}

/// Finds what reads a URI: the resource with that URI, else the first template that the URI matches.
fn find_resource(server: &Server, uri: &str, client: &Peer, ctx: Context) -> Result<(Job<ResourceReply>, bool), Error> {
    if let Some(resource) = server.resource_list().find(uri) {
        need::check(resource.needs(), client)?;
        return Ok((resource.start(ctx), resource.is_cooperative()));
    }
    let templates = server.resource_template_list();
    let found = templates.iter().find_map(|template| Some((template, template.start(uri)?)));
    let (template, start) = found.ok_or_else(|| Error::resource_not_found(uri))?;
    need::check(template.needs(), client)?;
    Ok((start(ctx), template.is_cooperative()))
}

/// `completion/complete`.
pub(super) fn complete(scope: RouteContext<'_>, request: &Request) -> impl Start + use<> {
    let RouteContext { server, .. } = scope;
    let params = match serde_json::from_str::<CompleteParams>(request.params.text()) {
        Ok(params) => params,
        Err(error) => return invalid_params(request, format!("params of completion/complete: {error}")),
    };
    let start = match find_completer(server, params) {
        Ok(start) => start,
        Err(message) => return invalid_params(request, message),
    };
    let execution = scope.execution(request);
    let future = start(Context::new(Arc::clone(&execution), server));
    let server = server.clone();
    let encode =
        move |reply: CompletionReply, execution: &Execution| encode(reply.map(CompleteResult::new), execution, &server);
    Route::Handler(PreparedHandler::new(execution, Job::Future(future), encode))
}

/// Finds the completer of an argument of a prompt, or of a variable of a resource template.
fn find_completer(
    server: &Server,
    params: CompleteParams,
) -> Result<impl FnOnce(Context) -> CompletionFuture + use<>, String> {
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

fn arguments(request: Request) -> Arguments {
    match request.params.range_of("arguments") {
        Some(range) => Arguments::within(request.params.into_text(), range),
        None => Arguments::none(),
    }
}

fn invalid_params<T, E>(request: &Request, message: impl Into<Cow<'static, str>>) -> Route<T, E> {
    Route::Response(EncodedResponse::error(&request.id, &ErrorObject::invalid_params(message)))
}
