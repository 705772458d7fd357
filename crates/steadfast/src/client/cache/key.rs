//! The key of a cached response: the part of a request that decides on its response.

use steadfast_model::request::Request;
use steadfast_model::wire::{self, PerMessageMembers, RequestSubject};
use steadfast_model::{Method, ResourceUriParams, Revision, SubscriptionFilter, SubscriptionParams};
use steadfast_proto::envelope::OwnedParams;

/// A request whose response may be cached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ResponseCacheKey {
    pub(crate) method: Method,
    /// The parameters of the caller, without the metadata that the client adds to every request. A request with an
    /// empty cursor and a request without a cursor are different.
    params: Box<str>,
    /// The URI of the resource, if the request is `resources/read`.
    uri: Option<Box<str>>,
    /// Whether the request has a cursor, and so is for a later page of a list.
    has_cursor: bool,
}

impl ResponseCacheKey {
    /// Returns the cache key of a request, or `None` if its response must not be cached: the method is not cacheable in
    /// this revision, or the request answers the server's input requests.
    pub(crate) fn of<R: Request>(revision: Revision, params: &R::Params) -> Option<Self> {
        if !R::METHOD.is_cacheable_in(revision) {
            return None;
        }
        let (uri, has_cursor) = match RequestSubject::of::<R>(params) {
            RequestSubject::Resource { answers: true, .. } => return None,
            RequestSubject::Resource { uri, .. } => (Some(uri.into()), false),
            RequestSubject::Page(cursor) => (None, cursor.is_some()),
            _ => (None, false),
        };
        let params = wire::request_params::<R>(revision, params, &PerMessageMembers::none()).ok()?;
        Some(Self { method: R::METHOD, params, uri, has_cursor })
    }

    /// The size of the key, which counts for the byte limit of the cache.
    pub(crate) fn bytes(&self) -> usize {
        self.params.len() + self.uri.as_ref().map_or(0, |uri| uri.len())
    }

    pub(crate) fn has_cursor(&self) -> bool {
        self.has_cursor
    }
}

/// A change at the server that makes cached responses stale.
pub(crate) enum CacheInvalidation {
    Tools,
    Prompts,
    Resources,
    /// The resource at this URI has changed, and every resource whose URI is a prefix of this URI.
    Resource(String),
    /// Every resource may have changed, because the server's notification names no URI.
    EveryResource,
    /// The server has accepted a subscription, and sends notifications that match this filter from now on. Changes
    /// before the subscription were not notified: a subscriber reads the current state once after it has subscribed,
    /// and must not get that state from the cache.
    SubscriptionStarted(SubscriptionFilter),
}

impl CacheInvalidation {
    /// Returns what a notification of the server makes stale in the cache; `None` if nothing.
    pub(crate) fn from_notification(method: Method, params: &OwnedParams) -> Option<Self> {
        match method {
            Method::ToolListChanged => Some(Self::Tools),
            Method::PromptListChanged => Some(Self::Prompts),
            Method::ResourceListChanged => Some(Self::Resources),
            Method::ResourceUpdated => Some(match serde_json::from_str::<ResourceUriParams>(params.text()) {
                Ok(params) => Self::Resource(params.uri),
                Err(_) => Self::EveryResource,
            }),
            Method::SubscriptionAcknowledged => {
                let params: SubscriptionParams = serde_json::from_str(params.text()).ok()?;
                Some(Self::SubscriptionStarted(params.notifications))
            }
            _ => None,
        }
    }

    /// Whether this change at the server makes the client's cached tools stale.
    pub(crate) fn affects_tools(&self) -> bool {
        match self {
            Self::Tools => true,
            Self::SubscriptionStarted(filter) => filter.tools(),
            _ => false,
        }
    }

    /// Whether this change at the server makes the client's cached response to `request` stale. A changed resource
    /// may be a part of the resource that was read.
    pub(crate) fn affects(&self, request: &ResponseCacheKey) -> bool {
        match (self, request.method) {
            (Self::Tools, Method::ListTools)
            | (Self::Prompts, Method::ListPrompts)
            | (Self::Resources, Method::ListResources | Method::ListResourceTemplates)
            | (Self::EveryResource, Method::ReadResource) => true,
            (Self::Resource(uri), Method::ReadResource) => {
                request.uri.as_deref().is_none_or(|read| uri.starts_with(read))
            }
            (Self::SubscriptionStarted(filter), Method::ListTools) => filter.tools(),
            (Self::SubscriptionStarted(filter), Method::ListPrompts) => filter.prompts(),
            (Self::SubscriptionStarted(filter), Method::ListResources | Method::ListResourceTemplates) => {
                filter.resources()
            }
            (Self::SubscriptionStarted(filter), Method::ReadResource) => {
                let subscribed = &filter.resource_subscriptions;
                // A subscription to a folder covers its files, and the contents of a folder may show its files.
                let related =
                    |read: &str| subscribed.iter().any(|uri| read.starts_with(&**uri) || uri.starts_with(read));
                request.uri.as_deref().is_none_or(related)
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

    fn page(params: &PaginatedParams) -> ResponseCacheKey {
        ResponseCacheKey::of::<ListTools>(Revision::V2026_07_28, params).unwrap()
    }

    fn read(uri: &str) -> ResponseCacheKey {
        ResponseCacheKey::of::<ReadResource>(Revision::V2026_07_28, &ReadResourceParams::new(uri)).unwrap()
    }

    #[test]
    fn an_empty_cursor_is_another_request_than_none() {
        let (none, empty) = (page(&PaginatedParams::new()), page(&PaginatedParams::new().with_cursor("")));
        assert_ne!(none, empty);
        assert_eq!((none.has_cursor(), empty.has_cursor()), (false, true));
    }

    #[test]
    fn metadata_of_the_caller_is_part_of_the_key() {
        let mut meta = Meta::default();
        meta.set_log_level(steadfast_model::LoggingLevel::Debug);
        assert_ne!(page(&PaginatedParams::new()), page(&PaginatedParams::new().with_meta(meta)));
    }

    #[test]
    fn what_is_not_cacheable_or_a_retry_is_not_kept() {
        let newest = Revision::V2026_07_28;
        assert!(ResponseCacheKey::of::<CallTool>(newest, &CallToolParams::new("t")).is_none());
        assert!(ResponseCacheKey::of::<ListTools>(Revision::V2025_11_25, &PaginatedParams::new()).is_none());
        let retried = ReadResourceParams::new("a:1").with_request_state("s");
        assert!(ResponseCacheKey::of::<ReadResource>(newest, &retried).is_none());
    }

    #[test]
    fn a_resource_is_stale_when_it_or_a_part_of_it_has_changed() {
        let changed = CacheInvalidation::Resource("file:///a/b".to_owned());
        assert!(changed.affects(&read("file:///a/b")) && changed.affects(&read("file:///a")));
        assert!(!changed.affects(&read("file:///a/b/c")) && !changed.affects(&read("file:///b")));
        assert!(!changed.affects(&page(&PaginatedParams::new())));
        assert!(CacheInvalidation::EveryResource.affects(&read("file:///b")));
    }

    #[test]
    fn a_new_subscription_makes_a_resource_its_parents_and_its_children_stale() {
        let filter = SubscriptionFilter::default().with_resource_subscriptions(vec!["file:///a/b".to_owned()]);
        let started = CacheInvalidation::SubscriptionStarted(filter);
        for uri in ["file:///a/b", "file:///a/b/c", "file:///a"] {
            assert!(started.affects(&read(uri)), "{uri}");
        }
        assert!(!started.affects(&read("file:///b")));
    }
}
