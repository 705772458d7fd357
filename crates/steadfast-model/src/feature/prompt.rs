//! Prompts: message templates that a server offers to users.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::content::{Content, Role};
use crate::implementation::Icon;
use crate::json::ExtraMembers;
use crate::message::cache::{CacheScope, cacheable, read_scope, read_ttl};
use crate::message::input::InputResponses;
use crate::message::meta::Meta;
use crate::setters::setters;

/// A prompt, as `prompts/list` describes it.
///
/// ```
/// use steadfast_model::{Prompt, PromptArgument};
/// let prompt = Prompt::new("review").with_arguments(vec![PromptArgument::new("code").with_required(true)]);
/// assert_eq!(prompt.arguments[0].name, "code");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Prompt {
    /// The name of the prompt in requests.
    pub name: String,
    /// The display name of the prompt (since 2025-06-18).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the prompt is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<PromptArgument>,
    /// Icons (since 2025-11-25).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members of the JSON object that this type has no field for.
    #[serde(flatten)]
    pub extra: ExtraMembers,
}

impl Prompt {
    /// A prompt with this name and without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

setters!(Prompt {
    with_title(title: String),
    with_description(description: String),
    with_arguments(arguments: Vec<PromptArgument>),
    with_icons(icons: Vec<Icon>),
    with_meta(meta: Meta),
});

/// An argument of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptArgument {
    /// The name of the prompt argument in requests.
    pub name: String,
    /// The display name of the prompt argument (since 2025-06-18).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// True if this argument of the prompt is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
}

impl PromptArgument {
    /// A prompt argument with this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

setters!(PromptArgument {
    with_title(title: String),
    with_description(description: String),
    with_required(required: bool),
});

/// One message of a filled-in prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptMessage {
    /// The speaker.
    pub role: Role,
    /// The content.
    pub content: Content,
}

impl PromptMessage {
    /// A prompt message with this speaker and content.
    pub fn new(role: Role, content: impl Into<Content>) -> Self {
        Self { role, content: content.into() }
    }

    /// A prompt message of the user with this content.
    pub fn user(content: impl Into<Content>) -> Self {
        Self::new(Role::User, content)
    }

    /// A prompt message of the model with this content.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self::new(Role::Assistant, content)
    }
}

impl<C: Into<Content>> From<(Role, C)> for PromptMessage {
    fn from((role, content): (Role, C)) -> Self {
        Self::new(role, content)
    }
}

/// Implements the conversion of content into a prompt message of the user.
macro_rules! impl_user_message {
    ($($type:ty),+) => {$(
        impl From<$type> for PromptMessage {
            fn from(content: $type) -> Self {
                Self::user(content)
            }
        }
    )+};
}

impl_user_message!(Content, String, &str);

/// The result of `prompts/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListPromptsResult {
    /// The prompts on this page of the `prompts/list` results.
    pub prompts: Vec<Prompt>,
    /// The cursor of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
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

impl ListPromptsResult {
    /// A page of `prompts/list` results with these prompts and no next page.
    pub fn new(prompts: Vec<Prompt>) -> Self {
        Self { prompts, ..Self::default() }
    }
}

setters!(ListPromptsResult { with_next_cursor(next_cursor: String), with_meta(meta: Meta) });
cacheable!(ListPromptsResult);

/// The parameters of `prompts/get`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetPromptParams {
    /// The prompt.
    pub name: String,
    /// The values of the prompt's arguments, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<BTreeMap<String, String>>,
    /// The client's responses to the input requests of the server's previous result (since 2026-07-28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// The `requestState` of the server's previous result, which the client sends back unchanged (since 2026-07-28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl GetPromptParams {
    /// The parameters of a request for the prompt with this name, without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Adds an argument of the prompt.
    pub fn with_argument(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.arguments.get_or_insert_default().insert(name.into(), value.into());
        self
    }
}

setters!(GetPromptParams {
    with_arguments(arguments: BTreeMap<String, String>),
    with_input_responses(input_responses: InputResponses),
    with_request_state(request_state: String),
    with_meta(meta: Meta),
});

/// The result of `prompts/get`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GetPromptResult {
    /// What the prompt is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The messages.
    pub messages: Vec<PromptMessage>,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl GetPromptResult {
    /// These messages.
    pub fn new(messages: Vec<PromptMessage>) -> Self {
        Self { messages, ..Self::default() }
    }
}

setters!(GetPromptResult { with_description(description: String), with_meta(meta: Meta) });
