//! How a server handles requests about MCP tasks: `tools/call` that starts a task, and `tasks/get`, `tasks/update`
//! and `tasks/cancel`.

use std::sync::Arc;

use steadfast_model::wire;
use steadfast_model::{
    CallToolResult, ClientCapabilities, CreateTaskResult, DetailedTask, EmptyResult, ErrorObject, InputResponses,
    JsonObject, Method, TASKS_EXTENSION, Task,
};
use steadfast_proto::connection::{PeerInfo, Request};
use steadfast_proto::encode::EncodedResponse;

use tokio::sync::oneshot;

use super::rounds::write_state;
use super::run::ServerTaskRunner;
use super::{NewTask, ServerTaskRequestRoutes, TaskMode, task_not_found};
use crate::error::Error;
use crate::runtime::threads::workers::poll_as_handler;
use crate::runtime::{HandlerExecution, HandlerJob, PreparedHandler};
use crate::server::dispatch::ServerDispatchContext;
use crate::server::dispatch::encode::ServerHandlerOutput;
use crate::server::dispatch::routes::ServerDispatchResult;
use crate::server::{Context, Server, ServerTool};

/// What the server decided for one call of a tool: to run it as an MCP task, as an ordinary call, or to refuse it.
pub(crate) enum TaskDecision {
    /// The tool call runs as an ordinary call, not as an MCP task.
    Inline,
    /// The tool call becomes an MCP task.
    Task(&'static ServerTaskRequestRoutes),
    /// The call is refused: the tool runs only as an MCP task, and the client does not support tasks.
    Refused(ErrorObject),
}

/// Decides whether a call of this tool by this client runs as an MCP task.
pub(crate) fn task_decision(tool: &ServerTool, peer: &PeerInfo) -> TaskDecision {
    let knows_tasks = peer.revision.has_tasks_extension() && peer.client_capabilities.has_extension(TASKS_EXTENSION);
    match tool.tasks() {
        Some((TaskMode::Optional | TaskMode::Required, routes)) if knows_tasks => TaskDecision::Task(routes),
        Some((TaskMode::Required, _)) => TaskDecision::Refused(without_tasks(&format!("the tool `{}`", tool.name()))),
        _ => TaskDecision::Inline,
    }
}

/// Creates an MCP task for a tool call. The response to the call is sent when the task is stored.
pub(super) fn begin(scope: ServerDispatchContext<'_>, tool: &ServerTool, request: &Request) -> ServerDispatchResult {
    let ServerDispatchContext { server, mailbox, runtime } = scope;
    let principal = mailbox.principal();
    let new = match read_call(tool, mailbox.owner(), request) {
        Ok(new) => new,
        Err(error) => return Err(EncodedResponse::error(&request.id, &error)),
    };
    let first = tool.asks_first().cloned();
    let execution = scope.execution_with_input(request);
    let ctx = Context::new(Arc::clone(&execution), server);
    let call = Arc::clone(&execution);
    let runner = ServerTaskRunner { server: server.clone(), principal, runtime: Arc::clone(runtime) };
    let work = async move {
        let mut new = new;
        // What came with the call goes to the task as it was opened here: the task is not the client's to send again.
        if let Some(rounds) = ctx.execution().and_then(|execution| execution.input_rounds()) {
            let (state, answers) = rounds.opened();
            new.state = write_state(&state)?;
            new.answers = answers.into();
        }
        if let Some(first) = first
            && let Err(error) = first.ask(ctx).await
        {
            return error.into_result().map(ServerTaskReply::NotBegun).map_err(Error::into_object);
        }
        let runtime = Arc::clone(&runner.runtime);
        let (tell, told) = oneshot::channel();
        // In a task of its own: if the client hangs up now, a task that is stored must not be left without a runner.
        runtime.spawn(Box::pin(make(runner, new, tell, call)));
        let task = told.await.unwrap_or_else(|_| Err(ErrorObject::internal("the task was not created")))?;
        Ok(ServerTaskReply::Created(CreateTaskResult::new(task)))
    };
    Ok(handler(server, execution, work))
}

/// Creates an MCP task, sends it to its client as the response to `call`, and runs it. If the call is cancelled, or the client is
/// gone, before the task could be sent, the task is cancelled, because no client knows its id.
async fn make(
    runner: ServerTaskRunner,
    new: NewTask,
    tell: oneshot::Sender<Result<Task, ErrorObject>>,
    call: Arc<HandlerExecution>,
) {
    let tasks = Arc::clone(runner.server.tasks());
    let made = tasks.create(new).await.map(|record| (record.id().to_owned(), record.owner, record.task.task));
    let (id, owner, task) = match made {
        Ok(made) => made,
        // If the client is gone, there is no task to cancel.
        Err(error) => return drop(tell.send(Err(error))),
    };
    if tell.send(Ok(task)).is_err() {
        // A failure of the store is in the log already.
        return drop(tasks.cancel(&id, owner.as_deref()).await);
    }
    let runtime = Arc::clone(&runner.runtime);
    let unsent = id.clone();
    runtime.spawn(Box::pin(async move {
        let stopped = call.closed().await;
        drop(call);
        if stopped.is_some() {
            drop(tasks.cancel(&unsent, owner.as_deref()).await);
        }
    }));
    // The store is code of the program: it may block, and it may panic.
    poll_as_handler(&*runner.runtime, runner.run(&id)).await;
}

/// The route of `tasks/get`, `tasks/update` and `tasks/cancel`.
pub(super) fn serve(scope: ServerDispatchContext<'_>, request: &Request) -> ServerDispatchResult {
    let ServerDispatchContext { server, mailbox, .. } = scope;
    let (id, answers) = read_params(request).map_err(|error| EncodedResponse::error(&request.id, &error))?;
    let (tasks, method) = (Arc::clone(server.tasks()), request.method);
    let owner = mailbox.owner();
    let execution = scope.execution(request);
    let work = async move {
        let owner = owner.as_deref();
        match method {
            Method::GetTask => Ok(ServerTaskReply::Shown(Box::new(tasks.find(&id, owner).await?.task))),
            Method::UpdateTask => tasks.answer(&id, owner, answers).await.map(|()| ServerTaskReply::Done),
            Method::CancelTask => tasks.cancel(&id, owner).await.map(|()| ServerTaskReply::Done),
            _ => Err(ErrorObject::method_not_found(method.name())),
        }
    };
    Ok(handler(server, execution, work))
}

/// The response to `tasks/get`, `tasks/update` and `tasks/cancel` of a server that has no MCP tasks.
pub(crate) fn refuse_unknown_task(request: &Request) -> EncodedResponse {
    let error = read_params(request).map_or_else(|error| error, |(id, _)| task_not_found(&id));
    EncodedResponse::error(&request.id, &error)
}

/// Reads the id of the MCP task, and the answers to its input requests, from the parameters of a request.
fn read_params(request: &Request) -> Result<(String, InputResponses), ErrorObject> {
    let id = request.params.get_string("taskId").map(std::borrow::Cow::into_owned);
    let id = id.ok_or_else(|| ErrorObject::invalid_params("params.taskId must be the id of a task"))?;
    match read_answers(request)? {
        None if request.method == Method::UpdateTask => {
            Err(ErrorObject::invalid_params("params.inputResponses must be an object"))
        }
        answers => Ok((id, answers.unwrap_or_default())),
    }
}

enum ServerTaskReply {
    /// The server created no MCP task, because the client did not give the input that the tool requests before a task
    /// starts.
    NotBegun(CallToolResult),
    Created(CreateTaskResult),
    Shown(Box<DetailedTask>),
    Done,
}

/// The result of a request about MCP tasks, before it is encoded.
type TaskReplyResult = Result<ServerTaskReply, ErrorObject>;

/// Creates the handler of a request about MCP tasks, which runs `work`.
fn handler(
    server: &Server,
    execution: Arc<HandlerExecution>,
    work: impl Future<Output = TaskReplyResult> + Send + 'static,
) -> PreparedHandler<Server> {
    let (server, around) = (server.clone(), Arc::clone(&execution));
    let encoder = server.clone();
    let job =
        HandlerJob::Future(Box::pin(
            async move { ServerHandlerOutput::Response(encode(work.await, &around, &server)) },
        ));
    PreparedHandler::new(execution, job, encoder)
}

fn encode(reply: TaskReplyResult, execution: &HandlerExecution, server: &Server) -> EncodedResponse {
    match reply {
        Ok(ServerTaskReply::NotBegun(result)) => result_answer(&result, execution, server),
        Ok(ServerTaskReply::Created(created)) => result_answer(&created, execution, server),
        Ok(ServerTaskReply::Shown(shown)) => result_answer(&*shown, execution, server),
        Ok(ServerTaskReply::Done) => result_answer(&EmptyResult::default(), execution, server),
        Err(error) => EncodedResponse::error(&execution.id, &error),
    }
}

fn result_answer(result: &impl wire::RequestResult, execution: &HandlerExecution, server: &Server) -> EncodedResponse {
    let (revision, common_members) = (execution.peer.revision, server.common_members());
    EncodedResponse::result(&execution.id, |out| wire::write_result(revision, result, common_members, out))
}

fn read_call(tool: &ServerTool, owner: Option<String>, request: &Request) -> Result<NewTask, ErrorObject> {
    let bad = |member: &str| ErrorObject::invalid_params(format!("params.{member} must be an object"));
    let arguments = request.params.get("arguments").map(serde_json::from_str::<JsonObject>);
    let mut client = request.peer.client_capabilities.clone();
    if let Some(extensions) = &mut client.extensions {
        extensions.shift_remove(TASKS_EXTENSION);
    }
    Ok(NewTask {
        tool: tool.name().to_owned(),
        arguments: arguments.transpose().map_err(|_| bad("arguments"))?,
        revision: request.peer.revision,
        client_info: request.peer.info.clone(),
        client,
        owner,
        answers: InputResponses::default(),
        state: None,
    })
}

fn read_answers(request: &Request) -> Result<Option<InputResponses>, ErrorObject> {
    let answers = request.params.get("inputResponses").map(serde_json::from_str::<JsonObject>).transpose();
    let answers = answers.map_err(|_| ErrorObject::invalid_params("params.inputResponses must be an object"))?;
    Ok(answers.map(InputResponses::from))
}

pub(crate) fn without_tasks(what: &str) -> ErrorObject {
    let required = ClientCapabilities::new().with_extension(TASKS_EXTENSION, JsonObject::new());
    ErrorObject::missing_capability(format!("{what} needs a client that supports tasks"), &required)
}
