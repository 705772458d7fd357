//! Interceptors, also called layers: they run in a fixed order before a server routes a request.
//!
//! A layer sees a request after the transport has checked its headers and its sender, and after the core has checked
//! its envelope, its revision and the limits. A layer can refuse the request; then no handler is looked up. A layer is
//! called on the thread of the driver: it must not block, and it must not log what a peer can repeat at will.

use std::fmt;

use steadfast_model::{ErrorObject, Method, TASKS_EXTENSION};
use steadfast_proto::connection::{PeerInfo, Request};

use crate::server::tasks::without_tasks;

/// A request of a client, as layers see it.
pub(crate) struct ServerRequestInfo<'a> {
    request: &'a Request,
}

impl<'a> ServerRequestInfo<'a> {
    pub(super) fn new(request: &'a Request) -> Self {
        Self { request }
    }

    /// The method of the request.
    pub(crate) fn method(&self) -> Method {
        self.request.method
    }

    /// The client that sent the request.
    pub(crate) fn client(&self) -> &'a PeerInfo {
        &self.request.peer
    }
}

/// A layer, which runs before a server routes a request.
pub(crate) trait ServerRequestInterceptor: fmt::Debug + Send + Sync + 'static {
    /// Looks at a request of a client. If the layer returns an error, that is the response to the request.
    fn on_request(&self, request: &ServerRequestInfo<'_>) -> Result<(), ErrorObject>;
}

/// Refuses requests about MCP tasks from clients that did not declare the tasks extension.
#[derive(Debug)]
pub(crate) struct TasksExtensionCheckInterceptor;

impl ServerRequestInterceptor for TasksExtensionCheckInterceptor {
    fn on_request(&self, request: &ServerRequestInfo<'_>) -> Result<(), ErrorObject> {
        let about_tasks = matches!(request.method(), Method::GetTask | Method::UpdateTask | Method::CancelTask);
        let client = request.client();
        if about_tasks
            && client.revision.has_tasks_extension()
            && !client.client_capabilities.has_extension(TASKS_EXTENSION)
        {
            return Err(without_tasks(request.method().name()));
        }
        Ok(())
    }
}
