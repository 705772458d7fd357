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
use crate::tool::{CallToolParams, CallToolResult, ListToolsResult};

/// A request: its method, its parameters and its result.
pub trait Request: 'static {
    /// The method.
    const METHOD: Method;
    /// What it is sent with.
    type Params: Encode + Serialize + DeserializeOwned + Send + Sync + 'static;
    /// What it comes to.
    type Result: ResultShape + Serialize + DeserializeOwned + Send + Sync + 'static;
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
