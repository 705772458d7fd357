//! Progress of a request that is still running.

use serde::{Deserialize, Serialize};

use super::meta::{Meta, ProgressToken};
use crate::setters::setters;

/// The parameters of `notifications/progress`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProgressParams {
    /// The progress token that the request named when it asked for progress.
    pub progress_token: ProgressToken,
    /// The progress so far, which increases with every notification.
    pub progress: f64,
    /// The total that `progress` is a part of, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// What the receiver of the request is doing, for people (since 2025-03-26).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ProgressParams {
    /// The parameters of a progress notification with this token and progress, without a total or message.
    pub fn new(progress_token: impl Into<ProgressToken>, progress: f64) -> Self {
        Self { progress_token: progress_token.into(), progress, total: None, message: None, meta: None }
    }
}

setters!(ProgressParams { with_total(total: f64), with_message(message: String), with_meta(meta: Meta) });
