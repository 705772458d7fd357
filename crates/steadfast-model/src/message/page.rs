//! Pagination, and messages whose only member is `_meta`.

use serde::{Deserialize, Serialize};

use super::meta::Meta;
use crate::setters::setters;

/// The parameters of every `*/list` request. An empty string is a cursor too: only an absent cursor asks for the first page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PaginatedParams {
    /// The cursor of the requested page: `nextCursor` of the previous page's result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl PaginatedParams {
    /// The parameters of a `*/list` request for the first page.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(PaginatedParams { with_cursor(cursor: String), with_meta(meta: Meta) });

/// The parameters of a message that has no parameters besides `_meta`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EmptyParams {
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl EmptyParams {
    /// No parameters.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(EmptyParams { with_meta(meta: Meta) });

/// A result that has no members besides `_meta`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EmptyResult {
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl EmptyResult {
    /// An empty result.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(EmptyResult { with_meta(meta: Meta) });
