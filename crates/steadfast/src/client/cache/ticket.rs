//! What one call has to do with what is kept.

use std::sync::Arc;

use steadfast_model::Revision;
use steadfast_model::era::ResultShape as _;
use steadfast_model::request::{Request, Subject, ToolData};
use steadfast_proto::Moment;

use super::ClientCache;
use super::key::RequestKey;
use super::responses::PendingFetch;
use super::tools::{CalledTool, Wire};
use crate::error::Error;

/// Goes along with a call: made before it is sent, and told of its answer where it is awaited.
pub(crate) struct CacheTicket {
    cache: Arc<ClientCache>,
    /// Set if the answer may be kept.
    fetch: Option<PendingFetch>,
    /// How often the list of tools had changed when the call was made.
    generation: u64,
    /// The tool that is called, if what it answers is to be checked.
    called: Option<CalledTool>,
}

impl CacheTicket {
    /// The text of the answer, if that is kept, for a call that need not be made then.
    pub(crate) fn found<R: Request>(
        cache: &Arc<ClientCache>,
        revision: Revision,
        params: &R::Params,
        now: Moment,
    ) -> Option<(Self, Arc<str>)> {
        let answers = cache.answers.as_ref()?;
        let asked = RequestKey::of::<R>(revision, params)?;
        let generation = cache.tools.generation();
        let text = answers.find(asked, now)?;
        Some((Self { cache: Arc::clone(cache), fetch: None, generation, called: None }, text))
    }

    /// For a request that is about to be made. The error is the call's, which is not to be made: of a tool that says
    /// something of itself that nobody can act by.
    pub(crate) fn begin<R: Request>(
        cache: &Arc<ClientCache>,
        over: Wire,
        params: &R::Params,
        now: Moment,
    ) -> Result<Self, Error> {
        let generation = cache.tools.generation();
        let called = match R::subject(params) {
            Subject::Tool { name, .. } => cache.tools.call(over, name)?,
            _ => None,
        };
        let fetch = cache.answers.as_ref().and_then(|answers| {
            let asked = RequestKey::of::<R>(over.revision, params)?;
            Some(answers.fetch(asked, now))
        });
        Ok(Self { cache: Arc::clone(cache), fetch, generation, called })
    }

    /// The server has asked back: what it answers then depends on more than what was asked for.
    pub(crate) fn note_round(&mut self) {
        self.fetch = None;
    }

    /// The call has its result, of this text. The error is the call's: a tool that does not keep its word.
    pub(crate) fn take<R: Request>(&mut self, text: &str, result: &R::Result) -> Result<(), Error> {
        self.check::<R>(result)?;
        if let (Some(answers), Some(fetch), Some(Some(said))) =
            (&self.cache.answers, self.fetch.take(), result.caching())
        {
            answers.keep(&fetch, text, said);
        }
        if let ToolData::List(listed) = R::tool_data(result) {
            self.cache.tools.note(self.generation, listed);
        }
        Ok(())
    }

    /// The same for a result that did not come as the answer, and is not kept.
    pub(crate) fn check<R: Request>(&self, result: &R::Result) -> Result<(), Error> {
        match (&self.called, R::tool_data(result)) {
            // If the list has changed since, nobody knows what the tool promised when it answered.
            (Some(called), ToolData::CallResult(answer)) if self.generation == self.cache.tools.generation() => {
                called.check(answer)
            }
            _ => Ok(()),
        }
    }
}
