//! The types of the Model Context Protocol.
#![forbid(unsafe_code)]

pub mod cache;
pub mod cancel;
pub mod capabilities;
pub mod content;
pub mod discover;
pub mod era;
pub mod error;
mod id;
pub mod implementation;
pub mod initialize;
pub mod input;
mod json;
pub mod logging;
pub mod meta;
pub mod method;
pub mod page;
pub mod progress;
pub mod resource;
mod revision;
mod setters;
pub mod task;
pub mod tool;

pub use cache::{Cache, CacheScope};
pub use cancel::CancelledParams;
pub use capabilities::{
    ClientCapabilities, ElicitationCapability, ListChangedCapability, ResourcesCapability, SamplingCapability,
    ServerCapabilities, TASKS_EXTENSION, TasksCapability,
};
pub use content::{
    Annotations, AudioContent, Content, EmbeddedResource, ImageContent, Role, TextContent, ToolResultContent,
    ToolUseContent,
};
pub use discover::DiscoverResult;
pub use error::{ErrorObject, code};
pub use id::RequestId;
pub use implementation::{Icon, IconTheme, Implementation};
pub use initialize::{InitializeParams, InitializeResult};
pub use input::InputResponses;
pub use json::{Extra, JsonObject};
pub use logging::{LoggingLevel, LoggingMessageParams, SetLevelParams};
pub use meta::{Meta, ProgressToken, RequestMeta};
pub use method::{Capability, Carried, Method, Place, Row, Sender};
pub use page::{EmptyParams, EmptyResult, PaginatedParams};
pub use progress::ProgressParams;
pub use resource::{
    BlobResourceContents, ListResourceTemplatesResult, ListResourcesResult, ReadResourceParams, ReadResourceResult,
    Resource, ResourceContents, ResourceParams, ResourceTemplate, TextResourceContents,
};
pub use revision::Revision;
pub use task::TaskMetadata;
pub use tool::{
    CallToolParams, CallToolParamsRef, CallToolResult, ListToolsResult, TaskSupport, Tool, ToolAnnotations,
    ToolExecution,
};
