//! What most servers and clients need: `use steadfast::prelude::*;`
//!
//! It takes no name that users of axum or anyhow have in scope: no `Result`, no `Error`, no `Json`.

pub use crate::{
    Client, Content, Context, IntoServer, Prompt, PromptMessage, Serve, Server, Structured, Tool, ToolError,
};
#[cfg(feature = "macros")]
pub use crate::{prompt, resource, server, tool};
