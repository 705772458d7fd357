//! Notifications of a vendor since 2026-07-28: each is a POST of its own, and belongs to no session.

use std::sync::Arc;

use steadfast_model::{Principal, Revision};
use steadfast_proto::envelope::Params;
use steadfast_proto::http::{SingleHeader, name};

use super::incoming::RequestHeaders;
use super::load::Permit;
use super::service::Shared;
use crate::runtime::Runtime;
use crate::runtime::timeout::timeout_at;
use crate::server::NotificationSender;

impl Shared {
    /// Runs the handler of a notification of a vendor, if there is one. It counts as load until it has ended, and has the
    /// deadline of handlers.
    pub(super) fn handle_vendor_notification(
        &self,
        runtime: &Arc<dyn Runtime>,
        request_headers: &RequestHeaders<'_>,
        method: &str,
        params: &Params<'_>,
        principal: Option<Principal>,
        permit: Permit,
    ) {
        let handlers = self.server.vendor_handlers().notifications.clone();
        let Some(method) = handlers.methods().find(|known| known.name() == method) else { return };
        let version = match request_headers.single(name::PROTOCOL_VERSION) {
            SingleHeader::Value(version) => Revision::parse(version),
            _ => None,
        };
        let sender = NotificationSender { info: None, revision: version.unwrap_or(Revision::LATEST), principal };
        let params = params.to_owned();
        let deadline = self.limits.handler_deadline.map(|deadline| runtime.now() + deadline);
        let clock = Arc::clone(runtime);
        runtime.spawn(Box::pin(async move {
            let handled = handlers.handle(method, params.text(), sender);
            if timeout_at(&*clock, deadline, handled).await.is_none() {
                tracing::warn!(method = method.name(), "stopped the handler of a notification at its deadline");
            }
            drop(permit);
        }));
    }
}
