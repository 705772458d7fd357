//! Roots: the directories that a client works in.

use serde::{Deserialize, Serialize};

use crate::json::ExtraMembers;
use crate::message::meta::Meta;
use crate::setters::setters;

/// A root of the client: a directory or file that the server may access.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Root {
    /// Its `file:` URI.
    pub uri: String,
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Metadata (since 2025-06-18).
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members of the JSON object that this type has no field for.
    #[serde(flatten)]
    pub extra: ExtraMembers,
}

impl Root {
    /// A root of the client with this URI.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), ..Self::default() }
    }
}

setters!(Root { with_name(name: String), with_meta(meta: Meta) });

/// The result of `roots/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListRootsResult {
    /// The roots.
    pub roots: Vec<Root>,
    /// Metadata of the `roots/list` result (up to revision 2025-11-25).
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ListRootsResult {
    /// These roots.
    pub fn new(roots: Vec<Root>) -> Self {
        Self { roots, meta: None }
    }
}

setters!(ListRootsResult { with_meta(meta: Meta) });
