//! What one call of a client needs from the client's cache, and adds to the cache.

use std::sync::Arc;

use steadfast_model::Revision;
use steadfast_model::request::Request;
use steadfast_model::wire::{self, RequestSubject, ToolsInResult};
use steadfast_proto::Moment;

use super::ClientCache;
use super::key::ResponseCacheKey;
use super::responses::PendingCacheFill;
use super::tools::{OutputCheck, RevisionAndTransport};
use crate::error::Error;

/// The cache ticket of one client request: created before the request is sent, and used when its result has arrived.
pub(crate) struct CacheTicket {
    cache: Arc<ClientCache>,
    /// Set if the response may be stored in the client's cache.
    fetch: Option<PendingCacheFill>,
    /// The number of changes of the server's tool list before the request was sent.
    generation: u64,
    /// Set if the result of the called tool is to be checked against the tool's output schema.
    output_check: Option<OutputCheck>,
}

impl CacheTicket {
    /// Returns the cached response to a request, if there is one, and a ticket for the request, which then is not sent.
    pub(crate) fn find<R: Request>(
        cache: &Arc<ClientCache>,
        revision: Revision,
        params: &R::Params,
        now: Moment,
    ) -> Option<(Self, Arc<str>)> {
        let responses = cache.responses.as_ref()?;
        let request = ResponseCacheKey::of::<R>(revision, params)?;
        let generation = cache.tools.generation();
        let text = responses.find(request, now)?;
        Some((Self { cache: Arc::clone(cache), fetch: None, generation, output_check: None }, text))
    }

    /// Creates the cache ticket for a request that is about to be sent. Returns an error if the request must not be
    /// sent, because it calls a tool whose schemas the client cannot use.
    pub(crate) fn new<R: Request>(
        cache: &Arc<ClientCache>,
        wire: RevisionAndTransport,
        params: &R::Params,
        now: Moment,
    ) -> Result<Self, Error> {
        let generation = cache.tools.generation();
        let output_check = match RequestSubject::of::<R>(params) {
            RequestSubject::Tool { name, .. } => cache.tools.prepare_call(wire, name)?,
            _ => None,
        };
        let fetch = cache.responses.as_ref().and_then(|responses| {
            let request = ResponseCacheKey::of::<R>(wire.revision, params)?;
            Some(responses.begin_fetch(request, now))
        });
        Ok(Self { cache: Arc::clone(cache), fetch, generation, output_check })
    }

    /// Prevents that the response is stored in the cache: the server has asked for input, so the response depends on
    /// more than the request.
    pub(crate) fn forbid_storing(&mut self) {
        self.fetch = None;
    }

    /// Checks the result of the call and stores its response in the cache. Returns an error if the result does not
    /// match the output schema of the tool.
    pub(crate) fn check_and_store<R: Request>(&mut self, text: &str, result: &R::Result) -> Result<(), Error> {
        self.check::<R>(result)?;
        if let (Some(responses), Some(fetch), Some(Some(policy))) =
            (&self.cache.responses, self.fetch.take(), wire::result_caching::<R>(result))
        {
            responses.store(&fetch, text, policy);
        }
        if let ToolsInResult::List(listed) = ToolsInResult::of::<R>(result) {
            self.cache.tools.store(self.generation, listed);
        }
        Ok(())
    }

    /// Checks the result of an MCP task, without storing it in the cache.
    pub(crate) fn check<R: Request>(&self, result: &R::Result) -> Result<(), Error> {
        match (&self.output_check, ToolsInResult::of::<R>(result)) {
            // If the tool list has changed since, the output schema may have as well.
            (Some(check), ToolsInResult::CallResult(output)) if self.generation == self.cache.tools.generation() => {
                check.check(output)
            }
            _ => Ok(()),
        }
    }
}
