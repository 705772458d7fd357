//! Encodes resources, resource templates and the messages about them for one protocol revision.

use serde::ser::SerializeMap;

use super::{Encode, ObjectEncoder, RequestResult};
use crate::feature::resource::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceParams, ReadResourceResult, Resource,
    ResourceTemplate, ResourceUriParams,
};
use crate::message::cache::CacheHints;
use crate::revision::Revision;

impl Encode for Resource {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("uri", &self.uri)?;
        object.put("name", &self.name)?;
        object.since(Revision::V2025_06_18, "title", self.title.as_ref())?;
        object.some("description", self.description.as_ref())?;
        object.some("mimeType", self.mime_type.as_ref())?;
        object.some("size", self.size.as_ref())?;
        object.inner_some("annotations", self.annotations.as_ref())?;
        object.list_since(Revision::V2025_11_25, "icons", &self.icons)?;
        object.meta(self.meta.as_ref())?;
        object.extra(&self.extra)
    }
}

impl Encode for ResourceTemplate {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("uriTemplate", &self.uri_template)?;
        object.put("name", &self.name)?;
        object.since(Revision::V2025_06_18, "title", self.title.as_ref())?;
        object.some("description", self.description.as_ref())?;
        object.some("mimeType", self.mime_type.as_ref())?;
        object.inner_some("annotations", self.annotations.as_ref())?;
        object.list_since(Revision::V2025_11_25, "icons", &self.icons)?;
        object.meta(self.meta.as_ref())?;
        object.extra(&self.extra)
    }
}

impl Encode for ListResourcesResult {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.inner_list("resources", &self.resources)?;
        object.some("nextCursor", self.next_cursor.as_ref())?;
        object.meta(self.meta.as_ref())
    }
}

impl RequestResult for ListResourcesResult {
    fn caching(&self) -> Option<Option<CacheHints>> {
        Some(self.cache())
    }
}

impl Encode for ListResourceTemplatesResult {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.inner_list("resourceTemplates", &self.resource_templates)?;
        object.some("nextCursor", self.next_cursor.as_ref())?;
        object.meta(self.meta.as_ref())
    }
}

impl RequestResult for ListResourceTemplatesResult {
    fn caching(&self) -> Option<Option<CacheHints>> {
        Some(self.cache())
    }
}

impl Encode for ReadResourceParams {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("uri", &self.uri)?;
        object.since(Revision::V2026_07_28, "inputResponses", self.input_responses.as_ref())?;
        object.since(Revision::V2026_07_28, "requestState", self.request_state.as_ref())?;
        object.meta(self.meta.as_ref())
    }
}

impl Encode for ReadResourceResult {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.inner_list("contents", &self.contents)?;
        object.meta(self.meta.as_ref())
    }
}

impl RequestResult for ReadResourceResult {
    fn caching(&self) -> Option<Option<CacheHints>> {
        Some(self.cache())
    }
}

impl Encode for ResourceUriParams {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("uri", &self.uri)?;
        object.meta(self.meta.as_ref())
    }
}
