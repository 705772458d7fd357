//! Encodes prompts and completions for one revision.

use serde::ser::SerializeMap;

use super::{Encode, ObjectEncoder, RequestResult};
use crate::feature::completion::{CompleteParams, CompleteResult, Reference};
use crate::feature::prompt::{
    GetPromptParams, GetPromptResult, ListPromptsResult, Prompt, PromptArgument, PromptMessage,
};
use crate::message::cache::CacheHints;
use crate::revision::Revision;

impl Encode for Prompt {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("name", &self.name)?;
        object.since(Revision::V2025_06_18, "title", self.title.as_ref())?;
        object.some("description", self.description.as_ref())?;
        if !self.arguments.is_empty() {
            object.inner_list("arguments", &self.arguments)?;
        }
        object.list_since(Revision::V2025_11_25, "icons", &self.icons)?;
        object.meta(self.meta.as_ref())?;
        object.extra(&self.extra)
    }
}

impl Encode for PromptArgument {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("name", &self.name)?;
        object.since(Revision::V2025_06_18, "title", self.title.as_ref())?;
        object.some("description", self.description.as_ref())?;
        object.some("required", self.required.as_ref())
    }
}

impl Encode for PromptMessage {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("role", &self.role)?;
        object.inner("content", &self.content)
    }
}

impl Encode for ListPromptsResult {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.inner_list("prompts", &self.prompts)?;
        object.some("nextCursor", self.next_cursor.as_ref())?;
        object.meta(self.meta.as_ref())
    }
}

impl RequestResult for ListPromptsResult {
    fn caching(&self) -> Option<Option<CacheHints>> {
        Some(self.cache())
    }
}

impl Encode for GetPromptParams {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("name", &self.name)?;
        object.some("arguments", self.arguments.as_ref())?;
        object.since(Revision::V2026_07_28, "inputResponses", self.input_responses.as_ref())?;
        object.since(Revision::V2026_07_28, "requestState", self.request_state.as_ref())?;
        object.meta(self.meta.as_ref())
    }
}

impl Encode for GetPromptResult {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.some("description", self.description.as_ref())?;
        object.inner_list("messages", &self.messages)?;
        object.meta(self.meta.as_ref())
    }
}

impl RequestResult for GetPromptResult {}

impl Encode for Reference {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        match self {
            Self::Prompt(prompt) => {
                object.put("type", "ref/prompt")?;
                object.put("name", &prompt.name)?;
                object.since(Revision::V2025_06_18, "title", prompt.title.as_ref())
            }
            Self::Resource(resource) => {
                object.put("type", "ref/resource")?;
                object.put("uri", &resource.uri)
            }
        }
    }
}

impl Encode for CompleteParams {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.inner("ref", &self.reference)?;
        object.put("argument", &self.argument)?;
        object.since(Revision::V2025_06_18, "context", self.context.as_ref())?;
        object.meta(self.meta.as_ref())
    }
}

impl Encode for CompleteResult {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("completion", &self.completion)?;
        object.meta(self.meta.as_ref())
    }
}

impl RequestResult for CompleteResult {}
