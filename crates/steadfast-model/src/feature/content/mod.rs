//! Content: the pieces that tool results, prompts and messages to models are made of.
//!
//! Content is relayed between models, clients and servers, so everything unknown in it is preserved: unknown members in
//! `extra`, unknown kinds as [`Content::Other`].

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::{Deserialize as DeriveDeserialize, Serialize};
use serde_json::Value;

use super::resource::{Resource, ResourceContents};
use crate::json::{ExtraMembers, JsonObject, present};
use crate::message::meta::Meta;
use crate::setters::setters;

/// One piece of content in a tool result, a prompt, or a message to or from a model.
///
/// ```
/// use steadfast_model::Content;
/// let content = Content::text("hello");
/// assert_eq!(serde_json::to_string(&content).unwrap(), r#"{"type":"text","text":"hello"}"#);
/// assert_eq!(content.as_text(), Some("hello"));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text(TextContent),
    /// An image.
    Image(ImageContent),
    /// Audio (since 2025-03-26).
    Audio(AudioContent),
    /// A link to a resource, which the receiver can read later (since 2025-06-18).
    ResourceLink(Box<Resource>),
    /// An embedded resource, which includes the text or bytes of the resource.
    Resource(EmbeddedResource),
    /// A tool call of a model: in messages to and from models only (since 2025-11-25).
    ToolUse(ToolUseContent),
    /// The result of a tool call: in messages to models only (since 2025-11-25).
    ToolResult(ToolResultContent),
    /// Content of an unknown kind, with all its members including `type`.
    #[serde(untagged)]
    Other(JsonObject),
}

impl Content {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// An image; the arguments are its bytes in base64 and its media type.
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Image(ImageContent::new(data, mime_type))
    }

    /// Audio; the arguments are its bytes in base64 and its media type.
    pub fn audio(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Audio(AudioContent::new(data, mime_type))
    }

    /// A link to a resource, which the receiver can read later.
    pub fn resource_link(resource: Resource) -> Self {
        Self::ResourceLink(Box::new(resource))
    }

    /// Content that embeds a resource, including the text or bytes of the resource.
    pub fn resource(contents: impl Into<ResourceContents>) -> Self {
        Self::Resource(EmbeddedResource::new(contents))
    }

    /// The text, if this content is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(content) => Some(&content.text),
            _ => None,
        }
    }

    /// Sets the annotations of this content; content that cannot have annotations, such as a tool call, is not
    /// changed.
    pub fn with_annotations(mut self, annotations: Annotations) -> Self {
        match &mut self {
            Self::Text(content) => content.annotations = Some(annotations),
            Self::Image(content) => content.annotations = Some(annotations),
            Self::Audio(content) => content.annotations = Some(annotations),
            Self::ResourceLink(content) => content.annotations = Some(annotations),
            Self::Resource(content) => content.annotations = Some(annotations),
            Self::ToolUse(_) | Self::ToolResult(_) | Self::Other(_) => {}
        }
        self
    }

    /// Sets the `_meta` member of this content.
    pub fn with_meta(mut self, meta: impl Into<Meta>) -> Self {
        let meta = meta.into();
        match &mut self {
            Self::Text(content) => content.meta = Some(meta),
            Self::Image(content) => content.meta = Some(meta),
            Self::Audio(content) => content.meta = Some(meta),
            Self::ResourceLink(content) => content.meta = Some(meta),
            Self::Resource(content) => content.meta = Some(meta),
            Self::ToolUse(content) => content.meta = Some(meta),
            Self::ToolResult(content) => content.meta = Some(meta),
            Self::Other(object) => drop(object.insert("_meta".to_owned(), Value::Object(meta.into()))),
        }
        self
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut object = JsonObject::deserialize(deserializer)?;
        let kind = match object.get("type") {
            Some(Value::String(kind)) => ContentKind::of(kind),
            _ => return Err(D::Error::custom("content needs a `type` that is a string")),
        };
        if !matches!(kind, ContentKind::Other) {
            object.shift_remove("type");
        }
        let value = Value::Object(object);
        match kind {
            ContentKind::Text => serde_json::from_value(value).map(Self::Text),
            ContentKind::Image => serde_json::from_value(value).map(Self::Image),
            ContentKind::Audio => serde_json::from_value(value).map(Self::Audio),
            ContentKind::ResourceLink => serde_json::from_value(value).map(Self::ResourceLink),
            ContentKind::Resource => serde_json::from_value(value).map(Self::Resource),
            ContentKind::ToolUse => serde_json::from_value(value).map(Self::ToolUse),
            ContentKind::ToolResult => serde_json::from_value(value).map(Self::ToolResult),
            ContentKind::Other => serde_json::from_value(value).map(Self::Other),
        }
        .map_err(D::Error::custom)
    }
}

#[derive(Clone, Copy)]
enum ContentKind {
    Text,
    Image,
    Audio,
    ResourceLink,
    Resource,
    ToolUse,
    ToolResult,
    Other,
}

impl ContentKind {
    fn of(name: &str) -> Self {
        match name {
            "text" => Self::Text,
            "image" => Self::Image,
            "audio" => Self::Audio,
            "resource_link" => Self::ResourceLink,
            "resource" => Self::Resource,
            "tool_use" => Self::ToolUse,
            "tool_result" => Self::ToolResult,
            _ => Self::Other,
        }
    }
}

/// The speaker in a conversation with a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, DeriveDeserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// The audience and priority of content.
#[derive(Clone, Debug, Default, PartialEq, Serialize, DeriveDeserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Annotations {
    /// The audience of the content (the user, the model or both); an empty list means everyone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audience: Vec<Role>,
    /// The priority of the content, from 0 (optional) to 1 (required).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// When the content or resource last changed, as an ISO 8601 time (since 2025-06-18).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    /// Members of the JSON object that this type has no field for.
    #[serde(flatten)]
    pub extra: ExtraMembers,
}

impl Annotations {
    /// No annotations.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(Annotations {
    with_audience(audience: Vec<Role>),
    with_priority(priority: f64),
    with_last_modified(last_modified: String),
});

/// Text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, DeriveDeserialize)]
#[non_exhaustive]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// Audience and priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members of the JSON object that this type has no field for.
    #[serde(flatten)]
    pub extra: ExtraMembers,
}

impl TextContent {
    /// That text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// An image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, DeriveDeserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ImageContent {
    /// The bytes of the image, in base64.
    pub data: String,
    /// Their media type.
    pub mime_type: String,
    /// Audience and priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members of the JSON object that this type has no field for.
    #[serde(flatten)]
    pub extra: ExtraMembers,
}

impl ImageContent {
    /// An image; the arguments are its bytes in base64 and its media type.
    pub fn new(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self { data: data.into(), mime_type: mime_type.into(), ..Self::default() }
    }
}

/// Audio content, with the same members as image content.
#[derive(Clone, Debug, Default, PartialEq, Serialize, DeriveDeserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AudioContent {
    /// The bytes of the audio, in base64.
    pub data: String,
    /// Their media type.
    pub mime_type: String,
    /// Audience and priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members of the JSON object that this type has no field for.
    #[serde(flatten)]
    pub extra: ExtraMembers,
}

impl AudioContent {
    /// Audio; the arguments are its bytes in base64 and its media type.
    pub fn new(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self { data: data.into(), mime_type: mime_type.into(), ..Self::default() }
    }
}

/// A resource that is embedded in content, including the text or bytes of the resource.
#[derive(Clone, Debug, PartialEq, Serialize, DeriveDeserialize)]
#[non_exhaustive]
pub struct EmbeddedResource {
    /// The contents.
    pub resource: ResourceContents,
    /// Audience and priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members of the JSON object that this type has no field for.
    #[serde(flatten)]
    pub extra: ExtraMembers,
}

impl EmbeddedResource {
    /// An embedded resource with these contents.
    pub fn new(resource: impl Into<ResourceContents>) -> Self {
        Self { resource: resource.into(), annotations: None, meta: None, extra: ExtraMembers::default() }
    }
}

/// A tool call of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, DeriveDeserialize)]
#[non_exhaustive]
pub struct ToolUseContent {
    /// The id of the tool call, which the result of the call refers to.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments.
    pub input: JsonObject,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members of the JSON object that this type has no field for.
    #[serde(flatten)]
    pub extra: ExtraMembers,
}

impl ToolUseContent {
    /// A model's call of the tool `name` with these arguments.
    pub fn new(id: impl Into<String>, name: impl Into<String>, input: JsonObject) -> Self {
        Self { id: id.into(), name: name.into(), input, ..Self::default() }
    }
}

/// The result of a tool call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, DeriveDeserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolResultContent {
    /// The id of the tool call that this result belongs to.
    pub tool_use_id: String,
    /// The result.
    #[serde(default)]
    pub content: Vec<Content>,
    /// The result of the tool call as a JSON value.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
    /// True if the tool failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members of the JSON object that this type has no field for.
    #[serde(flatten)]
    pub extra: ExtraMembers,
}

impl ToolResultContent {
    /// The result of the tool call with the id `tool_use_id`.
    pub fn new(tool_use_id: impl Into<String>, content: Vec<Content>) -> Self {
        Self { tool_use_id: tool_use_id.into(), content, ..Self::default() }
    }
}

setters!(ToolResultContent { with_structured_content(structured_content: Value), with_is_error(is_error: bool) });

#[cfg(test)]
mod tests;
