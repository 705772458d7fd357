//! The types that most servers and clients need: `use steadfast::prelude::*;`
//!
//! It has no names that users of axum or anyhow have in scope: no `Result`, no `Error`, no `Json`.

#[cfg(feature = "client")]
pub use crate::Client;
pub use crate::{Content, PromptMessage};
#[cfg(feature = "server")]
pub use crate::{Context, IntoServer, Serve, Server, ServerPrompt, ServerTool, Structured, ToolError};
#[cfg(feature = "macros")]
pub use crate::{prompt, resource, server, tool};
