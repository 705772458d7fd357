//! The prompts of a server: adding and removing them, filling them in, and completing what a user types for them.

use std::sync::Arc;
use std::time::Duration;

use steadfast_model as model;
use steadfast_model::era;
use steadfast_model::error::excerpt;
use steadfast_model::{CompleteParams, CompleteResult, Content, ErrorObject, ListPromptsResult, Reference};
use steadfast_proto::connection::Request;
use steadfast_proto::encode::Answer;

use super::Prompt;
use crate::runtime::{DispatchResult, Execution, Job, Mailbox, Runtime, launch};
use crate::server::completion::{CompletionFuture, CompletionReply};
use crate::server::dispatch::size_of;
use crate::server::input::{need, round};
use crate::server::tool::error::Failure;
use crate::server::{Arguments, Catalog, Change, Context, Item, PromptReply, Server};

impl Item for Prompt {
    const KIND: u8 = b'p';
    type Definition = model::Prompt;
    type List = ListPromptsResult;

    fn key(&self) -> &str {
        self.name()
    }

    fn definition(&self) -> &model::Prompt {
        self.definition()
    }

    fn page(definitions: Vec<model::Prompt>, next_cursor: Option<String>) -> ListPromptsResult {
        let mut page = ListPromptsResult::new(definitions);
        page.next_cursor = next_cursor;
        page
    }
}

/// Its prompts.
impl Server {
    /// Its prompts now, in the order in which they were added.
    pub fn prompts(&self) -> Vec<Prompt> {
        self.prompt_list().iter().cloned().collect()
    }

    /// The prompt of that name.
    pub fn prompt(&self, name: &str) -> Option<Prompt> {
        self.prompt_list().find(name).cloned()
    }

    /// Adds a prompt, also while clients are connected: they are told that the list has changed. A prompt of the same
    /// name is replaced, and given back.
    ///
    /// Prompts are declared to clients that connect while there are any. For a server that begins without see
    /// [`ServerBuilder::expect_prompts`](crate::server::ServerBuilder::expect_prompts).
    ///
    /// ```
    /// use steadfast::{Prompt, Server};
    ///
    /// let server = Server::builder("growing", "1.0.0").expect_prompts().build();
    /// server.add_prompt(Prompt::new("hello").handler(|| async { "Say hello." }));
    /// assert!(server.prompt("hello").is_some());
    /// assert!(server.remove_prompt("hello"));
    /// assert!(server.prompts().is_empty());
    /// ```
    pub fn add_prompt(&self, prompt: Prompt) -> Option<Prompt> {
        if let Some(problem) = prompt.problem() {
            tracing::error!(prompt = prompt.name(), problem, "a prompt was added that cannot be filled in");
        }
        let replaced = self.inner.prompts.add(prompt);
        self.inner.watchers.tell(&Change::Prompts);
        replaced
    }

    /// Removes a prompt; false if there is none of that name.
    pub fn remove_prompt(&self, name: &str) -> bool {
        let removed = self.inner.prompts.remove(name);
        if removed {
            self.inner.watchers.tell(&Change::Prompts);
        }
        removed
    }

    /// The list of prompts as it is now.
    pub(crate) fn prompt_list(&self) -> Arc<Catalog<Prompt>> {
        self.inner.prompts.now()
    }
}

/// Starts the answer to `prompts/get`.
pub(crate) fn fill(
    server: &Server,
    grace: Duration,
    request: Request,
    mailbox: &Arc<Mailbox>,
    runtime: &Arc<dyn Runtime>,
) -> DispatchResult {
    let Some(name) = request.params.get_string("name") else {
        return refuse(&request, "params.name must be the name of a prompt");
    };
    let Some(prompt) = server.prompt(&name) else {
        return refuse(&request, format!("there is no prompt named `{}`", excerpt(&name)));
    };
    if let Err(error) = need::check(prompt.needs(), &request.peer) {
        return DispatchResult::Answered(Answer::error(&request.id, error.object()));
    }
    let execution = round::execution(server, &request, mailbox, runtime);
    let arguments = match request.params.range_of("arguments") {
        Some(range) => Arguments::within(request.params.into_text(), range),
        None => Arguments::none(),
    };
    let job = prompt.start(arguments, Context::new(Arc::clone(&execution), server));
    let server = server.clone();
    let encode = move |reply: PromptReply, execution: &Execution| {
        let size = |result: &model::GetPromptResult| {
            result.messages.iter().map(|message| message_size(&message.content)).sum()
        };
        encode(reply, size, execution, &server)
    };
    launch(Arc::clone(&execution), job, encode, prompt.is_cooperative().then_some(grace));
    DispatchResult::Running(execution)
}

/// Starts the answer to `completion/complete`.
pub(crate) fn complete(
    server: &Server,
    request: &Request,
    mailbox: &Arc<Mailbox>,
    runtime: &Arc<dyn Runtime>,
) -> DispatchResult {
    let params = match serde_json::from_str::<CompleteParams>(request.params.text()) {
        Ok(params) => params,
        Err(error) => return refuse(request, format!("params of completion/complete: {error}")),
    };
    let begin = match completion(server, params) {
        Ok(begin) => begin,
        Err(message) => return refuse(request, message),
    };
    let execution = Execution::new(request, Arc::clone(mailbox), Arc::clone(runtime));
    let future = begin(Context::new(Arc::clone(&execution), server));
    let server = server.clone();
    let encode = move |reply: CompletionReply, execution: &Execution| {
        let size = |result: &CompleteResult| result.completion.values.iter().map(|value| value.len() + 4).sum();
        encode(reply.map(CompleteResult::new), size, execution, &server)
    };
    launch(Arc::clone(&execution), Job::Future(future), encode, None);
    DispatchResult::Running(execution)
}

/// Finds who completes; no user code runs before the future is polled.
fn completion(
    server: &Server,
    params: CompleteParams,
) -> Result<impl FnOnce(Context) -> CompletionFuture + use<>, String> {
    let (argument, filled) = (params.argument, params.context.unwrap_or_default());
    match params.reference {
        Reference::Prompt(reference) => {
            let name = excerpt(&reference.name);
            let prompt = server.prompt(&reference.name).ok_or_else(|| format!("there is no prompt named `{name}`"))?;
            if !prompt.takes(&argument.name) {
                return Err(format!("the prompt `{name}` has no argument `{}`", excerpt(&argument.name)));
            }
            Ok(prompt.completers().complete(&argument.name, argument.value, filled))
        }
        Reference::Resource(reference) => {
            let uri = excerpt(&reference.uri);
            let template = server.resource_template(&reference.uri);
            let template = template.ok_or_else(|| format!("there is no resource template `{uri}`"))?;
            if !template.takes(&argument.name) {
                return Err(format!("the template `{uri}` has no variable `{}`", excerpt(&argument.name)));
            }
            Ok(template.completers().complete(&argument.name, argument.value, filled))
        }
        _ => Err("params.ref.type must be `ref/prompt` or `ref/resource`".to_owned()),
    }
}

/// The answer with what a handler returned, or how it failed.
pub(crate) fn encode<R: era::ResultShape>(
    reply: Result<R, Failure>,
    size: impl FnOnce(&R) -> usize,
    execution: &Execution,
    server: &Server,
) -> Answer {
    let revision = execution.peer.revision;
    match reply.map_err(Failure::into_error) {
        Ok(result) => {
            let buffer = execution.mailbox.buffer(size(&result));
            let decoration = server.decoration();
            Answer::result_in(buffer, &execution.id, |out| era::write_result(revision, &result, decoration, out))
        }
        Err(error) => Answer::error(&execution.id, &era::error_for(revision, error.object())),
    }
}

fn message_size(content: &Content) -> usize {
    32 + size_of(content)
}

fn refuse(request: &Request, message: impl Into<std::borrow::Cow<'static, str>>) -> DispatchResult {
    DispatchResult::Answered(Answer::error(&request.id, &ErrorObject::invalid_params(message)))
}
