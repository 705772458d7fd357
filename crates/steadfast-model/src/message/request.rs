//! A type for each request, which connects the method to its parameters and its result.
//!
//! Request types such as [`CallTool`] have no values: each names a request at compile time.
//!
//! ```
//! use steadfast_model::{Method, request::{CallTool, Request}};
//! fn method_of<R: Request>() -> Method { R::METHOD }
//! assert_eq!(method_of::<CallTool>(), Method::CallTool);
//! ```
//!
//! Requests that are not in the specification, of a vendor or of an extension, are types that the program defines. The
//! parameters and results of such requests are any types that serde writes as JSON objects:
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

use super::discover::DiscoverResult;
use super::initialize::{InitializeParams, InitializeResult};
use super::page::{EmptyParams, EmptyResult, PaginatedParams};
use super::subscription::{ListenResult, SubscriptionParams};
use crate::feature::completion::{CompleteParams, CompleteResult};
use crate::feature::elicit::{ElicitParams, ElicitResult};
use crate::feature::logging::SetLevelParams;
use crate::feature::prompt::{GetPromptParams, GetPromptResult, ListPromptsResult};
use crate::feature::resource::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceParams, ReadResourceResult, ResourceUriParams,
};
use crate::feature::roots::ListRootsResult;
use crate::feature::sampling::{CreateMessageParams, CreateMessageResult};
use crate::feature::task::{CancelTaskResult, DetailedTask, ListTasksResult, TaskParams, UpdateTaskParams};
use crate::feature::tool::{CallToolParams, CallToolResult, ListToolsResult};
use crate::json::JsonObject;
use crate::method::Method;

/// A request: its method, its parameters and its result.
pub trait Request: 'static {
    /// The method.
    const METHOD: Method;
    /// The type of the request's parameters, which are a JSON object.
    type Params: Serialize + DeserializeOwned + Send + Sync + 'static;
    /// The type of the request's result, which is a JSON object.
    type Result: Serialize + DeserializeOwned + Send + Sync + 'static;
}

macro_rules! requests {
    ($($(#[$doc:meta])* $name:ident: $params:ty => $result:ty;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}

        impl Request for $name {
            const METHOD: Method = Method::$name;
            type Params = $params;
            type Result = $result;
        }
    )+

        /// The methods of all request types, for the test that compares them with the method table.
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
    ListTools: PaginatedParams => ListToolsResult;
    /// `tools/call`
    CallTool: CallToolParams => CallToolResult;
    /// `prompts/list`
    ListPrompts: PaginatedParams => ListPromptsResult;
    /// `prompts/get`
    GetPrompt: GetPromptParams => GetPromptResult;
    /// `resources/list`
    ListResources: PaginatedParams => ListResourcesResult;
    /// `resources/templates/list`
    ListResourceTemplates: PaginatedParams => ListResourceTemplatesResult;
    /// `resources/read`
    ReadResource: ReadResourceParams => ReadResourceResult;
    /// `resources/subscribe`
    Subscribe: ResourceUriParams => EmptyResult;
    /// `resources/unsubscribe`
    Unsubscribe: ResourceUriParams => EmptyResult;
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
    /// `tasks/result`, whose result is that of the request that became the task.
    GetTaskPayload: TaskParams => JsonObject;
    /// `tasks/list`
    ListTasks: PaginatedParams => ListTasksResult;
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
