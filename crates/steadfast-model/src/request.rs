//! The requests: a type for each, which joins its method to its parameters and result.
//!
//! The types hold nothing and are never made: they stand where a request has to be named at compile time.
//!
//! ```
//! use steadfast_model::{Method, request::{CallTool, Request}};
//! fn method_of<R: Request>() -> Method { R::METHOD }
//! assert_eq!(method_of::<CallTool>(), Method::CallTool);
//! ```

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::completion::{CompleteParams, CompleteResult};
use crate::discover::DiscoverResult;
use crate::elicit::{ElicitParams, ElicitResult};
use crate::era::{Encode, ResultShape};
use crate::initialize::{InitializeParams, InitializeResult};
use crate::json::JsonObject;
use crate::logging::SetLevelParams;
use crate::method::Method;
use crate::page::{EmptyParams, EmptyResult, PaginatedParams};
use crate::prompt::{GetPromptParams, GetPromptResult, ListPromptsResult};
use crate::resource::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceParams, ReadResourceResult, ResourceParams,
};
use crate::roots::ListRootsResult;
use crate::sampling::{CreateMessageParams, CreateMessageResult};
use crate::subscription::{ListenResult, SubscriptionParams};
use crate::task::{CancelTaskResult, DetailedTask, ListTasksResult, TaskParams, UpdateTaskParams};
use crate::tool::{CallToolParams, CallToolResult, ListToolsResult, Tool};

/// A request: its method, its parameters and its result.
pub trait Request: 'static {
    /// The method.
    const METHOD: Method;
    /// What it is sent with.
    type Params: Encode + Serialize + DeserializeOwned + Send + Sync + 'static;
    /// What it comes to.
    type Result: ResultShape + Serialize + DeserializeOwned + Send + Sync + 'static;

    /// What these parameters ask about.
    fn subject(_params: &Self::Params) -> Subject<'_> {
        Subject::Unnamed
    }

    /// What this result says of tools.
    fn news(_result: &Self::Result) -> News<'_> {
        News::Other
    }
}

/// What a request asks about, as far as whoever makes it has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject<'a> {
    /// Nothing that has a name.
    Unnamed,
    /// A page of a list: the one behind this cursor, or the first.
    Page(Option<&'a str>),
    /// A tool, which is called.
    Tool {
        /// Its name.
        name: &'a str,
        /// The caller wants it to run as a task of 2025-11-25.
        as_task: bool,
    },
    /// The resource of this URI, which is read.
    Resource {
        /// Where it is.
        uri: &'a str,
        /// Answers to what the server asked came with it, so that more than the URI decides what is read.
        answers: bool,
    },
}

/// What a result says of tools.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum News<'a> {
    /// Nothing.
    Other,
    /// That there are these.
    Tools(&'a [Tool]),
    /// What one came to.
    Called(&'a CallToolResult),
}

/// The page that is asked for.
fn page(params: &PaginatedParams) -> Subject<'_> {
    Subject::Page(params.cursor.as_deref())
}

/// What a tool came to.
fn called(result: &CallToolResult) -> News<'_> {
    News::Called(result)
}

macro_rules! requests {
    ($($(#[$doc:meta])* $name:ident: $params:ty => $result:ty $(, about $subject:expr)? $(, says $news:expr)?;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}

        impl Request for $name {
            const METHOD: Method = Method::$name;
            type Params = $params;
            type Result = $result;

            $(fn subject(params: &$params) -> Subject<'_> {
                let subject: fn(&$params) -> Subject<'_> = $subject;
                subject(params)
            })?

            $(fn news(result: &$result) -> News<'_> {
                let news: fn(&$result) -> News<'_> = $news;
                news(result)
            })?
        }
    )+

        /// Every request here, so that a test can hold it against the table.
        #[cfg(test)]
        const BOUND: &[Method] = &[$(Method::$name),+];
    };
}

requests! {
    /// `initialize`
    Initialize: InitializeParams => InitializeResult;
    /// `ping`
    Ping: EmptyParams => EmptyResult;
    /// `server/discover`
    Discover: EmptyParams => DiscoverResult;
    /// `tools/list`
    ListTools: PaginatedParams => ListToolsResult, about page, says |result| News::Tools(&result.tools);
    /// `tools/call`
    CallTool: CallToolParams => CallToolResult, about |params| Subject::Tool {
        name: &params.name,
        as_task: params.task.is_some(),
    }, says called;
    /// `prompts/list`
    ListPrompts: PaginatedParams => ListPromptsResult, about page;
    /// `prompts/get`
    GetPrompt: GetPromptParams => GetPromptResult;
    /// `resources/list`
    ListResources: PaginatedParams => ListResourcesResult, about page;
    /// `resources/templates/list`
    ListResourceTemplates: PaginatedParams => ListResourceTemplatesResult, about page;
    /// `resources/read`
    ReadResource: ReadResourceParams => ReadResourceResult, about |params| Subject::Resource {
        uri: &params.uri,
        answers: params.input_responses.is_some() || params.request_state.is_some(),
    };
    /// `resources/subscribe`
    Subscribe: ResourceParams => EmptyResult;
    /// `resources/unsubscribe`
    Unsubscribe: ResourceParams => EmptyResult;
    /// `subscriptions/listen`
    Listen: SubscriptionParams => ListenResult;
    /// `completion/complete`
    Complete: CompleteParams => CompleteResult;
    /// `logging/setLevel`
    SetLevel: SetLevelParams => EmptyResult;
    /// `roots/list`
    ListRoots: EmptyParams => ListRootsResult;
    /// `sampling/createMessage`
    CreateMessage: CreateMessageParams => CreateMessageResult;
    /// `elicitation/create`
    Elicit: ElicitParams => ElicitResult;
    /// `tasks/get`
    GetTask: TaskParams => DetailedTask;
    /// `tasks/result`: the result is that of the request that became the task.
    GetTaskPayload: TaskParams => JsonObject;
    /// `tasks/list`
    ListTasks: PaginatedParams => ListTasksResult, about page;
    /// `tasks/cancel`
    CancelTask: TaskParams => CancelTaskResult;
    /// `tasks/update`
    UpdateTask: UpdateTaskParams => EmptyResult;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_of_the_table_has_its_types() {
        let table: Vec<_> = Method::ALL.iter().copied().filter(|method| !method.is_notification()).collect();
        assert_eq!(BOUND, table);
    }
}
