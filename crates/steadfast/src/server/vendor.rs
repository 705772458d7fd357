//! Vendor methods, which are not in the specification: a server's handlers for them, and vendor notifications to the
//! client.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use steadfast_model::notification::Notification;
use steadfast_model::request::Request;
use steadfast_model::wire::{self, PerMessageMembers};
use steadfast_model::{Method, VendorMethod};
use steadfast_proto::envelope::OwnedParams;

use super::{Context, ServerBuilder};
use crate::error::Error;
use crate::runtime::DriverCommand;
use crate::runtime::connection::notification_handlers::{VendorNotificationContext, VendorNotificationHandlers};
use crate::runtime::handler::async_handler::AsyncHandlerFn;
use crate::runtime::handler::prepared::EncodedResult;

/// The handler of a vendor request: a function of its parameters, the context and the members that the server adds to
/// its results.
type ServerVendorRequestHandler = Arc<
    dyn Fn(OwnedParams, Context, PerMessageMembers) -> Pin<Box<dyn Future<Output = EncodedResult> + Send>>
        + Send
        + Sync,
>;

/// The handlers of a server for vendor methods, which are not in the specification.
#[derive(Clone, Default)]
pub(crate) struct ServerVendorHandlers {
    requests: BTreeMap<VendorMethod, ServerVendorRequestHandler>,
    pub(crate) notifications: VendorNotificationHandlers,
}

impl ServerVendorHandlers {
    /// The vendor methods for which the server has a handler.
    pub(crate) fn methods(&self) -> Vec<VendorMethod> {
        self.requests.keys().copied().chain(self.notifications.methods()).collect()
    }

    pub(super) fn request(&self, method: VendorMethod) -> Option<&ServerVendorRequestHandler> {
        self.requests.get(&method)
    }
}

impl fmt::Debug for ServerVendorHandlers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.methods().iter().map(|method| method.name())).finish()
    }
}

/// Handlers for vendor methods, which are not in the specification.
impl ServerBuilder {
    /// Adds a handler for a vendor request of clients, which is not in the specification: see
    /// [`request`](crate::model::request). The handler of a vendor request runs like the handler of a tool: with a
    /// deadline, a [`Context`] for progress, log messages and cancellation, and with its panics caught. The handler of
    /// a vendor request cannot ask its client for input in 2026-07-28. A type with `#[server]` is merged into the
    /// server that has the handler: `Server::builder("search", "1.0.0").on_request(..).build().merge(MyType)?`.
    ///
    /// ```
    /// use serde::{Deserialize, Serialize};
    /// use steadfast::{Method, Server, model::Request};
    ///
    /// /// `acme/reindex`
    /// enum Reindex {}
    ///
    /// impl Request for Reindex {
    ///     const METHOD: Method = Method::vendor_request("acme/reindex");
    ///     type Params = Folder;
    ///     type Result = Indexed;
    /// }
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Folder { path: String }
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Indexed { documents: u64 }
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let server = Server::builder("search", "1.0.0")
    ///     .on_request::<Reindex>(|folder, ctx| async move {
    ///         ctx.progress(0.5, format!("reading {}", folder.path));
    ///         Ok(Indexed { documents: 3 })
    ///     })
    ///     .build();
    /// let client = steadfast::Client::connect(server).await?;
    /// let indexed = client.call::<Reindex>(Folder { path: "/src".to_owned() }).await?;
    /// assert_eq!(indexed.documents, 3);
    /// # Ok::<_, steadfast::Error>(()) }).unwrap();
    /// ```
    pub fn on_request<R: Request>(
        mut self,
        handler: impl AsyncHandlerFn<R::Params, Context, Result<R::Result, Error>>,
    ) -> Self {
        const { assert!(R::METHOD.is_vendor_request(), "the method is in the specification: the server handles it itself") }
        let Method::Vendor(method) = R::METHOD else { return self };
        let handler = Arc::new(handler);
        let handler: ServerVendorRequestHandler = Arc::new(move |params, ctx, common_members| {
            let handler = Arc::clone(&handler);
            Box::pin(async move {
                let revision = ctx.client().revision();
                let params = serde_json::from_str(params.text())
                    .map_err(|error| Error::invalid_params(format!("{}: {error}", R::METHOD)))?;
                let result = handler(params, ctx).await?;
                let mut out = Vec::new();
                wire::request_result::<R>(revision, &result, &common_members, &mut out).map_err(Error::encode)?;
                Ok(out)
            })
        });
        self.vendor_handlers_mut().requests.insert(method, handler);
        self
    }

    /// Adds a handler for a vendor notification of clients, which is not in the specification. The notification
    /// handlers of one connection run one at a time, in the order of the notifications; if too many notifications wait,
    /// the oldest are dropped. Over HTTP since 2026-07-28 clients send no notifications.
    pub fn on_notification<N: Notification>(
        mut self,
        handler: impl AsyncHandlerFn<N::Params, VendorNotificationContext, ()>,
    ) -> Self {
        const {
            assert!(
                N::METHOD.is_vendor_notification(),
                "the method is in the specification: the server handles it itself"
            );
        }
        self.vendor_handlers_mut().notifications.add::<N>(handler);
        self
    }
}

/// Vendor notifications to the client, which are not in the specification.
impl Context {
    /// Sends the client a vendor notification about this request: see [`notification`](crate::model::notification). The
    /// notification is sent before the response to the request. The notification is dropped if the request has ended,
    /// or if as many notifications and log messages of the request wait to be written as
    /// [`Limits::queued_logs`](crate::Limits::queued_logs) allows.
    ///
    /// ```
    /// # use serde::{Deserialize, Serialize};
    /// # use steadfast::{Context, Method, model::Notification};
    /// /// `notifications/acme/indexed`
    /// enum Indexed {}
    ///
    /// impl Notification for Indexed {
    ///     const METHOD: Method = Method::vendor_notification("notifications/acme/indexed");
    ///     type Params = Folder;
    /// }
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Folder { path: String }
    ///
    /// # fn index(ctx: Context) -> steadfast::ToolResult<()> {
    /// ctx.notify::<Indexed>(&Folder { path: "/src".to_owned() })?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if the parameters of the notification are not a JSON object.
    pub fn notify<N: Notification>(&self, params: &N::Params) -> Result<(), Error> {
        const {
            assert!(
                N::METHOD.is_vendor_notification(),
                "the method is in the specification: the server sends this notification itself"
            );
        }
        let (Method::Vendor(method), Some(execution)) = (N::METHOD, self.execution()) else { return Ok(()) };
        let none = PerMessageMembers::none();
        let params = wire::notification_params::<N>(execution.peer.revision, params, &none).map_err(Error::encode)?;
        if execution.reserve_log() {
            let command = DriverCommand::NotifyVendor { request: Some(execution.key), method, params };
            // If the connection is closed, the notification is discarded.
            let _ = execution.mailbox.post(command);
        }
        Ok(())
    }
}
