//! What a driver asks of a server: which handler runs for a request.
//!
//! Nothing here runs user code or blocks. Lists are answered at once; a tool is found by its name and started; its
//! arguments are read where it runs.

use std::sync::Arc;
use std::time::Duration;

use steadfast_model::era::{self, Decoration};
use steadfast_model::error::excerpt;
use steadfast_model::{Content, ErrorObject, Method, Principal, Revision};
use steadfast_proto::connection::{Hello, Request, ServerHello};
use steadfast_proto::encode::Answer;

use super::input::round;
use super::prompt::requests as prompts;
use super::resource::requests as resources;
use super::subscriptions::{self, Subscriptions};
use super::tasks;
use super::tool::error::Failure;
use super::{Arguments, Catalog, Context, Item, Reply, Run, Server};
use crate::runtime::{DispatchResult, Engine, Exchange, Execution, Job, Mailbox, Runtime, Service, launch};

/// How long a cooperative handler may go on after it was told to stop, while the connection lives.
const GRACE: Duration = Duration::from_secs(30);

/// One connection's view of a server.
pub(crate) struct ServerService {
    server: Server,
    /// What the peer is told of changes; none if it lives for one request.
    subscriptions: Option<Subscriptions>,
    /// What it runs is a task already.
    within_task: bool,
}

impl ServerService {
    pub(crate) fn new(server: Server, mailbox: &Arc<Mailbox>) -> Self {
        let subscriptions = Subscriptions::new(&server, &server.capabilities(), mailbox);
        Self { server, subscriptions: Some(subscriptions), within_task: false }
    }

    /// For one request of 2026-07-28: what changes meanwhile is told to those who listen, and it does not.
    #[cfg(feature = "http")]
    pub(crate) fn for_exchange(server: Server) -> Self {
        Self { server, subscriptions: None, within_task: false }
    }

    /// Runs the handler of a task once.
    pub(super) fn exchange_for_task(
        server: &Server,
        principal: Option<&Principal>,
        runtime: &Arc<dyn Runtime>,
        message: &[u8],
    ) -> Exchange<Self> {
        let mut limits = server.limits().clone();
        // A task has as long as its store keeps it.
        limits.handler_deadline = None;
        let service = Self { server: server.clone(), subscriptions: None, within_task: true };
        let hello = Hello::Server(ServerHello::new(server.info().clone(), server.capabilities()));
        let service = |mailbox: &Arc<Mailbox>| {
            mailbox.identify(principal);
            service
        };
        Exchange::begin(Engine::new(service, hello, limits, Arc::clone(runtime)), message, ())
    }

    /// Lists a catalog, from the beginning or from a cursor. An empty cursor is a cursor, and not one of ours.
    fn list<T: Item>(&self, catalog: &Catalog<T>, request: &Request) -> Answer {
        let cursor = request.params.get("cursor").filter(|cursor| *cursor != "null");
        let text = cursor.map(|_| request.params.get_string("cursor").unwrap_or_default());
        match catalog.list_answer(text.as_deref(), request.peer.revision, self.server.decoration()) {
            Ok(list) => Answer::result(&request.id, |out| {
                out.extend_from_slice(&list);
                Ok::<_, std::convert::Infallible>(())
            }),
            Err(error) => Answer::error(&request.id, &era::error_for(request.peer.revision, error.object())),
        }
    }

    fn subscribe(
        &self,
        request: &Request,
        answer: impl Fn(&Subscriptions, &Server, &Request) -> Answer,
    ) -> DispatchResult {
        DispatchResult::Answered(match &self.subscriptions {
            Some(subscriptions) => answer(subscriptions, &self.server, request),
            None => Answer::error(&request.id, &ErrorObject::method_not_found(request.method.name())),
        })
    }

    fn call_tool(&self, request: Request, mailbox: &Arc<Mailbox>, runtime: &Arc<dyn Runtime>) -> DispatchResult {
        let refuse = |message: String| {
            DispatchResult::Answered(Answer::error(&request.id, &ErrorObject::invalid_params(message)))
        };
        let Some(name) = request.params.get_string("name") else {
            return refuse("params.name must be the name of a tool".to_owned());
        };
        let Some(tool) = self.server.tool_list().find(&name).cloned() else {
            return refuse(format!("there is no tool named `{}`", excerpt(&name)));
        };
        if let Err(error) = tool.check_needs(&request.peer) {
            return DispatchResult::Answered(Answer::error(&request.id, error.object()));
        }
        if !self.within_task {
            match tasks::task_decision(&tool, &request.peer) {
                tasks::TaskDecision::Inline => {}
                tasks::TaskDecision::Task => return tasks::begin(&self.server, &tool, &request, mailbox, runtime),
                tasks::TaskDecision::Refused(error) => {
                    return DispatchResult::Answered(Answer::error(&request.id, &error));
                }
            }
        }
        let execution = round::execution(&self.server, &request, mailbox, runtime);
        let arguments = match request.params.range_of("arguments") {
            Some(range) => Arguments::within(request.params.into_text(), range),
            None => Arguments::none(),
        };
        let job = match tool.start(arguments, Context::new(Arc::clone(&execution), &self.server)) {
            Run::Future(future) => Job::Future(future),
            Run::Blocking(function) => Job::Blocking(function),
        };
        let server = self.server.clone();
        let encode = move |reply: Reply, execution: &Execution| encode_reply(reply, execution, server.decoration());
        launch(Arc::clone(&execution), job, encode, tool.is_cooperative().then_some(GRACE));
        DispatchResult::Running(execution)
    }
}

impl Service for ServerService {
    fn start(&mut self, request: Request, mailbox: &Arc<Mailbox>, runtime: &Arc<dyn Runtime>) -> DispatchResult {
        match request.method {
            Method::CallTool => self.call_tool(request, mailbox, runtime),
            Method::ListTools => DispatchResult::Answered(self.list(&self.server.tool_list(), &request)),
            Method::GetPrompt => prompts::fill(&self.server, GRACE, request, mailbox, runtime),
            Method::ListPrompts => DispatchResult::Answered(self.list(&self.server.prompt_list(), &request)),
            Method::ReadResource => resources::read(&self.server, GRACE, &request, mailbox, runtime),
            Method::ListResources => DispatchResult::Answered(self.list(&self.server.resource_list(), &request)),
            Method::ListResourceTemplates => {
                DispatchResult::Answered(self.list(&self.server.resource_template_list(), &request))
            }
            Method::Subscribe => self.subscribe(&request, Subscriptions::subscribe),
            Method::Unsubscribe => self.subscribe(&request, Subscriptions::unsubscribe),
            Method::Listen => subscriptions::listen(&self.server, &request, mailbox, runtime),
            Method::Complete => prompts::complete(&self.server, &request, mailbox, runtime),
            Method::GetTask | Method::UpdateTask | Method::CancelTask
                if request.peer.revision.has_tasks_extension() =>
            {
                tasks::serve(&self.server, &request, mailbox, runtime)
            }
            other => DispatchResult::Answered(Answer::error(&request.id, &ErrorObject::method_not_found(other.name()))),
        }
    }
}

fn encode_reply(reply: Reply, execution: &Execution, decoration: &Decoration) -> Answer {
    let revision: Revision = execution.peer.revision;
    match reply.or_else(Failure::into_answer) {
        Ok(result) => {
            let size = result.content.iter().map(size_of).sum();
            let buffer = execution.mailbox.buffer(size);
            Answer::result_in(buffer, &execution.id, |out| era::write_result(revision, &result, decoration, out))
        }
        Err(error) => Answer::error(&execution.id, &era::error_for(revision, error.object())),
    }
}

/// About how many bytes a piece of content takes on the wire.
pub(super) fn size_of(content: &Content) -> usize {
    64 + match content {
        Content::Text(text) => text.text.len(),
        Content::Image(image) => image.data.len(),
        Content::Audio(audio) => audio.data.len(),
        _ => 256,
    }
}
