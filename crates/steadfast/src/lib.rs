//! Model Context Protocol servers and clients that keep their promises when connections do not.
//!
//! A server is an `impl` block:
//!
//! ```no_run
//! use steadfast::prelude::*;
//!
//! struct Greeter;
//!
//! /// Greets people.
//! #[server]
//! impl Greeter {
//!     /// Says hello.
//!     #[tool(read_only)]
//!     async fn hello(&self, /** Whom to greet */ name: String) -> String {
//!         format!("Hello, {name}!")
//!     }
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), steadfast::Error> {
//!     Greeter.serve_stdio().await
//! }
//! ```
//!
//! A server of the crate `steadfast` serves every published revision of the Model Context Protocol. Whatever the
//! tools of a server or its client do, each request ends exactly once, and the server process goes on. The project's
//! README lists the guarantees of this crate.
//!
//! - [`mod@server`]: servers, tools, and the [`Context`] of a handler;
//! - [`client`]: clients, in the same process, of a child process, over any stream, or over HTTP;
//! - [`transport`]: the transports;
//! - [`runtime`]: the runtime that drives connections; replaceable, for simulators;
//! - [`model`]: all types of the protocol, named as in its schema. The types that most programs need are re-exported at
//!   the root of this crate.
//!
//! To test a tool without a client, call `MyServer.into_server().tool("name").unwrap().call(json!({ .. })).await`;
//! see [`ServerTool::call`].
//!
//! # Features
//!
//! - `server` (default): servers over stdio, sockets, any reader and writer, and in memory.
//! - `client` (default): clients over child processes, sockets, any reader and writer. Together with the feature
//!   `server`, a client can also connect to a server in the same process.
//! - `macros` (default, with `server`): [`macro@server`], [`macro@tool`], [`macro@prompt`] and [`macro@resource`].
//! - `http` (with `server`): servers over Streamable HTTP, as a tower service and as a server of its own:
//!   [`transport::http`].
//! - `http-client` (with `client`): clients of servers at a URL: [`transport::http`].
//! - `legacy-sse`: HTTP+SSE, the deprecated transport of 2024-11-05. With the feature `http`, servers can offer
//!   HTTP+SSE, and with `http-client`, clients use it with servers that support no other transport.
//! - `schema-validation`: servers check arguments and structured results of tools whose schemas were written by hand,
//!   and clients check structured results of the tools that they have listed. Without the feature `schema-validation`,
//!   a tool that needs such a check has a [problem](ServerTool::problem), so that no server can be built with the tool,
//!   and clients do not check structured results. Tools whose arguments and results are Rust types do not need the
//!   feature `schema-validation` on either side: decoding is the check.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(all(feature = "server", feature = "client")),
    allow(
        dead_code,
        unreachable_pub,
        unused_imports,
        reason = "the client or the server alone does not use all code that both share"
    )
)]

// The code that the macros generate also has to work inside this crate's own documentation and tests.
extern crate self as steadfast;

#[cfg(feature = "client")]
pub mod client;
mod error;
pub mod prelude;
pub mod runtime;
#[cfg(feature = "server")]
pub mod server;
pub mod transport;
mod validation;

/// The types of MCP, named as in the schema of the protocol.
pub mod model {
    pub use steadfast_model::meta::key as meta_key;
    pub use steadfast_model::{
        Annotations, AudioContent, BlobResourceContents, CacheHints, CacheScope, CallToolParams, CallToolResult,
        CancelTaskResult, CancelledParams, Capability, ClientCapabilities, CompleteArgument, CompleteContext,
        CompleteParams, CompleteResult, Completion, Content, CreateMessageParams, CreateMessageResult,
        CreateTaskResult, DetailedTask, DiscoverResult, ElicitAction, ElicitFormParams, ElicitParams, ElicitResult,
        ElicitUrlParams, ElicitationCapability, ElicitationCompleteParams, EmbeddedResource, EmptyParams, EmptyResult,
        ErrorObject, ExtraMembers, FormField, FormFieldKind, FormOption, FormSchema, GetPromptParams, GetPromptResult,
        Icon, IconTheme, ImageContent, Implementation, IncludeContext, InitializeParams, InitializeResult,
        InputRequest, InputRequests, InputRequiredResult, InputResponses, JsonObject, ListChangedCapability,
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListRootsResult, ListTasksResult,
        ListToolsResult, ListenResult, LoggingLevel, LoggingMessageParams, Meta, Method, ModelHint, ModelPreferences,
        Notification, PaginatedParams, Principal, ProgressParams, ProgressToken, Prompt, PromptArgument, PromptMessage,
        PromptReference, ReadResourceParams, ReadResourceResult, Reference, RelatedTask, Request, RequestId, Resource,
        ResourceContents, ResourceReference, ResourceTemplate, ResourceUriParams, ResourcesCapability, Revision, Role,
        Root, SamplingCapability, SamplingMessage, Scopes, SentBy, ServerCapabilities, SetLevelParams,
        SubscriptionFilter, SubscriptionParams, TASKS_EXTENSION, Task, TaskMetadata, TaskParams, TaskStatus,
        TaskSupport, TasksCapability, TextContent, TextResourceContents, Tool, ToolAnnotations, ToolChoice,
        ToolChoiceMode, ToolExecution, ToolResultContent, ToolUseContent, UpdateTaskParams, UriTemplate,
        UriTemplateError, VendorMethod, code, notification, request,
    };
}

#[cfg(feature = "server")]
pub use schemars;
pub use serde_json;
pub use steadfast_model::{
    Annotations, CacheHints, CacheScope, CallToolResult, ClientCapabilities, CompleteContext, Content,
    CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult, ErrorObject, FormField, FormSchema,
    GetPromptResult, Icon, Implementation, JsonObject, ListRootsResult, LoggingLevel, Method, Principal, PromptMessage,
    ReadResourceResult, Reference, RequestId, ResourceContents, Revision, Role, Root, SamplingMessage,
    ServerCapabilities, SubscriptionFilter,
};
pub use steadfast_proto::Moment;
pub use steadfast_proto::connection::{CancelReason, CloseCause, Limits, PeerInfo, ProgressReport};

#[cfg(feature = "client")]
pub use crate::client::Client;
pub use crate::error::{Error, ErrorKind, FaultParty, Outcome};
#[cfg(feature = "server")]
pub use crate::server::{
    Context, IntoPromptReply, IntoResourceReply, IntoServer, IntoToolReply, Serve, Server, ServerBuilder, ServerPrompt,
    ServerResource, ServerResourceTemplate, ServerTool, Structured, ToolError,
};
#[cfg(feature = "macros")]
pub use steadfast_macros::{prompt, resource, server, tool};

/// The result type of a tool function: any error can be returned with `?`.
#[cfg(feature = "server")]
pub type ToolResult<T, E = ToolError> = std::result::Result<T, E>;

#[cfg(feature = "server")]
#[doc(hidden)]
pub mod __private {
    pub use crate::server::private::*;
}

/// Compiles the examples of the project's README as doctests.
#[cfg(all(doctest, feature = "macros", feature = "client"))]
#[doc = include_str!("../../../README.md")]
struct ReadmeDoctests;

/// Compiles the example in the README of this crate as a doctest.
#[cfg(all(doctest, feature = "macros"))]
#[doc = include_str!("../README.md")]
struct CrateReadme;
