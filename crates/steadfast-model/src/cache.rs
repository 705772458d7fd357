//! How long a result may be kept, and who may be given the copy (since 2026-07-28).

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Who may be given a cached result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheScope {
    /// Anyone: it holds nothing about a user.
    Public,
    /// Only who asked, under the same authorization.
    #[default]
    Private,
}

/// How long a result may be kept, and for whom. The default keeps nothing.
///
/// ```
/// use steadfast_model::{Cache, CacheScope, ListToolsResult};
/// let list = ListToolsResult::default().with_cache(Cache::new(60_000, CacheScope::Public));
/// assert_eq!(list.cache(), Some(Cache::new(60_000, CacheScope::Public)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cache {
    /// How many milliseconds it stays fresh. Zero: ask again every time.
    pub ttl_ms: u64,
    /// Who may be given the copy.
    pub scope: CacheScope,
}

impl Cache {
    /// That many milliseconds, for those readers.
    pub const fn new(ttl_ms: u64, scope: CacheScope) -> Self {
        Self { ttl_ms, scope }
    }
}

/// Reads `ttlMs`. It is a hint: what is no length of time, above all a negative number, keeps nothing and costs nothing.
pub(crate) fn read_ttl<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let said: Option<Value> = Option::deserialize(deserializer)?;
    Ok(said.map(|said| said.as_u64().unwrap_or_default()))
}

/// Reads `cacheScope`. A scope that we do not know is the narrower of those that we do.
pub(crate) fn read_scope<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<CacheScope>, D::Error> {
    let said: Option<Value> = Option::deserialize(deserializer)?;
    Ok(said.map(|said| if said == "public" { CacheScope::Public } else { CacheScope::Private }))
}

/// Access to the two cache members of a result as one value.
macro_rules! cacheable {
    ($($type:ident),+ $(,)?) => {$(
        impl $type {
            /// How long this may be kept, if it says.
            pub fn cache(&self) -> Option<$crate::cache::Cache> {
                self.ttl_ms.map(|ttl_ms| $crate::cache::Cache::new(ttl_ms, self.cache_scope.unwrap_or_default()))
            }

            /// This value, to be kept that long.
            pub fn with_cache(mut self, cache: $crate::cache::Cache) -> Self {
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
    use crate::tool::ListToolsResult;

    #[test]
    fn hints_that_make_no_sense_keep_nothing_and_share_nothing() {
        for (said, cache) in [
            (r#""ttlMs":-1,"cacheScope":"public""#, Some(Cache::new(0, CacheScope::Public))),
            (r#""ttlMs":7,"cacheScope":"everyone""#, Some(Cache::new(7, CacheScope::Private))),
            (r#""ttlMs":"long""#, Some(Cache::new(0, CacheScope::Private))),
            (r#""ttlMs":null,"cacheScope":null"#, None),
        ] {
            let list: ListToolsResult = serde_json::from_str(&format!(r#"{{"tools":[],{said}}}"#)).unwrap();
            assert_eq!(list.cache(), cache, "{said}");
        }
    }
}
