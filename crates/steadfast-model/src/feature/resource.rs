//! Resources: data that a server offers for reading.

use serde::{Deserialize, Serialize};

use super::content::Annotations;
use crate::implementation::Icon;
use crate::json::ExtraMembers;
use crate::message::cache::{CacheScope, cacheable, read_scope, read_ttl};
use crate::message::input::InputResponses;
use crate::message::meta::Meta;
use crate::setters::setters;

/// A resource, as `resources/list` and resource links describe it.
///
/// ```
/// use steadfast_model::Resource;
/// let resource = Resource::new("file:///etc/hosts", "hosts").with_mime_type("text/plain").with_size(174_u64);
/// assert_eq!(serde_json::to_value(&resource).unwrap()["mimeType"], "text/plain");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resource {
    /// Its URI.
    pub uri: String,
    /// The name that programs use for the resource.
    pub name: String,
    /// The display name of the resource (since 2025-06-18).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the resource is, for a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The size of the resource in bytes, before any encoding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Audience and priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
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

impl Resource {
    /// A resource with this URI and this name.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: name.into(), ..Self::default() }
    }
}

setters!(Resource {
    with_title(title: String),
    with_description(description: String),
    with_mime_type(mime_type: String),
    with_size(size: u64),
    with_annotations(annotations: Annotations),
    with_icons(icons: Vec<Icon>),
    with_meta(meta: Meta),
});

/// A family of resources whose URIs follow a template (RFC 6570).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceTemplate {
    /// The template.
    pub uri_template: String,
    /// The name that programs use for the resource template.
    pub name: String,
    /// The display name of the resource template (since 2025-06-18).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A description of the template's resources, for a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type of the template's resources, if all have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Audience and priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
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

impl ResourceTemplate {
    /// Describes the resources whose URIs match that template, as an entry of `resources/templates/list`.
    pub fn new(uri_template: impl Into<String>, name: impl Into<String>) -> Self {
        Self { uri_template: uri_template.into(), name: name.into(), ..Self::default() }
    }
}

setters!(ResourceTemplate {
    with_title(title: String),
    with_description(description: String),
    with_mime_type(mime_type: String),
    with_annotations(annotations: Annotations),
    with_icons(icons: Vec<Icon>),
    with_meta(meta: Meta),
});

/// The contents of a resource: text, or bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ResourceContents {
    /// Text.
    Text(TextResourceContents),
    /// Bytes.
    Blob(BlobResourceContents),
}

impl ResourceContents {
    /// The contents of a resource that holds this text.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Text(TextResourceContents::new(uri, text))
    }

    /// The contents of a resource that holds bytes; `blob` is the bytes in base64.
    pub fn blob(uri: impl Into<String>, blob: impl Into<String>) -> Self {
        Self::Blob(BlobResourceContents::new(uri, blob))
    }

    /// Sets the media type of these contents.
    pub fn with_mime_type(mut self, mime_type: impl Into<String>) -> Self {
        match &mut self {
            Self::Text(contents) => contents.mime_type = Some(mime_type.into()),
            Self::Blob(contents) => contents.mime_type = Some(mime_type.into()),
        }
        self
    }

    /// The text, if the resource holds text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(contents) => Some(&contents.text),
            Self::Blob(_) => None,
        }
    }

    /// The URI of the resource.
    pub fn uri(&self) -> &str {
        match self {
            Self::Text(contents) => &contents.uri,
            Self::Blob(contents) => &contents.uri,
        }
    }

    /// The media type of the resource, if it is known.
    pub fn mime_type(&self) -> Option<&str> {
        match self {
            Self::Text(contents) => contents.mime_type.as_deref(),
            Self::Blob(contents) => contents.mime_type.as_deref(),
        }
    }
}

/// The contents of a resource that holds text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TextResourceContents {
    /// Its URI.
    pub uri: String,
    /// Its media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The text.
    pub text: String,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members of the JSON object that this type has no field for.
    #[serde(flatten)]
    pub extra: ExtraMembers,
}

impl TextResourceContents {
    /// The contents of a resource that holds this text.
    pub fn new(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self { uri: uri.into(), text: text.into(), ..Self::default() }
    }
}

setters!(TextResourceContents { with_mime_type(mime_type: String), with_meta(meta: Meta) });

impl From<TextResourceContents> for ResourceContents {
    fn from(contents: TextResourceContents) -> Self {
        Self::Text(contents)
    }
}

/// The contents of a resource that holds bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BlobResourceContents {
    /// Its URI.
    pub uri: String,
    /// Its media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The bytes of the resource, in base64.
    pub blob: String,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members of the JSON object that this type has no field for.
    #[serde(flatten)]
    pub extra: ExtraMembers,
}

impl BlobResourceContents {
    /// The contents of a resource that holds bytes; `blob` is the bytes in base64.
    pub fn new(uri: impl Into<String>, blob: impl Into<String>) -> Self {
        Self { uri: uri.into(), blob: blob.into(), ..Self::default() }
    }
}

setters!(BlobResourceContents { with_mime_type(mime_type: String), with_meta(meta: Meta) });

impl From<BlobResourceContents> for ResourceContents {
    fn from(contents: BlobResourceContents) -> Self {
        Self::Blob(contents)
    }
}

/// The result of `resources/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListResourcesResult {
    /// The resources on this page of the `resources/list` results.
    pub resources: Vec<Resource>,
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

impl ListResourcesResult {
    /// A page of `resources/list` results with these resources and no next page.
    pub fn new(resources: Vec<Resource>) -> Self {
        Self { resources, ..Self::default() }
    }
}

setters!(ListResourcesResult { with_next_cursor(next_cursor: String), with_meta(meta: Meta) });

/// The result of `resources/templates/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListResourceTemplatesResult {
    /// The resource templates on this page of the `resources/templates/list` results.
    pub resource_templates: Vec<ResourceTemplate>,
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

impl ListResourceTemplatesResult {
    /// A page of `resources/templates/list` results with these resource templates and no next page.
    pub fn new(resource_templates: Vec<ResourceTemplate>) -> Self {
        Self { resource_templates, ..Self::default() }
    }
}

setters!(ListResourceTemplatesResult { with_next_cursor(next_cursor: String), with_meta(meta: Meta) });

/// The parameters of `resources/read`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadResourceParams {
    /// The resource.
    pub uri: String,
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

impl ReadResourceParams {
    /// The parameters of a request to read the resource at this URI.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), ..Self::default() }
    }
}

setters!(ReadResourceParams {
    with_input_responses(input_responses: InputResponses),
    with_request_state(request_state: String),
    with_meta(meta: Meta),
});

/// The result of `resources/read`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadResourceResult {
    /// The contents of the resource, or of the resources inside it.
    pub contents: Vec<ResourceContents>,
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

impl ReadResourceResult {
    /// These contents.
    pub fn new(contents: Vec<ResourceContents>) -> Self {
        Self { contents, ..Self::default() }
    }
}

setters!(ReadResourceResult { with_meta(meta: Meta) });
cacheable!(ListResourcesResult, ListResourceTemplatesResult, ReadResourceResult);

/// The parameters of `resources/subscribe`, `resources/unsubscribe` and `notifications/resources/updated`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceUriParams {
    /// The resource.
    pub uri: String,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ResourceUriParams {
    /// The parameters of a request or notification about the resource at this URI.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), meta: None }
    }
}

setters!(ResourceUriParams { with_meta(meta: Meta) });
