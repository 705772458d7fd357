//! Discovery of a server without a handshake (since 2026-07-28).

use serde::{Deserialize, Serialize};

use super::cache::{CacheScope, cacheable, read_scope, read_ttl};
use super::meta::Meta;
use crate::capabilities::ServerCapabilities;
use crate::revision::Revision;
use crate::setters::setters;

/// The result of `server/discover`. The name of the server is in the `_meta` of the result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DiscoverResult {
    /// The protocol revisions that the server supports, including those that this crate does not know.
    pub supported_versions: Vec<String>,
    /// The capabilities that the server declares.
    pub capabilities: ServerCapabilities,
    /// Instructions for a model on how to use the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The time for which clients may cache this result, in milliseconds.
    #[serde(default, deserialize_with = "read_ttl", skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// The clients that may be served the cached result: any client, or only the one that requested it.
    #[serde(default, deserialize_with = "read_scope", skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl DiscoverResult {
    /// The result of a server that supports these revisions and has these capabilities.
    pub fn new(supported: &[Revision], capabilities: ServerCapabilities) -> Self {
        let supported_versions = supported.iter().map(|revision| revision.as_str().to_owned()).collect();
        Self { supported_versions, capabilities, ..Self::default() }
    }

    /// The revisions in `supported_versions` that this crate knows, in the same order.
    pub fn known_versions(&self) -> impl Iterator<Item = Revision> + '_ {
        self.supported_versions.iter().filter_map(|name| Revision::parse(name))
    }
}

setters!(DiscoverResult { with_instructions(instructions: String), with_meta(meta: Meta) });
cacheable!(DiscoverResult);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_versions_are_kept_and_skipped() {
        let text = r#"{"supportedVersions":["2099-01-01","2026-07-28"],"capabilities":{},"resultType":"complete"}"#;
        let result: DiscoverResult = serde_json::from_str(text).unwrap();
        assert_eq!(result.supported_versions.len(), 2);
        assert_eq!(result.known_versions().collect::<Vec<_>>(), [Revision::V2026_07_28]);
    }
}
