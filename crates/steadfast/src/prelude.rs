//! The types that most servers and clients need: `use steadfast::prelude::*;`
//!
//! The prelude has no `Result`, no `Error` and no `Json`, which many programs have in scope already.

#[cfg(feature = "client")]
pub use crate::Client;
pub use crate::{Content, PromptMessage};
#[cfg(feature = "server")]
pub use crate::{Context, IntoServer, Serve, Server, ServerPrompt, ServerTool, Structured, ToolError, ToolResult};
#[cfg(feature = "macros")]
pub use steadfast_macros::{prompt, resource, server, tool};
