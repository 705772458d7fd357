//! What a server is, asked without a handshake (since 2026-07-28).

use serde::{Deserialize, Serialize};

use crate::cache::{CacheScope, cacheable, read_scope, read_ttl};
use crate::capabilities::ServerCapabilities;
use crate::meta::Meta;
use crate::revision::Revision;
use crate::setters::setters;

/// The result of `server/discover`. The server's name is in `_meta`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DiscoverResult {
    /// The revisions that may be named in requests; names that we do not know are possible.
    pub supported_versions: Vec<String>,
    /// What the server offers.
    pub capabilities: ServerCapabilities,
    /// How to use the server, for a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// How many milliseconds this may be kept.
    #[serde(default, deserialize_with = "read_ttl", skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Who may be given the copy.
    #[serde(default, deserialize_with = "read_scope", skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// What travels beside.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl DiscoverResult {
    /// A server of these revisions and capabilities.
    pub fn new(supported: &[Revision], capabilities: ServerCapabilities) -> Self {
        let supported_versions = supported.iter().map(|revision| revision.as_str().to_owned()).collect();
        Self { supported_versions, capabilities, ..Self::default() }
    }

    /// The revisions of the list that we know, in the order of the list.
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
