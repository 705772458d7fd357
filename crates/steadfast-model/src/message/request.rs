//! A type for each request, which connects the method to its parameters and its result.
//!
//! The types have no values: they name a request at compile time.
//!
//! ```
//! use steadfast_model::{Method, request::{CallTool, Request}};
//! fn method_of<R: Request>() -> Method { R::METHOD }
//! assert_eq!(method_of::<CallTool>(), Method::CallTool);
//! ```
//!
//! Requests that are not in the specification, of a vendor or of an extension, are types of the program. Their parameters and
//! results are any types that serde writes as JSON objects:
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use steadfast_model::{Method, request::Request};
//!
//! /// `acme/reindex`
//! enum Reindex {}
//!
//! impl Request for Reindex {
//!     const METHOD: Method = Method::vendor_request("acme/reindex");
//!     type Params = ReindexParams;
//!     type Result = Reindexed;
//! }
//!
//! #[derive(Serialize, Deserialize)]
//! struct ReindexParams { folder: String }
//!
//! #[derive(Serialize, Deserialize)]
//! struct Reindexed { documents: u64 }
//! # assert_eq!(Reindex::METHOD.name(), "acme/reindex");
//! ```

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::cache::CacheHints;
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
use crate::revision::Revision;
use crate::wire::{self, CommonMembers};

/// A request: its method, its parameters and its result.
pub trait Request: 'static {
    /// The method.
    const METHOD: Method;
    /// Its parameters: a JSON object.
    type Params: Serialize + DeserializeOwned + Send + Sync + 'static;
    /// Its result: a JSON object.
    type Result: Serialize + DeserializeOwned + Send + Sync + 'static;

    /// Encodes the parameters for a revision. Those of a vendor are what serde writes, in every revision.
    fn encode_params(
        revision: Revision,
        params: &Self::Params,
        common_members: &CommonMembers,
    ) -> Result<Box<str>, serde_json::Error> {
        wire::params_text(revision, &wire::to_object(params)?, common_members)
    }

    /// Appends the result for a revision, or nothing if it cannot be encoded. Results of a vendor are what serde writes, in
    /// every revision.
    fn encode_result(
        revision: Revision,
        result: &Self::Result,
        common_members: &CommonMembers,
        out: &mut Vec<u8>,
    ) -> Result<(), serde_json::Error> {
        wire::write_result(revision, &wire::to_object(result)?, common_members, out)
    }

    /// How long the result may be cached: `None` if results of this kind are never cached, an inner `None` if it does not say.
    fn caching(_result: &Self::Result) -> Option<Option<CacheHints>> {
        None
    }

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

            fn encode_params(
                revision: Revision,
                params: &$params,
                common_members: &CommonMembers,
            ) -> Result<Box<str>, serde_json::Error> {
                wire::params_text(revision, params, common_members)
            }

            fn encode_result(
                revision: Revision,
                result: &$result,
                common_members: &CommonMembers,
                out: &mut Vec<u8>,
            ) -> Result<(), serde_json::Error> {
                wire::write_result(revision, result, common_members, out)
            }

            fn caching(result: &$result) -> Option<Option<CacheHints>> {
                wire::ResultShape::caching(result)
            }

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
