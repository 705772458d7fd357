//! Content, encoded for one revision: kinds of content that the revision does not have become text.

use serde::ser::SerializeMap;

use super::text::Text;
use super::{Encode, ObjectEncoder};
use crate::feature::content::{
    Annotations, AudioContent, Content, EmbeddedResource, ImageContent, TextContent, ToolResultContent, ToolUseContent,
};
use crate::feature::resource::{BlobResourceContents, Resource, ResourceContents, TextResourceContents};
use crate::revision::Revision;

impl Encode for Content {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        match self {
            Self::Text(content) => tagged("text", content, object),
            Self::Image(content) => tagged("image", content, object),
            Self::Audio(content) if object.is_since(Revision::V2025_03_26) => tagged("audio", content, object),
            Self::ResourceLink(link) if object.is_since(Revision::V2025_06_18) => {
                tagged("resource_link", &**link, object)
            }
            Self::Resource(content) => tagged("resource", content, object),
            Self::ToolUse(content) if object.is_since(Revision::V2025_11_25) => tagged("tool_use", content, object),
            Self::ToolResult(content) if object.is_since(Revision::V2025_11_25) => {
                tagged("tool_result", content, object)
            }
            Self::Audio(content) => as_text(&audio_text(content), content.annotations.as_ref(), object),
            Self::ResourceLink(link) => as_text(&link_text(link), link.annotations.as_ref(), object),
            Self::ToolUse(content) => as_text(&tool_use_text(content), None, object),
            Self::ToolResult(content) => as_text(&tool_result_text(content), None, object),
            Self::Other(members) => {
                for (key, value) in members {
                    object.put(key, value)?;
                }
                Ok(())
            }
        }
    }
}

fn tagged<T: Encode, M: SerializeMap>(
    kind: &str,
    value: &T,
    object: &mut ObjectEncoder<'_, M>,
) -> Result<(), M::Error> {
    object.put("type", kind)?;
    value.encode(object)
}

fn as_text<M: SerializeMap>(
    text: &str,
    annotations: Option<&Annotations>,
    object: &mut ObjectEncoder<'_, M>,
) -> Result<(), M::Error> {
    object.put("type", "text")?;
    object.put("text", text)?;
    object.inner_some("annotations", annotations)
}

fn audio_text(content: &AudioContent) -> String {
    format!("[audio of type {}: this revision of the protocol has no audio content]", content.mime_type)
}

fn link_text(link: &Resource) -> String {
    let name = link.title.as_deref().unwrap_or(&link.name);
    match &link.description {
        Some(description) => format!("[resource {name}: {}]\n{description}", link.uri),
        None => format!("[resource {name}: {}]", link.uri),
    }
}

fn tool_use_text(content: &ToolUseContent) -> String {
    let input = serde_json::to_string(&content.input).unwrap_or_default();
    format!("[call {} of tool {} with {input}]", content.id, content.name)
}

fn tool_result_text(content: &ToolResultContent) -> String {
    let failed = if content.is_error == Some(true) { ", which failed" } else { "" };
    let mut text = format!("[result of call {}{failed}]", content.tool_use_id);
    for piece in content.content.iter().filter_map(Content::as_text) {
        text.push('\n');
        text.push_str(piece);
    }
    text
}

impl Encode for Annotations {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.list_since(Revision::V2024_11_05, "audience", &self.audience)?;
        object.some("priority", self.priority.as_ref())?;
        object.since(Revision::V2025_06_18, "lastModified", self.last_modified.as_ref())?;
        object.extra(&self.extra)
    }
}

impl Encode for TextContent {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("text", &Text(&self.text))?;
        object.inner_some("annotations", self.annotations.as_ref())?;
        object.meta(self.meta.as_ref())?;
        object.extra(&self.extra)
    }
}

impl Encode for ImageContent {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("data", &Text(&self.data))?;
        object.put("mimeType", &self.mime_type)?;
        object.inner_some("annotations", self.annotations.as_ref())?;
        object.meta(self.meta.as_ref())?;
        object.extra(&self.extra)
    }
}

impl Encode for AudioContent {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("data", &Text(&self.data))?;
        object.put("mimeType", &self.mime_type)?;
        object.inner_some("annotations", self.annotations.as_ref())?;
        object.meta(self.meta.as_ref())?;
        object.extra(&self.extra)
    }
}

impl Encode for EmbeddedResource {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.inner("resource", &self.resource)?;
        object.inner_some("annotations", self.annotations.as_ref())?;
        object.meta(self.meta.as_ref())?;
        object.extra(&self.extra)
    }
}

impl Encode for ResourceContents {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        match self {
            Self::Text(contents) => contents.encode(object),
            Self::Blob(contents) => contents.encode(object),
        }
    }
}

impl Encode for TextResourceContents {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("uri", &self.uri)?;
        object.some("mimeType", self.mime_type.as_ref())?;
        object.put("text", &Text(&self.text))?;
        object.meta(self.meta.as_ref())?;
        object.extra(&self.extra)
    }
}

impl Encode for BlobResourceContents {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("uri", &self.uri)?;
        object.some("mimeType", self.mime_type.as_ref())?;
        object.put("blob", &Text(&self.blob))?;
        object.meta(self.meta.as_ref())?;
        object.extra(&self.extra)
    }
}

impl Encode for ToolUseContent {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("id", &self.id)?;
        object.put("name", &self.name)?;
        object.put("input", &self.input)?;
        object.meta(self.meta.as_ref())?;
        object.extra(&self.extra)
    }
}

impl Encode for ToolResultContent {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("toolUseId", &self.tool_use_id)?;
        object.inner_list("content", &self.content)?;
        super::tool::structured_content(self.structured_content.as_ref(), object)?;
        object.some("isError", self.is_error.as_ref())?;
        object.meta(self.meta.as_ref())?;
        object.extra(&self.extra)
    }
}
