//! Cancellation of a request.

use serde::{Deserialize, Serialize};

use super::id::RequestId;
use super::meta::Meta;
use crate::setters::setters;

/// The parameters of `notifications/cancelled`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CancelledParams {
    /// The id of the request to cancel. The id may be absent in 2025-11-25 only, where tasks are cancelled by a request of
    /// their own; the receiver ignores a notification without an id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// Why the request is cancelled, for logs and people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CancelledParams {
    /// Cancels that request.
    pub fn new(request_id: impl Into<RequestId>) -> Self {
        Self { request_id: Some(request_id.into()), ..Self::default() }
    }
}

setters!(CancelledParams { with_reason(reason: String), with_meta(meta: Meta) });
