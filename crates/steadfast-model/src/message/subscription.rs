//! Streams of notifications (since 2026-07-28).

use serde::{Deserialize, Serialize};

use super::id::RequestId;
use super::meta::Meta;
use crate::json::ExtraMembers;
use crate::setters::setters;

/// The notifications that a client subscribes to, or that the server agrees to send. All others are not sent.
///
/// ```
/// use steadfast_model::SubscriptionFilter;
/// let wanted = SubscriptionFilter::new().with_tools_list_changed(true);
/// assert_eq!(serde_json::to_string(&wanted).unwrap(), r#"{"toolsListChanged":true}"#);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriptionFilter {
    /// Changes of the list of tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_list_changed: Option<bool>,
    /// Changes of the list of prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts_list_changed: Option<bool>,
    /// Changes of the list of resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources_list_changed: Option<bool>,
    /// Changes of these resources, by URI.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_subscriptions: Vec<String>,
    /// Changes of these tasks (with the tasks extension).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub task_ids: Vec<String>,
    /// Notifications of other extensions.
    #[serde(flatten)]
    pub extra: ExtraMembers,
}

impl SubscriptionFilter {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// True if changes of the list of tools are included.
    pub fn tools(&self) -> bool {
        self.tools_list_changed == Some(true)
    }

    /// True if changes of the list of prompts are included.
    pub fn prompts(&self) -> bool {
        self.prompts_list_changed == Some(true)
    }

    /// True if changes of the list of resources are included.
    pub fn resources(&self) -> bool {
        self.resources_list_changed == Some(true)
    }
}

setters!(SubscriptionFilter {
    with_tools_list_changed(tools_list_changed: bool),
    with_prompts_list_changed(prompts_list_changed: bool),
    with_resources_list_changed(resources_list_changed: bool),
    with_resource_subscriptions(resource_subscriptions: Vec<String>),
    with_task_ids(task_ids: Vec<String>),
});

/// The parameters of `subscriptions/listen` and of `notifications/subscriptions/acknowledged`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SubscriptionParams {
    /// The notifications that are requested, or agreed to.
    pub notifications: SubscriptionFilter,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl SubscriptionParams {
    /// The parameters with the notifications that a client requests, or that a server has agreed to send.
    pub fn new(notifications: SubscriptionFilter) -> Self {
        Self { notifications, meta: None }
    }
}

setters!(SubscriptionParams { with_meta(meta: Meta) });

/// The result of `subscriptions/listen`, sent when the stream has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListenResult {
    /// Metadata; it has to contain the id of the subscription.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ListenResult {
    /// The end of the stream that this request opened. An id beyond 64 bits does not fit `_meta` exactly: write such a
    /// result with [`crate::wire::PerMessageMembers::of_subscription`].
    pub fn new(subscription_id: &RequestId) -> Self {
        let mut meta = Meta::new();
        meta.set_subscription_id(subscription_id);
        Self { meta: Some(meta) }
    }

    /// The request that opened the stream.
    pub fn subscription_id(&self) -> Option<RequestId> {
        self.meta.as_ref()?.subscription_id()
    }
}
