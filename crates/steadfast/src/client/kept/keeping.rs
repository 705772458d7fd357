//! What one call has to do with what is kept.

use std::any::Any;
use std::sync::Arc;

use steadfast_model::era::ResultShape as _;
use steadfast_model::request::Request;
use steadfast_model::{CallToolParams, CallToolResult, ListToolsResult, Revision};
use steadfast_proto::Moment;

use super::Kept;
use super::asked::Asked;
use super::cache::Fetch;
use super::tools::KnownTool;
use crate::error::Error;

/// Goes along with a call: made before it is sent, and told of its answer where it is awaited.
pub(in crate::client) struct Keeping {
    kept: Arc<Kept>,
    /// Set if the answer may be kept.
    fetch: Option<Fetch>,
    /// How often the list of tools had changed when the call was made.
    generation: u64,
    /// The tool that is called, if it is known.
    called: Option<(Box<str>, Arc<KnownTool>)>,
}

impl Keeping {
    /// The text of the answer, if that is kept, for a call that need not be made then.
    pub(in crate::client) fn found<R: Request>(
        kept: &Arc<Kept>,
        revision: Revision,
        params: &R::Params,
        now: Moment,
    ) -> Option<(Self, Arc<str>)> {
        let asked = Asked::of::<R>(revision, params)?;
        let generation = kept.tools.generation();
        let text = kept.find(asked, now)?;
        Some((Self { kept: Arc::clone(kept), fetch: None, generation, called: None }, text))
    }

    /// For a request that is about to be made. The error is the call's, which is not to be made: of a tool whose answer could
    /// not be checked.
    pub(in crate::client) fn begin<R: Request>(
        kept: &Arc<Kept>,
        revision: Revision,
        params: &R::Params,
        now: Moment,
    ) -> Result<Self, Error> {
        let generation = kept.tools.generation();
        let any: &dyn Any = params;
        let called = any.downcast_ref().filter(|_| kept.checks_output && revision >= Revision::V2025_06_18);
        let called = called.and_then(|params: &CallToolParams| Some((&*params.name, kept.tools.get(&params.name)?)));
        let called = match called {
            Some((name, tool)) => tool.can_be_checked(name).map(|()| Some((name.into(), tool)))?,
            None => None,
        };
        let fetch = Asked::of::<R>(revision, params).and_then(|asked| kept.fetch(asked, now));
        Ok(Self { kept: Arc::clone(kept), fetch, generation, called })
    }

    /// The server has asked back: what it answers then depends on more than what was asked for.
    pub(in crate::client) fn note_round(&mut self) {
        self.fetch = None;
    }

    /// The call has its result, of this text. The error is the call's: a tool that does not keep its word.
    pub(in crate::client) fn take<R: Request>(&mut self, text: &str, result: &R::Result) -> Result<(), Error> {
        self.check::<R>(result)?;
        if let (Some(fetch), Some(Some(said))) = (self.fetch.take(), result.caching()) {
            self.kept.keep(&fetch, text, said);
        }
        let any: &dyn Any = result;
        if let Some(listed) = any.downcast_ref::<ListToolsResult>() {
            self.kept.tools.note(self.generation, &listed.tools);
        }
        Ok(())
    }

    /// The same for a result that did not come as the answer, and is not kept.
    pub(in crate::client) fn check<R: Request>(&self, result: &R::Result) -> Result<(), Error> {
        let any: &dyn Any = result;
        match (&self.called, any.downcast_ref::<CallToolResult>()) {
            // If the list has changed since, nobody knows what the tool promised when it answered.
            (Some((name, tool)), Some(answer)) if self.generation == self.kept.tools.generation() => {
                tool.check(name, answer)
            }
            _ => Ok(()),
        }
    }
}
