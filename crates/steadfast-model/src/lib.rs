//! The types of the Model Context Protocol, every revision of it, and the table of its methods.
//!
//! The types of `steadfast_model` belong to no protocol revision: one [`Tool`] type reads what a peer of any revision
//! wrote. Three parts of the crate depend on the revision. [`method`] is the table of which messages exist and who
//! may send them: the only place that decides whether a message may be sent or answered. [`wire`] encodes a value for
//! one revision, with the members that this revision has. The methods of [`Revision`] name every other difference,
//! such as batches or priming events.
//!
//! Unknown members of JSON objects are accepted everywhere, and preserved in values that are relayed, such as
//! `_meta`, schemas, content, tools and capabilities. The structs of `steadfast_model` may get more fields, so they
//! are built with `new` and `with_*` calls.
//!
//! Nothing in `steadfast_model` uses connections, clocks or threads, and no input makes the crate panic.
//!
//! ```
//! use steadfast_model::wire::{PerMessageMembers, write_result};
//! use steadfast_model::{CallToolResult, Content, Method, Resource, Revision, SentBy};
//!
//! // Servers send elicitation requests, since 2025-06-18.
//! assert_eq!(Method::Elicit.sender_in(Revision::V2025_03_26), None);
//! assert_eq!(Method::Elicit.sender_in(Revision::V2025_06_18), Some(SentBy::Server));
//!
//! // A resource link is encoded as text for revisions without links.
//! let result = CallToolResult::new(vec![Content::resource_link(Resource::new("file:///notes", "notes"))]);
//! let mut out = Vec::new();
//! write_result(Revision::V2024_11_05, &result, &PerMessageMembers::none(), &mut out).unwrap();
//! assert_eq!(out, br#"{"content":[{"type":"text","text":"[resource notes: file:///notes]"}]}"#);
//! ```
#![forbid(unsafe_code)]

mod auth;
mod capabilities;
mod feature;
mod implementation;
mod json;
mod message;
pub mod method;
mod revision;
mod setters;
mod vendor_method;
pub mod wire;

pub use auth::principal::Principal;
pub use auth::scope::{InvalidScope, Scopes};
pub use capabilities::{
    ClientCapabilities, ElicitationCapability, ListChangedCapability, ResourcesCapability, SamplingCapability,
    ServerCapabilities, TASKS_EXTENSION, TasksCapability,
};
pub use feature::completion::{
    CompleteArgument, CompleteContext, CompleteParams, CompleteResult, Completion, PromptReference, Reference,
    ResourceReference,
};
pub use feature::content::{
    Annotations, AudioContent, Content, EmbeddedResource, ImageContent, Role, TextContent, ToolResultContent,
    ToolUseContent,
};
pub use feature::elicit::{
    ElicitAction, ElicitFormParams, ElicitParams, ElicitResult, ElicitUrlParams, ElicitationCompleteParams,
};
pub use feature::form::{FormField, FormFieldKind, FormOption, FormSchema};
pub use feature::logging::{LoggingLevel, LoggingMessageParams, SetLevelParams};
pub use feature::prompt::{GetPromptParams, GetPromptResult, ListPromptsResult, Prompt, PromptArgument, PromptMessage};
pub use feature::resource::{
    BlobResourceContents, ListResourceTemplatesResult, ListResourcesResult, ReadResourceParams, ReadResourceResult,
    Resource, ResourceContents, ResourceTemplate, ResourceUriParams, TextResourceContents,
};
pub use feature::roots::{ListRootsResult, Root};
pub use feature::sampling::{
    CreateMessageParams, CreateMessageResult, IncludeContext, ModelHint, ModelPreferences, SamplingMessage, ToolChoice,
    ToolChoiceMode,
};
pub use feature::task::{
    CancelTaskResult, CreateTaskResult, DetailedTask, ListTasksResult, RelatedTask, Task, TaskMetadata, TaskParams,
    TaskStatus, UpdateTaskParams,
};
pub use feature::template::{UriTemplate, UriTemplateError};
pub use feature::tool::{
    CallToolParams, CallToolParamsRef, CallToolResult, ListToolsResult, TaskSupport, Tool, ToolAnnotations,
    ToolExecution,
};
pub use implementation::{Icon, IconTheme, Implementation};
pub use json::{ExtraMembers, JsonObject};
pub use message::cache::{CacheHints, CacheScope};
pub use message::cancel::CancelledParams;
pub use message::discover::DiscoverResult;
pub use message::error::{ErrorObject, code};
pub use message::id::RequestId;
pub use message::initialize::{InitializeParams, InitializeResult};
pub use message::input::{DeferrableResult, InputRequest, InputRequests, InputRequiredResult, InputResponses};
pub use message::meta::{Meta, ProgressToken, RequestMeta};
pub use message::notification::Notification;
pub use message::page::{EmptyParams, EmptyResult, PaginatedParams};
pub use message::progress::ProgressParams;
pub use message::request::Request;
pub use message::subscription::{ListenResult, SubscriptionFilter, SubscriptionParams};
pub use message::{error, meta, notification, request};
pub use method::{Capability, Method, MethodKind, SentBy};
pub use revision::Revision;
pub use vendor_method::VendorMethod;

/// Compiles and runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDoctests;
