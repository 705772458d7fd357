//! What a client remembers across requests: cached responses, the listed tools, and the listeners to the server's log.
//!
//! Each of the three is a type of its own with limits of its own. [`ClientCache`] passes on to them what concerns all:
//! the notifications of the server, and the loss, the replacement and the close of the connection. Nothing stale is
//! found: the driver reports a change when it arrives, before any listener sees it
//! ([`ClientCache::handle_notification`]). After a reconnect ([`ClientCache::reset`]) nothing is found, whatever its
//! time to live: changes in between were not notified, and it may be another server.

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

    /// A tool as the server listed it, if it was listed and the list has not changed since.
    pub(crate) fn tool(&self, name: &str) -> Option<Arc<CachedTool>> {
        self.tools.get(name)
    }

    /// Handles a notification of the server. Called on the driver's thread when it arrives.
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

    /// Removes everything: the client has reconnected, perhaps to another server.
    pub(super) fn reset(&self) {
        self.tools.clear();
        if let Some(responses) = &self.responses {
            responses.clear();
        }
    }

    /// A request is sent with these credentials: from now on, private responses are found and stored for these.
    #[cfg_attr(not(feature = "http-client"), allow(dead_code, reason = "only HTTP has credentials"))]
    pub(crate) fn set_credentials<'a>(&self, credentials: impl Iterator<Item = &'a [u8]>) {
        if let Some(responses) = &self.responses {
            responses.set_credentials(credentials);
        }
    }

    /// Removes the cached pages of a list, because the server refuses the cursor of one. Returns whether there were any.
    pub(super) fn remove_pages(&self, method: Method) -> bool {
        self.responses.as_ref().is_some_and(|responses| responses.remove_pages(method))
    }

    /// Whether this is a call of a tool that was listed with the read-only or the idempotent hint.
    pub(super) fn is_idempotent_call<R: Request>(&self, params: &R::Params) -> bool {
        let RequestSubject::Tool { name, .. } = RequestSubject::of::<R>(params) else { return false };
        self.tool(name).is_some_and(|tool| tool.is_idempotent())
    }

    /// A connection was closed.
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
