//! The entrances to tasks, as function pointers.
//!
//! Only [`ServerToolBuilder::task`](crate::server::ServerToolBuilder::task) and [`ServerBuilder::tasks`](crate::server::ServerBuilder::tasks)
//! refer to them. The linker leaves the code of tasks out of a program that calls neither.

use std::sync::Arc;

use steadfast_proto::connection::Request;

use super::{TaskSettings, serve};
use crate::runtime::{HandlerExecution, PreparedHandler};
use crate::server::dispatch::ServerDispatchContext;
use crate::server::dispatch::routes::ServerDispatchResult;
use crate::server::subscriptions::{self, ServerSubscriptionStream};
use crate::server::{Server, ServerTool};

/// The routes of requests about tasks.
#[derive(Debug)]
pub(crate) struct ServerTaskRequestRoutes {
    /// `tools/call` that becomes a task.
    pub(crate) begin: fn(ServerDispatchContext<'_>, &ServerTool, &Request) -> ServerDispatchResult,
    /// `tasks/get`, `tasks/update` and `tasks/cancel`.
    pub(crate) serve: fn(ServerDispatchContext<'_>, &Request) -> ServerDispatchResult,
    /// `subscriptions/listen` that names tasks.
    pub(crate) listen:
        fn(&Server, ServerSubscriptionStream, Vec<String>, Arc<HandlerExecution>) -> PreparedHandler<Server>,
}

pub(crate) static TASK_ROUTES: ServerTaskRequestRoutes =
    ServerTaskRequestRoutes { begin: serve::begin, serve: serve::serve, listen: subscriptions::listen_to_tasks };

/// What a server that may have tasks needs: set with its store, or by the first task. Clones of a builder share it.
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
