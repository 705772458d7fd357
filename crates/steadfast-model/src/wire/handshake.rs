//! Encodes the messages of the handshake and of discovery for one revision: names and capabilities.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::{Encode, ObjectEncoder, RequestResult};
use crate::capabilities::{
    ClientCapabilities, ElicitationCapability, SamplingCapability, ServerCapabilities, TASKS_EXTENSION,
};
use crate::implementation::Implementation;
use crate::json::JsonObject;
use crate::message::cache::CacheHints;
use crate::message::discover::DiscoverResult;
use crate::message::initialize::{InitializeParams, InitializeResult};
use crate::message::page::{EmptyParams, EmptyResult, PaginatedParams};
use crate::revision::Revision;

impl Encode for Implementation {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("name", &self.name)?;
        object.since(Revision::V2025_06_18, "title", self.title.as_ref())?;
        object.put("version", &self.version)?;
        object.since(Revision::V2025_11_25, "description", self.description.as_ref())?;
        object.list_since(Revision::V2025_11_25, "icons", &self.icons)?;
        object.since(Revision::V2025_11_25, "websiteUrl", self.website_url.as_ref())
    }
}

impl Encode for ClientCapabilities {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.some("experimental", self.experimental.as_ref())?;
        extensions(self.extensions.as_ref(), object)?;
        match &self.roots {
            // In stateless revisions the server asks for roots when it needs them: there are no notifications of changes.
            Some(_) if object.revision().is_stateless() => object.put("roots", &JsonObject::new())?,
            roots => object.some("roots", roots.as_ref())?,
        }
        object.inner_some("sampling", self.sampling.as_ref())?;
        if let Some(elicitation) = &self.elicitation
            && (object.is_since(Revision::V2025_11_25)
                || (object.is_since(Revision::V2025_06_18) && elicitation.has_form()))
        {
            object.inner("elicitation", elicitation)?;
        }
        if object.revision().has_experimental_tasks() {
            object.some("tasks", self.tasks.as_ref())?;
        }
        object.extra(&self.extra)
    }
}

impl Encode for SamplingCapability {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.since(Revision::V2025_11_25, "context", self.context.as_ref())?;
        object.since(Revision::V2025_11_25, "tools", self.tools.as_ref())?;
        object.extra(&self.extra)
    }
}

impl Encode for ElicitationCapability {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.since(Revision::V2025_11_25, "form", self.form.as_ref())?;
        object.since(Revision::V2025_11_25, "url", self.url.as_ref())?;
        object.extra(&self.extra)
    }
}

impl Encode for ServerCapabilities {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.some("experimental", self.experimental.as_ref())?;
        extensions(self.extensions.as_ref(), object)?;
        object.some("logging", self.logging.as_ref())?;
        object.since(Revision::V2025_03_26, "completions", self.completions.as_ref())?;
        object.some("prompts", self.prompts.as_ref())?;
        object.some("resources", self.resources.as_ref())?;
        object.some("tools", self.tools.as_ref())?;
        if object.revision().has_experimental_tasks() {
            object.some("tasks", self.tasks.as_ref())?;
        }
        object.extra(&self.extra)
    }
}

/// Extensions may be declared in any revision (capabilities are an open set), except for the tasks extension: its messages
/// exist since 2026-07-28 only.
fn extensions<M: SerializeMap>(
    extensions: Option<&JsonObject>,
    object: &mut ObjectEncoder<'_, M>,
) -> Result<(), M::Error> {
    let Some(extensions) = extensions else { return Ok(()) };
    if object.revision().is_stateless() || !extensions.contains_key(TASKS_EXTENSION) {
        return object.put("extensions", extensions);
    }
    if extensions.len() > 1 { object.put("extensions", &ExtensionsWithoutTasks(extensions)) } else { Ok(()) }
}

struct ExtensionsWithoutTasks<'a>(&'a JsonObject);

impl Serialize for ExtensionsWithoutTasks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().filter(|(identifier, _)| *identifier != TASKS_EXTENSION))
    }
}

impl Encode for InitializeParams {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("protocolVersion", &self.protocol_version)?;
        object.inner("capabilities", &self.capabilities)?;
        object.inner("clientInfo", &self.client_info)?;
        object.meta(self.meta.as_ref())
    }
}

impl Encode for InitializeResult {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("protocolVersion", &self.protocol_version)?;
        object.inner("capabilities", &self.capabilities)?;
        object.inner("serverInfo", &self.server_info)?;
        object.some("instructions", self.instructions.as_ref())?;
        object.meta(self.meta.as_ref())
    }
}

impl RequestResult for InitializeResult {}

impl Encode for DiscoverResult {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("supportedVersions", &self.supported_versions)?;
        object.inner("capabilities", &self.capabilities)?;
        object.some("instructions", self.instructions.as_ref())?;
        object.meta(self.meta.as_ref())
    }
}

impl RequestResult for DiscoverResult {
    fn caching(&self) -> Option<Option<CacheHints>> {
        Some(self.cache())
    }
}

impl Encode for EmptyParams {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.meta(self.meta.as_ref())
    }
}

impl Encode for PaginatedParams {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.some("cursor", self.cursor.as_ref())?;
        object.meta(self.meta.as_ref())
    }
}

impl Encode for EmptyResult {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.meta(self.meta.as_ref())
    }
}

impl RequestResult for EmptyResult {}
