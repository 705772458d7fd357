//! What a client keeps of what a server said: answers, and the tools that were listed; and who listens to its log.
//!
//! Each of them looks after itself, and is bounded. This is where they hear of what concerns all: a message of the server's, and
//! the loss, the return and the close of the connection. None of it outlives what the server says to the contrary. A change is
//! taken note of where it arrives, before anybody who listens has looked ([`ClientCache::overhear`]), so nobody is given what the
//! server has called stale. When the connection is lost and made again ([`ClientCache::begin_anew`]) nothing is believed any more,
//! whatever time it had left: there was nobody to tell of changes in between, and it may be another server.

mod bounded;
mod credentials;
#[cfg(feature = "http-client")]
mod http_headers;
mod key;
mod lookup;
mod output_schema;
mod responses;
mod ticket;
mod tools;

use std::sync::Arc;

use steadfast_model::Method;
use steadfast_model::request::{Request, Subject};
use steadfast_proto::envelope::OwnedParams;
use steadfast_proto::mutant;

pub use responses::ResponseCache;
pub(super) use ticket::CacheTicket;
pub(crate) use tools::KnownTool;
pub(super) use tools::Wire;

use super::notifications::logs::LogListeners;
use key::Invalidation;
use lookup::CachedAnswers;
use tools::KnownTools;

/// What is kept for one client.
pub(crate) struct ClientCache {
    /// `None` if every call asks the server.
    answers: Option<CachedAnswers>,
    tools: KnownTools,
    pub(super) logs: LogListeners,
}

impl ClientCache {
    /// `comes_back`: a connection that is lost is made again.
    pub(super) fn new(cache: Option<ResponseCache>, checks_output: bool, comes_back: bool) -> Arc<Self> {
        let answers = cache.map(CachedAnswers::new);
        Arc::new(Self { answers, tools: KnownTools::new(checks_output), logs: LogListeners::new(comes_back) })
    }

    /// What is known of a tool: what the server said of it, if it was listed and nothing has changed since.
    pub(crate) fn tool(&self, name: &str) -> Option<Arc<KnownTool>> {
        self.tools.get(name)
    }

    /// The server says something. Called where it arrives.
    pub(super) fn overhear(&self, method: Method, params: &OwnedParams) {
        if method == Method::LoggingMessage {
            return self.logs.tell(params);
        }
        let Some(stale) = Invalidation::read(method, params) else { return };
        if stale.concerns_tools() {
            self.tools.forget();
        }
        if let Some(answers) = self.answers.as_ref().filter(|_| !mutant!(KeepStale)) {
            answers.spoil(&stale);
        }
    }

    /// The connection was lost and is made again, perhaps to another server.
    pub(super) fn begin_anew(&self) {
        self.tools.forget();
        if let Some(answers) = &self.answers {
            answers.clear();
        }
    }

    /// A request goes out with these credentials: what is private is kept for those alone.
    #[cfg_attr(not(feature = "http-client"), allow(dead_code, reason = "only HTTP has credentials"))]
    pub(crate) fn identify<'a>(&self, credentials: impl Iterator<Item = &'a [u8]>) {
        if let Some(answers) = &self.answers {
            answers.identify(credentials);
        }
    }

    /// A cursor that the server gave out is none any more: the pages that are kept do not belong together. Returns whether
    /// there were any.
    pub(super) fn forget_pages(&self, method: Method) -> bool {
        self.answers.as_ref().is_some_and(|answers| answers.forget_pages(method))
    }

    /// Whether these are the parameters of a call of a tool that may be called twice, as the server said when it was listed.
    pub(super) fn may_repeat<R: Request>(&self, params: &R::Params) -> bool {
        let Subject::Tool { name, .. } = R::subject(params) else { return false };
        self.tool(name).is_some_and(|tool| tool.says_it_may_be_repeated())
    }

    /// The connection has ended.
    pub(super) fn note_lost(&self) {
        self.logs.note_lost();
    }

    /// The client was closed: there will be nothing more to hear, and nothing that was kept is found.
    pub(super) fn close(&self) {
        if let Some(answers) = &self.answers {
            answers.close();
        }
        self.logs.close();
    }
}
