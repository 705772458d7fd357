//! Sampling: a server asks the client's model.

use serde::de::Deserializer;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::{Content, Role};
use crate::json::{Extra, JsonObject};
use crate::meta::Meta;
use crate::setters::setters;
use crate::task::TaskMetadata;
use crate::tool::Tool;

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
    /// Who says it.
    pub role: Role,
    /// What is said: one piece, or several since 2025-11-25. A single piece is written without a list around it.
    #[serde(with = "one_or_many")]
    pub content: Vec<Content>,
    /// What travels beside.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that we do not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl SamplingMessage {
    /// These pieces, said by that role.
    pub fn new(role: Role, content: Vec<Content>) -> Self {
        Self { role, content, meta: None, extra: Extra::default() }
    }

    /// One piece, said by the user.
    pub fn user(content: impl Into<Content>) -> Self {
        Self::new(Role::User, vec![content.into()])
    }

    /// One piece, said by the model.
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
    /// The conversation so far.
    pub messages: Vec<SamplingMessage>,
    /// Which model would suit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<ModelPreferences>,
    /// What the model is told first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Whose context to add (deprecated).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_context: Option<IncludeContext>,
    /// How freely the model may choose its words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The longest answer, in tokens.
    pub max_tokens: u64,
    /// The model stops where it would say one of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop_sequences: Vec<String>,
    /// What the model's provider should be given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<JsonObject>,
    /// The tools that the model may use (since 2025-11-25).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// Whether the model has to use them (since 2025-11-25).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Asks to run the request as a task (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// What travels beside (up to 2025-11-25).
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CreateMessageParams {
    /// Continues that conversation by at most so many tokens.
    pub fn new(messages: Vec<SamplingMessage>, max_tokens: u64) -> Self {
        Self { messages, max_tokens, ..Self::default() }
    }
}

/// Asks the model this, for an answer of at most 1024 tokens.
impl From<&str> for CreateMessageParams {
    fn from(text: &str) -> Self {
        Self::new(vec![SamplingMessage::user(Content::text(text))], 1024)
    }
}

/// Asks the model this, for an answer of at most 1024 tokens.
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

/// Whose context is added to a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum IncludeContext {
    /// Nobody's.
    None,
    /// That of the server that asks.
    ThisServer,
    /// That of every server.
    AllServers,
}

/// Whether a model has to use tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolChoice {
    /// Whether it has to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolChoiceMode>,
}

impl ToolChoice {
    /// That mode.
    pub fn new(mode: ToolChoiceMode) -> Self {
        Self { mode: Some(mode) }
    }
}

/// Whether a model has to use tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolChoiceMode {
    /// It may.
    #[default]
    Auto,
    /// It has to.
    Required,
    /// It must not.
    None,
}

/// Which model would suit. The client decides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelPreferences {
    /// Names, best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<ModelHint>,
    /// How much cost matters, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_priority: Option<f64>,
    /// How much speed matters, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_priority: Option<f64>,
    /// How much ability matters, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intelligence_priority: Option<f64>,
}

setters!(ModelPreferences {
    with_hints(hints: Vec<ModelHint>),
    with_cost_priority(cost_priority: f64),
    with_speed_priority(speed_priority: f64),
    with_intelligence_priority(intelligence_priority: f64),
});

/// A part of the name of a model that would suit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelHint {
    /// The part of a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Hints of the client's own making.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ModelHint {
    /// A model with that in its name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), extra: Extra::default() }
    }
}

/// The answer to `sampling/createMessage`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateMessageResult {
    /// Who says it: the model.
    pub role: Role,
    /// What it says: one piece, or several since 2025-11-25.
    #[serde(with = "one_or_many")]
    pub content: Vec<Content>,
    /// The model's name.
    pub model: String,
    /// Why it stopped: `endTurn`, `stopSequence`, `maxTokens`, `toolUse` or another word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// What travels beside.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CreateMessageResult {
    /// One piece, said by that model.
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

/// A list that is written without brackets when it has one element.
mod one_or_many {
    use super::{Content, Deserialize, Deserializer, Serialize, Serializer, Value};
    use serde::de::Error as _;

    pub(super) fn serialize<S: Serializer>(pieces: &[Content], serializer: S) -> Result<S::Ok, S::Error> {
        match pieces {
            [piece] => piece.serialize(serializer),
            pieces => pieces.serialize(serializer),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Content>, D::Error> {
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
