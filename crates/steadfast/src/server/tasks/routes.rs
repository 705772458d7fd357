//! The entry points of the code for MCP tasks, as function pointers.
//!
//! Only [`ServerToolBuilder::task`](crate::server::ServerToolBuilder::task) and
//! [`ServerBuilder::tasks`](crate::server::ServerBuilder::tasks) refer to these function pointers. The linker leaves
//! the code for MCP tasks out of a program that calls neither.

use std::sync::Arc;

use steadfast_proto::connection::Request;

use super::{TaskSettings, serve};
use crate::runtime::{HandlerExecution, PreparedHandler};
use crate::server::dispatch::ServerDispatchContext;
use crate::server::dispatch::routes::ServerDispatchResult;
use crate::server::subscriptions::{self, ServerSubscriptionStream};
use crate::server::{Server, ServerTool};

/// The routes of a server's requests about MCP tasks.
#[derive(Debug)]
pub(crate) struct ServerTaskRequestRoutes {
    /// The route of a `tools/call` that becomes an MCP task.
    pub(crate) begin: fn(ServerDispatchContext<'_>, &ServerTool, &Request) -> ServerDispatchResult,
    /// The route of `tasks/get`, `tasks/update` and `tasks/cancel`.
    pub(crate) serve: fn(ServerDispatchContext<'_>, &Request) -> ServerDispatchResult,
    /// The route of a `subscriptions/listen` that names MCP tasks.
    pub(crate) listen:
        fn(&Server, ServerSubscriptionStream, Vec<String>, Arc<HandlerExecution>) -> PreparedHandler<Server>,
}

pub(crate) static TASK_ROUTES: ServerTaskRequestRoutes =
    ServerTaskRequestRoutes { begin: serve::begin, serve: serve::serve, listen: subscriptions::listen_to_tasks };

/// The settings and routes of a server that may have MCP tasks: set together with the task store, or by the first task.
/// Clones of a server builder share the same task setup.
#[derive(Debug)]
pub(crate) struct ServerTaskSetup {
    pub(crate) settings: TaskSettings,
    pub(crate) routes: &'static ServerTaskRequestRoutes,
}

impl ServerTaskSetup {
    pub(crate) fn new(settings: TaskSettings) -> Self {
        Self { settings, routes: &TASK_ROUTES }
    }
}
