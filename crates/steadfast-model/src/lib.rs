//! The types of the Model Context Protocol, every revision of it, and the table of its methods.
//!
//! The types belong to no revision: a [`Tool`] is a tool whoever it is sent to, and whatever a peer of any revision
//! wrote can be read into it. Two modules know of revisions. [`method`] is the table that says which messages exist
//! where and who may send them: the only version gate there is. [`era`] writes a value for one revision, adding and
//! leaving out what that wire differs in.
//!
//! Members that a type does not know are tolerated everywhere, and kept where a value is relayed: `_meta`, schemas,
//! content, tools, capabilities. The structs may grow, so they are made with `new` and `with_*` calls.
//!
//! Nothing here knows of connections, time or threads, and nothing a peer writes makes it panic.
//!
//! ```
//! use steadfast_model::era::{Decoration, write_result};
//! use steadfast_model::{CallToolResult, Content, Method, Resource, Revision, Sender};
//!
//! // Elicitation came with 2025-06-18, and servers send it.
//! assert_eq!(Method::Elicit.sender_in(Revision::V2025_03_26), None);
//! assert_eq!(Method::Elicit.sender_in(Revision::V2025_06_18), Some(Sender::Server));
//!
//! // A resource link is told in words where links do not exist.
//! let result = CallToolResult::new(vec![Content::resource_link(Resource::new("file:///notes", "notes"))]);
//! let mut out = Vec::new();
//! write_result(Revision::V2024_11_05, &result, &Decoration::none(), &mut out).unwrap();
//! assert_eq!(out, br#"{"content":[{"type":"text","text":"[resource notes: file:///notes]"}]}"#);
//! ```
#![forbid(unsafe_code)]

pub mod cache;
pub mod cancel;
pub mod capabilities;
pub mod completion;
pub mod content;
pub mod discover;
pub mod elicit;
pub mod era;
pub mod error;
pub mod form;
mod id;
pub mod implementation;
pub mod initialize;
pub mod input;
mod json;
pub mod logging;
pub mod meta;
pub mod method;
pub mod notification;
pub mod page;
mod principal;
pub mod progress;
pub mod prompt;
pub mod request;
pub mod resource;
mod revision;
pub mod roots;
pub mod sampling;
mod scope;
mod setters;
pub mod subscription;
pub mod task;
pub mod template;
pub mod tool;

pub use cache::{Cache, CacheScope};
pub use cancel::CancelledParams;
pub use capabilities::{
    ClientCapabilities, ElicitationCapability, ListChangedCapability, ResourcesCapability, SamplingCapability,
    ServerCapabilities, TASKS_EXTENSION, TasksCapability,
};
pub use completion::{
    CompleteArgument, CompleteContext, CompleteParams, CompleteResult, Completion, PromptReference, Reference,
    ResourceReference,
};
pub use content::{
    Annotations, AudioContent, Content, EmbeddedResource, ImageContent, Role, TextContent, ToolResultContent,
    ToolUseContent,
};
pub use discover::DiscoverResult;
pub use elicit::{
    ElicitAction, ElicitFormParams, ElicitParams, ElicitResult, ElicitUrlParams, ElicitationCompleteParams,
};
pub use error::{ErrorObject, code};
pub use form::{FormField, FormKind, FormOption, FormSchema};
pub use id::RequestId;
pub use implementation::{Icon, IconTheme, Implementation};
pub use initialize::{InitializeParams, InitializeResult};
pub use input::{AnyResult, InputRequest, InputRequests, InputRequiredResult, InputResponses};
pub use json::{Extra, JsonObject};
pub use logging::{LoggingLevel, LoggingMessageParams, SetLevelParams};
pub use meta::{Meta, ProgressToken, RequestMeta};
pub use method::{Capability, Carried, Method, Place, Row, Sender};
pub use notification::Notification;
pub use page::{EmptyParams, EmptyResult, PaginatedParams};
pub use principal::Principal;
pub use progress::ProgressParams;
pub use prompt::{GetPromptParams, GetPromptResult, ListPromptsResult, Prompt, PromptArgument, PromptMessage};
pub use request::Request;
pub use resource::{
    BlobResourceContents, ListResourceTemplatesResult, ListResourcesResult, ReadResourceParams, ReadResourceResult,
    Resource, ResourceContents, ResourceParams, ResourceTemplate, TextResourceContents,
};
pub use revision::Revision;
pub use roots::{ListRootsResult, Root};
pub use sampling::{
    CreateMessageParams, CreateMessageResult, IncludeContext, ModelHint, ModelPreferences, SamplingMessage, ToolChoice,
    ToolChoiceMode,
};
pub use scope::{InvalidScope, Scopes};
pub use subscription::{ListenResult, SubscriptionFilter, SubscriptionParams};
pub use task::{
    CancelTaskResult, CreateTaskResult, DetailedTask, ListTasksResult, RelatedTask, Task, TaskMetadata, TaskParams,
    TaskStatus, UpdateTaskParams,
};
pub use template::{TemplateError, UriTemplate};
pub use tool::{
    CallToolParams, CallToolParamsRef, CallToolResult, ListToolsResult, TaskSupport, Tool, ToolAnnotations,
    ToolExecution,
};

/// The example of the README, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
