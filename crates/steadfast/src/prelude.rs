//! The types that most servers and clients need: `use steadfast::prelude::*;`
//!
//! It has no names that users of axum or anyhow have in scope: no `Result`, no `Error`, no `Json`.

pub use crate::{
    Client, Content, Context, IntoServer, Prompt, PromptMessage, Serve, Server, Structured, Tool, ToolError,
};
#[cfg(feature = "macros")]
pub use crate::{prompt, resource, server, tool};
