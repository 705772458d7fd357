//! How long a result may be cached, and for whom (since 2026-07-28).

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The clients that may be served a cached result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CacheScope {
    /// The cached result may be served to any client: it contains nothing about a user.
    Public,
    /// The cached result may be served only to the client that sent the request, under the same authorization.
    #[default]
    Private,
}

/// How long a result may be cached, and for whom. By default a result is not cached.
///
/// ```
/// use steadfast_model::{CacheHints, CacheScope, ListToolsResult};
/// let list = ListToolsResult::default().with_cache(CacheHints::new(60_000, CacheScope::Public));
/// assert_eq!(list.cache(), Some(CacheHints::new(60_000, CacheScope::Public)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CacheHints {
    /// The time for which a client may use the result from its cache, in milliseconds. Zero means that the result is not
    /// cached.
    pub ttl_ms: u64,
    /// The clients that may be served the cached result: any client, or only the one that requested it.
    pub scope: CacheScope,
}

impl CacheHints {
    /// Hints that a result stays fresh for this many milliseconds and may be cached for this scope.
    pub const fn new(ttl_ms: u64, scope: CacheScope) -> Self {
        Self { ttl_ms, scope }
    }
}

/// Reads `ttlMs`. The `ttlMs` member is a hint: a value that is not a duration, such as a negative number, means that the
/// result is not cached.
pub(crate) fn read_ttl<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let said: Option<Value> = Option::deserialize(deserializer)?;
    Ok(said.map(|said| said.as_u64().unwrap_or_default()))
}

/// Reads `cacheScope`. An unknown cache scope is read as private.
pub(crate) fn read_scope<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<CacheScope>, D::Error> {
    let said: Option<Value> = Option::deserialize(deserializer)?;
    Ok(said.map(|said| if said == "public" { CacheScope::Public } else { CacheScope::Private }))
}

/// Adds methods to results that read and set `ttlMs` and `cacheScope` as one value.
macro_rules! cacheable {
    ($($type:ident),+ $(,)?) => {$(
        impl $type {
            /// How long clients may cache this result, and for whom; `None` if the result has no `ttlMs`.
            pub fn cache(&self) -> Option<$crate::message::cache::CacheHints> {
                self.ttl_ms.map(|ttl_ms| $crate::message::cache::CacheHints::new(ttl_ms, self.cache_scope.unwrap_or_default()))
            }

            /// Sets the hints of this result: how long it may be cached, and for whom.
            pub fn with_cache(mut self, cache: $crate::message::cache::CacheHints) -> Self {
                self.ttl_ms = Some(cache.ttl_ms);
                self.cache_scope = Some(cache.scope);
                self
            }
        }
    )+};
}

pub(crate) use cacheable;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::tool::ListToolsResult;

    #[test]
    fn invalid_cache_hints_mean_private_and_not_cached() {
        for (said, cache) in [
            (r#""ttlMs":-1,"cacheScope":"public""#, Some(CacheHints::new(0, CacheScope::Public))),
            (r#""ttlMs":7,"cacheScope":"everyone""#, Some(CacheHints::new(7, CacheScope::Private))),
            (r#""ttlMs":"long""#, Some(CacheHints::new(0, CacheScope::Private))),
            (r#""ttlMs":null,"cacheScope":null"#, None),
        ] {
            let list: ListToolsResult = serde_json::from_str(&format!(r#"{{"tools":[],{said}}}"#)).unwrap();
            assert_eq!(list.cache(), cache, "{said}");
        }
    }
}
