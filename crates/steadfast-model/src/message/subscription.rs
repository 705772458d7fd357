//! Subscriptions, which are streams of notifications that a client opens with `subscriptions/listen` (since
//! 2026-07-28).

use serde::{Deserialize, Serialize};

use super::id::RequestId;
use super::meta::Meta;
use crate::json::ExtraMembers;
use crate::setters::setters;

/// The notifications that a client subscribes to, or that the server agrees to send. The server sends no other notifications to
/// the subscription.
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
    /// Whether changes of the list of tools are included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_list_changed: Option<bool>,
    /// Whether changes of the list of prompts are included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts_list_changed: Option<bool>,
    /// Whether changes of the list of resources are included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources_list_changed: Option<bool>,
    /// The URIs of the resources whose changes are included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_subscriptions: Vec<String>,
    /// The ids of the MCP tasks whose changes are included (with the tasks extension).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub task_ids: Vec<String>,
    /// Members of the subscription filter that this type has no field for: notifications of other extensions.
    #[serde(flatten)]
    pub extra: ExtraMembers,
}

impl SubscriptionFilter {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// True if the subscription includes changes of the list of tools.
    pub fn tools(&self) -> bool {
        self.tools_list_changed == Some(true)
    }

    /// True if the subscription includes changes of the list of prompts.
    pub fn prompts(&self) -> bool {
        self.prompts_list_changed == Some(true)
    }

    /// True if the subscription includes changes of the list of resources.
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
    /// The notifications that the client requests, or that the server has agreed to send.
    pub notifications: SubscriptionFilter,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl SubscriptionParams {
    /// The parameters of a subscription, with the notifications that a client requests, or that a server has agreed to send.
    pub fn new(notifications: SubscriptionFilter) -> Self {
        Self { notifications, meta: None }
    }
}

setters!(SubscriptionParams { with_meta(meta: Meta) });

/// The result of `subscriptions/listen`, which the server sends when it ends the subscription.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListenResult {
    /// The metadata of the result, which has to contain the id of the subscription.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ListenResult {
    /// The result that ends the subscription that this `subscriptions/listen` request opened. An integer id beyond 64 bits does
    /// not fit `_meta` exactly: write such a result with [`crate::wire::PerMessageMembers::of_subscription`].
    pub fn new(subscription_id: &RequestId) -> Self {
        let mut meta = Meta::new();
        meta.set_subscription_id(subscription_id);
        Self { meta: Some(meta) }
    }

    /// The id of the `subscriptions/listen` request that opened the subscription.
    pub fn subscription_id(&self) -> Option<RequestId> {
        self.meta.as_ref()?.subscription_id()
    }
}
