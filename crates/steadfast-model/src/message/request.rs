//! A type for each request, which connects the method to its parameters and its result.
//!
//! The types have no values: they name a request at compile time.
//!
//! ```
//! use steadfast_model::{Method, request::{CallTool, Request}};
//! fn method_of<R: Request>() -> Method { R::METHOD }
//! assert_eq!(method_of::<CallTool>(), Method::CallTool);
//! ```

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::discover::DiscoverResult;
use super::initialize::{InitializeParams, InitializeResult};
use super::page::{EmptyParams, EmptyResult, PaginatedParams};
use super::subscription::{ListenResult, SubscriptionParams};
use crate::feature::completion::{CompleteParams, CompleteResult};
use crate::feature::elicit::{ElicitParams, ElicitResult};
use crate::feature::logging::SetLevelParams;
use crate::feature::prompt::{GetPromptParams, GetPromptResult, ListPromptsResult};
use crate::feature::resource::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceParams, ReadResourceResult, ResourceParams,
};
use crate::feature::roots::ListRootsResult;
use crate::feature::sampling::{CreateMessageParams, CreateMessageResult};
use crate::feature::task::{CancelTaskResult, DetailedTask, ListTasksResult, TaskParams, UpdateTaskParams};
use crate::feature::tool::{CallToolParams, CallToolResult, ListToolsResult, Tool};
use crate::json::JsonObject;
use crate::method::Method;
use crate::wire::{Encode, ResultShape};

/// A request: its method, its parameters and its result.
pub trait Request: 'static {
    /// The method.
    const METHOD: Method;
    /// Its parameters.
    type Params: Encode + Serialize + DeserializeOwned + Send + Sync + 'static;
    /// Its result.
    type Result: ResultShape + Serialize + DeserializeOwned + Send + Sync + 'static;

    /// The tool, resource or page that these parameters name.
    fn subject(_params: &Self::Params) -> RequestSubject<'_> {
        RequestSubject::Unnamed
    }

    /// What this result contains about tools.
    fn tool_data(_result: &Self::Result) -> ToolData<'_> {
        ToolData::None
    }
}

/// What a request is about, as far as a client has to know to cache and check its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestSubject<'a> {
    /// Nothing that has a name.
    Unnamed,
    /// A page of a list: the one at this cursor, or the first.
    Page(Option<&'a str>),
    /// A call of a tool.
    Tool {
        /// Its name.
        name: &'a str,
        /// The caller wants it to run as a task of 2025-11-25.
        as_task: bool,
    },
    /// A read of the resource with this URI.
    Resource {
        /// Its URI.
        uri: &'a str,
        /// The request carries input responses or a request state, so that the result depends on more than the URI.
        answers: bool,
    },
}

/// What a result contains about tools.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ToolData<'a> {
    /// Nothing.
    None,
    /// A list of tools.
    List(&'a [Tool]),
    /// The result of a tool call.
    CallResult(&'a CallToolResult),
}

/// The page that the parameters name.
fn page(params: &PaginatedParams) -> RequestSubject<'_> {
    RequestSubject::Page(params.cursor.as_deref())
}

/// The result of a tool call.
fn called(result: &CallToolResult) -> ToolData<'_> {
    ToolData::CallResult(result)
}

macro_rules! requests {
    ($($(#[$doc:meta])* $name:ident: $params:ty => $result:ty $(, about $subject:expr)? $(, says $tool_data:expr)?;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}

        impl Request for $name {
            const METHOD: Method = Method::$name;
            type Params = $params;
            type Result = $result;

            $(fn subject(params: &$params) -> RequestSubject<'_> {
                let subject: fn(&$params) -> RequestSubject<'_> = $subject;
                subject(params)
            })?

            $(fn tool_data(result: &$result) -> ToolData<'_> {
                let tool_data: fn(&$result) -> ToolData<'_> = $tool_data;
                tool_data(result)
            })?
        }
    )+

        /// Every request of this module, for the test that compares them with the table.
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
    ListTools: PaginatedParams => ListToolsResult, about page, says |result| ToolData::List(&result.tools);
    /// `tools/call`
    CallTool: CallToolParams => CallToolResult, about |params| RequestSubject::Tool {
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
    ReadResource: ReadResourceParams => ReadResourceResult, about |params| RequestSubject::Resource {
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
