//! What a client remembers across requests: cached responses, the listed tools, and the listeners to the server's log.
//!
//! The cached responses, the listed tools and the log listeners each have a type of their own with limits of its own.
//! [`ClientCache`] passes the notifications of the server on to these types, and tells them when the connection is
//! lost, replaced or closed. The cache returns nothing stale: the driver reports a change to the cache when the
//! server's notification arrives, before any listener sees it ([`ClientCache::handle_notification`]). A reconnect
//! clears the cache ([`ClientCache::reset`]), whatever the time to live of its entries: changes during the disconnect
//! were not notified, and the client may have reached another server.

mod credentials;
#[cfg(feature = "http-client")]
mod http_headers;
mod key;
mod lru;
mod output_schema;
mod responses;
mod ticket;
mod tools;
mod view;

use std::sync::Arc;

use steadfast_model::Method;
use steadfast_model::request::Request;
use steadfast_model::wire::RequestSubject;
use steadfast_proto::envelope::OwnedParams;
use steadfast_proto::mutant;

pub use responses::ResponseCache;
pub(super) use ticket::CacheTicket;
pub(crate) use tools::CachedTool;
pub(super) use tools::RevisionAndTransport;

use super::notifications::logs::ClientLogStreams;
use key::CacheInvalidation;
use tools::ClientToolCache;
use view::ResponseCacheView;

/// What one client remembers between requests: cached responses, the listed tools, and its log streams. See the
/// [module](self).
pub(crate) struct ClientCache {
    /// `None` if the client does not cache responses.
    responses: Option<ResponseCacheView>,
    tools: ClientToolCache,
    pub(super) logs: ClientLogStreams,
}

impl ClientCache {
    /// `checks_output`: results of tools are checked against their output schemas. `reconnects`: the client replaces a lost
    /// connection.
    pub(super) fn new(cache: Option<ResponseCache>, checks_output: bool, reconnects: bool) -> Arc<Self> {
        let responses = cache.map(ResponseCacheView::new);
        Arc::new(Self {
            responses,
            tools: ClientToolCache::new(checks_output),
            logs: ClientLogStreams::new(reconnects),
        })
    }

    /// Returns a tool as the server listed it, if it was listed and the tool list has not changed since.
    pub(crate) fn tool(&self, name: &str) -> Option<Arc<CachedTool>> {
        self.tools.get(name)
    }

    /// Handles a notification of the server. Called on the driver's thread when the notification arrives.
    pub(super) fn handle_notification(&self, method: Method, params: &OwnedParams) {
        if method == Method::LoggingMessage {
            return self.logs.deliver(params);
        }
        let Some(change) = CacheInvalidation::from_notification(method, params) else { return };
        if change.affects_tools() {
            self.tools.clear();
        }
        if let Some(responses) = self.responses.as_ref().filter(|_| !mutant!(KeepStale)) {
            responses.invalidate(&change);
        }
    }

    /// Removes all cached responses and tools, because the client has reconnected, perhaps to another server.
    pub(super) fn reset(&self) {
        self.tools.clear();
        if let Some(responses) = &self.responses {
            responses.clear();
        }
    }

    /// Called when a request is sent with these credentials: from now on, private responses are found and stored for
    /// these credentials.
    #[cfg_attr(not(feature = "http-client"), allow(dead_code, reason = "only HTTP has credentials"))]
    pub(crate) fn set_credentials<'a>(&self, credentials: impl Iterator<Item = &'a [u8]>) {
        if let Some(responses) = &self.responses {
            responses.set_credentials(credentials);
        }
    }

    /// Removes the cached pages of a list, because the server refuses the cursor of one of its pages. Returns whether
    /// the cache had pages of the list.
    pub(super) fn remove_pages(&self, method: Method) -> bool {
        self.responses.as_ref().is_some_and(|responses| responses.remove_pages(method))
    }

    /// Whether a request with these parameters calls a tool that was listed with the read-only or the idempotent hint.
    pub(super) fn is_idempotent_call<R: Request>(&self, params: &R::Params) -> bool {
        let RequestSubject::Tool { name, .. } = RequestSubject::of::<R>(params) else { return false };
        self.tool(name).is_some_and(|tool| tool.is_idempotent())
    }

    /// Called when a connection of the client is closed; ends the log streams, unless the client reconnects.
    pub(super) fn handle_disconnect(&self) {
        self.logs.handle_disconnect();
    }

    /// Called when the client is closed: ends its log streams, and makes later lookups of cached responses find nothing.
    pub(super) fn close(&self) {
        if let Some(responses) = &self.responses {
            responses.close();
        }
        self.logs.close();
    }
}
