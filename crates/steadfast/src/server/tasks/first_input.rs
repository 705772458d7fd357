//! Input that a tool requests from the client before a call becomes an MCP task.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use crate::server::{Context, ToolError};

type PreTaskInputFuture = Pin<Box<dyn Future<Output = Result<(), ToolError>> + Send>>;

/// The function of a tool that requests the input which is needed before a call becomes an MCP task.
#[derive(Clone)]
pub(crate) struct PreTaskInputHandler(Arc<dyn Fn(Context) -> PreTaskInputFuture + Send + Sync>);

impl PreTaskInputHandler {
    pub(crate) fn new<F, A>(ask: F) -> Self
    where
        F: Fn(Context) -> A + Send + Sync + 'static,
        A: Future<Output = Result<(), ToolError>> + Send + 'static,
    {
        Self(Arc::new(move |ctx| Box::pin(ask(ctx))))
    }

    pub(super) fn ask(&self, ctx: Context) -> PreTaskInputFuture {
        (self.0)(ctx)
    }
}

impl fmt::Debug for PreTaskInputHandler {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PreTaskInputHandler")
    }
}
