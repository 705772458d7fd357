//! Sampling: a server sends a request to the model of the client.

use serde::de::Deserializer;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::content::{Content, Role};
use super::task::TaskMetadata;
use super::tool::Tool;
use crate::json::{ExtraMembers, JsonObject};
use crate::message::meta::Meta;
use crate::setters::setters;

/// One message to or from a model.
///
/// ```
/// use steadfast_model::SamplingMessage;
/// let message = SamplingMessage::user("What is the capital of France?");
/// assert_eq!(message.content.len(), 1);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SamplingMessage {
    /// The speaker.
    pub role: Role,
    /// The content of the message: one piece, or several since 2025-11-25. A single piece of content is encoded without a list
    /// around it.
    #[serde(with = "one_or_many")]
    pub content: Vec<Content>,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members of the JSON object that this type has no field for.
    #[serde(flatten)]
    pub extra: ExtraMembers,
}

impl SamplingMessage {
    /// A sampling message with this speaker and these pieces of content.
    pub fn new(role: Role, content: Vec<Content>) -> Self {
        Self { role, content, meta: None, extra: ExtraMembers::default() }
    }

    /// A message of the user with one piece of content.
    pub fn user(content: impl Into<Content>) -> Self {
        Self::new(Role::User, vec![content.into()])
    }

    /// A message of the model with one piece of content.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self::new(Role::Assistant, vec![content.into()])
    }
}

setters!(SamplingMessage { with_meta(meta: Meta) });

/// The parameters of `sampling/createMessage`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateMessageParams {
    /// The messages of the conversation that the model is asked to continue.
    pub messages: Vec<SamplingMessage>,
    /// The server's preferences for the model that the client uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<ModelPreferences>,
    /// The system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The MCP servers whose context the client should include in the prompt to its model (deprecated).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_context: Option<IncludeContext>,
    /// The sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The maximum length of the response, in tokens.
    pub max_tokens: u64,
    /// The model stops at any of these sequences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop_sequences: Vec<String>,
    /// Metadata for the provider of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<JsonObject>,
    /// The tools that the model may use (since 2025-11-25).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// Whether the model may, must or must not use the tools (since 2025-11-25).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// If set, asks the client to run this request as an MCP task (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// Metadata of the sampling request (up to revision 2025-11-25).
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CreateMessageParams {
    /// Asks the client's model to continue this conversation by at most this many tokens.
    pub fn new(messages: Vec<SamplingMessage>, max_tokens: u64) -> Self {
        Self { messages, max_tokens, ..Self::default() }
    }
}

/// Parameters that ask the client's model to respond to this text with at most 1024 tokens.
impl From<&str> for CreateMessageParams {
    fn from(text: &str) -> Self {
        Self::new(vec![SamplingMessage::user(Content::text(text))], 1024)
    }
}

/// Parameters that ask the client's model to respond to this text with at most 1024 tokens.
impl From<String> for CreateMessageParams {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

setters!(CreateMessageParams {
    with_model_preferences(model_preferences: ModelPreferences),
    with_system_prompt(system_prompt: String),
    with_include_context(include_context: IncludeContext),
    with_temperature(temperature: f64),
    with_stop_sequences(stop_sequences: Vec<String>),
    with_metadata(metadata: JsonObject),
    with_tools(tools: Vec<Tool>),
    with_tool_choice(tool_choice: ToolChoice),
    with_task(task: TaskMetadata),
    with_meta(meta: Meta),
});

/// The servers whose context is included in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum IncludeContext {
    /// None.
    None,
    /// The server that sends the request.
    ThisServer,
    /// All servers.
    AllServers,
}

/// Whether a model may, must or must not use tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolChoice {
    /// The mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolChoiceMode>,
}

impl ToolChoice {
    /// That mode.
    pub fn new(mode: ToolChoiceMode) -> Self {
        Self { mode: Some(mode) }
    }
}

/// Whether a model may, must or must not use tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolChoiceMode {
    /// The model may use tools.
    #[default]
    Auto,
    /// The model has to use a tool.
    Required,
    /// The model must not use tools.
    None,
}

/// A server's preferences for the model that the client uses in sampling. The client decides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelPreferences {
    /// Hints for the name of the model, best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<ModelHint>,
    /// How much a low cost of the model matters, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_priority: Option<f64>,
    /// How much the speed of the model matters, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_priority: Option<f64>,
    /// How much the intelligence of the model matters, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intelligence_priority: Option<f64>,
}

setters!(ModelPreferences {
    with_hints(hints: Vec<ModelHint>),
    with_cost_priority(cost_priority: f64),
    with_speed_priority(speed_priority: f64),
    with_intelligence_priority(intelligence_priority: f64),
});

/// A hint for the name of the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelHint {
    /// A part of the name of a model that the server prefers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Members of the model hint that the protocol does not define.
    #[serde(flatten)]
    pub extra: ExtraMembers,
}

impl ModelHint {
    /// A hint for a model whose name contains this text.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), extra: ExtraMembers::default() }
    }
}

/// The result of `sampling/createMessage`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateMessageResult {
    /// The speaker of the message, which is the model.
    pub role: Role,
    /// The content of the model's message: one piece, or several since 2025-11-25.
    #[serde(with = "one_or_many")]
    pub content: Vec<Content>,
    /// The model's name.
    pub model: String,
    /// Why the model stopped (`endTurn`, `stopSequence`, `maxTokens`, `toolUse` or another word).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CreateMessageResult {
    /// The result of sampling by this model, with one piece of content.
    pub fn new(model: impl Into<String>, content: impl Into<Content>) -> Self {
        Self {
            role: Role::Assistant,
            content: vec![content.into()],
            model: model.into(),
            stop_reason: None,
            meta: None,
        }
    }
}

setters!(CreateMessageResult {
    with_content(content: Vec<Content>),
    with_stop_reason(stop_reason: String),
    with_meta(meta: Meta),
});

/// Encodes and decodes a list of content, which is written without brackets when it has one element.
mod one_or_many {
    use super::{Content, Deserialize, Deserializer, Serialize, Serializer, Value};
    use serde::de::Error as _;

    pub(crate) fn serialize<S: Serializer>(pieces: &[Content], serializer: S) -> Result<S::Ok, S::Error> {
        match pieces {
            [piece] => piece.serialize(serializer),
            pieces => pieces.serialize(serializer),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Content>, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Array(pieces) => {
                pieces.into_iter().map(|piece| Content::deserialize(piece).map_err(D::Error::custom)).collect()
            }
            piece => Content::deserialize(piece).map(|piece| vec![piece]).map_err(D::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_piece_has_no_brackets_and_several_have() {
        for text in [
            r#"{"role":"user","content":{"type":"text","text":"hi"}}"#,
            r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
        ] {
            let message: SamplingMessage = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&message).unwrap(), text);
        }
    }

    #[test]
    fn a_list_of_one_piece_is_read() {
        let text = r#"{"role":"assistant","content":[{"type":"text","text":"hi"}],"model":"m"}"#;
        let result: CreateMessageResult = serde_json::from_str(text).unwrap();
        assert_eq!(result.content, [Content::text("hi")]);
    }
}
