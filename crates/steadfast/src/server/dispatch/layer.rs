//! Layers: what runs before every request of a server is routed, in a fixed order.
//!
//! A layer sees a request after the transport has checked its headers and its sender, and after the core has checked its
//! envelope, its revision and the limits. It can refuse the request; then no handler is looked up. It is called on the thread of
//! the driver: it must not block, and it must not log what a peer can repeat at will.

use std::fmt;

use steadfast_model::{ErrorObject, Method, TASKS_EXTENSION};
use steadfast_proto::connection::{PeerInfo, Request};

use crate::server::tasks::without_tasks;

/// A request, as layers see it.
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

    /// The client that sent it.
    pub(crate) fn client(&self) -> &'a PeerInfo {
        &self.request.peer
    }
}

/// Something that runs before every request of a server.
pub(crate) trait ServerRequestInterceptor: fmt::Debug + Send + Sync + 'static {
    /// Looks at a request. An error is the response to it.
    fn on_request(&self, request: &ServerRequestInfo<'_>) -> Result<(), ErrorObject>;
}

/// Refuses requests about tasks of clients that did not declare the tasks extension.
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
