//! What was asked for, as far as it decides what is answered: what an answer is kept under.

use steadfast_model::era::{self, Decoration};
use steadfast_model::request::{Request, Subject};
use steadfast_model::{Method, ResourceParams, Revision, SubscriptionFilter, SubscriptionParams};
use steadfast_proto::envelope::OwnedParams;

/// A request whose answer may be kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestKey {
    pub(crate) method: Method,
    /// The parameters as the program gave them, without what every request of the client says. An empty cursor is a cursor,
    /// and is another request than none.
    params: Box<str>,
    /// The resource, if one is read.
    uri: Option<Box<str>>,
    /// It goes on with a list that another answer began.
    goes_on: bool,
}

impl RequestKey {
    /// `None` if the answer may not be kept: the revision does not say so, or it depends on more than what is asked for.
    pub(crate) fn of<R: Request>(revision: Revision, params: &R::Params) -> Option<Self> {
        if !R::METHOD.is_cacheable_in(revision) {
            return None;
        }
        let (uri, goes_on) = match R::subject(params) {
            Subject::Resource { answers: true, .. } => return None,
            Subject::Resource { uri, .. } => (Some(uri.into()), false),
            Subject::Page(cursor) => (None, cursor.is_some()),
            _ => (None, false),
        };
        let params = era::params_text(revision, params, &Decoration::none()).ok()?;
        Some(Self { method: R::METHOD, params, uri, goes_on })
    }

    /// What it takes up beside the answer.
    pub(crate) fn bytes(&self) -> usize {
        self.params.len() + self.uri.as_ref().map_or(0, |uri| uri.len())
    }

    pub(crate) fn goes_on(&self) -> bool {
        self.goes_on
    }
}

/// What has changed at a server, as far as something is kept of it.
pub(crate) enum Invalidation {
    Tools,
    Prompts,
    Resources,
    /// What is read at this URI, or below one that was read.
    Resource(String),
    /// Whatever is read: the server did not say what.
    EveryResource,
    /// All that changes of are told from here on. Those from before were not: somebody may have listened and lost the
    /// connection, and whoever begins to listen looks once, and has to see what is there.
    Unheard(SubscriptionFilter),
}

impl Invalidation {
    /// What a notification says; `None` if it says something else.
    pub(crate) fn read(method: Method, params: &OwnedParams) -> Option<Self> {
        match method {
            Method::ToolListChanged => Some(Self::Tools),
            Method::PromptListChanged => Some(Self::Prompts),
            Method::ResourceListChanged => Some(Self::Resources),
            Method::ResourceUpdated => Some(match serde_json::from_str::<ResourceParams>(params.text()) {
                Ok(params) => Self::Resource(params.uri),
                Err(_) => Self::EveryResource,
            }),
            Method::SubscriptionAcknowledged => {
                let params: SubscriptionParams = serde_json::from_str(params.text()).ok()?;
                Some(Self::Unheard(params.notifications))
            }
            _ => None,
        }
    }

    /// Whether what was listed of tools is concerned.
    pub(crate) fn concerns_tools(&self) -> bool {
        match self {
            Self::Tools => true,
            Self::Unheard(filter) => filter.tools(),
            _ => false,
        }
    }

    /// Whether the answer to that may not be believed any more. What is told of may be a part of what was read.
    pub(crate) fn concerns(&self, asked: &RequestKey) -> bool {
        match (self, asked.method) {
            (Self::Tools, Method::ListTools)
            | (Self::Prompts, Method::ListPrompts)
            | (Self::Resources, Method::ListResources | Method::ListResourceTemplates)
            | (Self::EveryResource, Method::ReadResource) => true,
            (Self::Resource(uri), Method::ReadResource) => {
                asked.uri.as_deref().is_none_or(|read| uri.starts_with(read))
            }
            (Self::Unheard(filter), Method::ListTools) => filter.tools(),
            (Self::Unheard(filter), Method::ListPrompts) => filter.prompts(),
            (Self::Unheard(filter), Method::ListResources | Method::ListResourceTemplates) => filter.resources(),
            (Self::Unheard(filter), Method::ReadResource) => {
                let heard = &filter.resource_subscriptions;
                // Whoever listens to a folder is told of its files, and what was read of a folder may show them.
                let concerned = |read: &str| heard.iter().any(|uri| read.starts_with(&**uri) || uri.starts_with(read));
                asked.uri.as_deref().is_none_or(concerned)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use steadfast_model::request::{CallTool, ListTools, ReadResource};
    use steadfast_model::{CallToolParams, Meta, PaginatedParams, ReadResourceParams};

    use super::*;

    fn page(params: &PaginatedParams) -> RequestKey {
        RequestKey::of::<ListTools>(Revision::V2026_07_28, params).unwrap()
    }

    fn read(uri: &str) -> RequestKey {
        RequestKey::of::<ReadResource>(Revision::V2026_07_28, &ReadResourceParams::new(uri)).unwrap()
    }

    #[test]
    fn an_empty_cursor_is_another_request_than_none() {
        let (none, empty) = (page(&PaginatedParams::new()), page(&PaginatedParams::new().with_cursor("")));
        assert_ne!(none, empty);
        assert_eq!((none.goes_on(), empty.goes_on()), (false, true));
    }

    #[test]
    fn what_the_program_says_beside_is_part_of_what_it_asks_for() {
        let mut meta = Meta::default();
        meta.set_log_level(steadfast_model::LoggingLevel::Debug);
        assert_ne!(page(&PaginatedParams::new()), page(&PaginatedParams::new().with_meta(meta)));
    }

    #[test]
    fn what_is_not_cacheable_or_a_retry_is_not_kept() {
        let newest = Revision::V2026_07_28;
        assert!(RequestKey::of::<CallTool>(newest, &CallToolParams::new("t")).is_none());
        assert!(RequestKey::of::<ListTools>(Revision::V2025_11_25, &PaginatedParams::new()).is_none());
        let retried = ReadResourceParams::new("a:1").with_request_state("s");
        assert!(RequestKey::of::<ReadResource>(newest, &retried).is_none());
    }

    #[test]
    fn a_resource_is_stale_when_it_or_a_part_of_it_has_changed() {
        let changed = Invalidation::Resource("file:///a/b".to_owned());
        assert!(changed.concerns(&read("file:///a/b")) && changed.concerns(&read("file:///a")));
        assert!(!changed.concerns(&read("file:///a/b/c")) && !changed.concerns(&read("file:///b")));
        assert!(!changed.concerns(&page(&PaginatedParams::new())));
        assert!(Invalidation::EveryResource.concerns(&read("file:///b")));
    }

    #[test]
    fn what_begins_to_be_listened_to_is_stale_with_what_is_below_and_above_it() {
        let filter = SubscriptionFilter::default().with_resource_subscriptions(vec!["file:///a/b".to_owned()]);
        let begun = Invalidation::Unheard(filter);
        for uri in ["file:///a/b", "file:///a/b/c", "file:///a"] {
            assert!(begun.concerns(&read(uri)), "{uri}");
        }
        assert!(!begun.concerns(&read("file:///b")));
    }
}
