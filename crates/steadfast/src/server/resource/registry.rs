//! The resources of a server: adding, removing and listing them.

use std::sync::Arc;

use steadfast_model as model;
use steadfast_model::{ListResourceTemplatesResult, ListResourcesResult};

use super::ServerResource;
use super::template::ServerResourceTemplate;
use crate::server::{Catalog, CatalogItem, Server, ServerChange};

impl CatalogItem for ServerResource {
    const KIND: u8 = b'r';
    type Definition = model::Resource;
    type List = ListResourcesResult;

    fn key(&self) -> &str {
        self.uri()
    }

    fn definition(&self) -> &model::Resource {
        self.definition()
    }

    fn page(definitions: Vec<model::Resource>, next_cursor: Option<String>) -> ListResourcesResult {
        let mut page = ListResourcesResult::new(definitions);
        page.next_cursor = next_cursor;
        page
    }
}

impl CatalogItem for ServerResourceTemplate {
    const KIND: u8 = b'R';
    type Definition = model::ResourceTemplate;
    type List = ListResourceTemplatesResult;

    fn key(&self) -> &str {
        self.uri_template()
    }

    fn definition(&self) -> &model::ResourceTemplate {
        self.definition()
    }

    fn page(definitions: Vec<model::ResourceTemplate>, next_cursor: Option<String>) -> ListResourceTemplatesResult {
        let mut page = ListResourceTemplatesResult::new(definitions);
        page.next_cursor = next_cursor;
        page
    }
}

/// Methods to list, find, add and remove the resources and resource templates of a server, and to notify clients of
/// changed resources.
impl Server {
    /// The current resources of the server, in the order in which they were added.
    pub fn resources(&self) -> Vec<ServerResource> {
        self.resource_list().iter().cloned().collect()
    }

    /// The resource at that URI, if it was added as a resource. Resources that only match a resource template are not
    /// found.
    pub fn resource(&self, uri: &str) -> Option<ServerResource> {
        self.resource_list().find(uri).cloned()
    }

    /// The current resource templates of the server, in the order in which they were added: a URI is read with the
    /// first template that it matches.
    pub fn resource_templates(&self) -> Vec<ServerResourceTemplate> {
        self.resource_template_list().iter().cloned().collect()
    }

    /// The resource template whose URI template has exactly this text.
    pub fn resource_template(&self, uri_template: &str) -> Option<ServerResourceTemplate> {
        self.resource_template_list().find(uri_template).cloned()
    }

    /// Adds a resource, also while clients are connected, and notifies the clients. A resource with the same URI is
    /// replaced and returned.
    ///
    /// The resources capability is declared to clients that connect while the server has resources. For a server that
    /// begins without resources, see
    /// [`ServerBuilder::expect_resources`](crate::server::ServerBuilder::expect_resources).
    ///
    /// ```
    /// use steadfast::{ServerResource, Server};
    ///
    /// let server = Server::builder("growing", "1.0.0").expect_resources().build();
    /// server.add_resource(ServerResource::new("note://1", "first").text("milk"));
    /// assert!(server.resource("note://1").is_some());
    /// assert!(server.remove_resource("note://1").is_some());
    /// ```
    pub fn add_resource(&self, resource: ServerResource) -> Option<ServerResource> {
        if let Some(problem) = resource.problem() {
            tracing::error!(resource = resource.uri(), problem, "added a resource that cannot be read");
        }
        let replaced = self.inner.resources.add(resource);
        self.inner.watchers.notify(&ServerChange::Resources);
        replaced
    }

    /// Removes a resource and returns it; `None` if the server has no resource at that URI.
    pub fn remove_resource(&self, uri: &str) -> Option<ServerResource> {
        let removed = self.inner.resources.remove(uri);
        if removed.is_some() {
            self.inner.watchers.notify(&ServerChange::Resources);
        }
        removed
    }

    /// Adds a resource template, also while clients are connected. A template with the same text is replaced and
    /// returned.
    pub fn add_resource_template(&self, template: ServerResourceTemplate) -> Option<ServerResourceTemplate> {
        if let Some(problem) = template.problem() {
            tracing::error!(
                template = template.uri_template(),
                problem,
                "added a resource template that cannot be read"
            );
        }
        let replaced = self.inner.resource_templates.add(template);
        self.inner.watchers.notify(&ServerChange::Resources);
        replaced
    }

    /// Removes a resource template and returns it; `None` if no template has this text.
    pub fn remove_resource_template(&self, uri_template: &str) -> Option<ServerResourceTemplate> {
        let removed = self.inner.resource_templates.remove(uri_template);
        if removed.is_some() {
            self.inner.watchers.notify(&ServerChange::Resources);
        }
        removed
    }

    /// Notifies the clients that have subscribed to a resource that the resource has changed, so that they can read it
    /// again. Never blocks. Changes of a resource are merged while a notification for the same client is queued.
    ///
    /// ```
    /// # let server = steadfast::Server::builder("s", "1").build();
    /// server.resource_updated("note://1");
    /// ```
    pub fn resource_updated(&self, uri: &str) {
        self.inner.watchers.notify(&ServerChange::Updated(uri));
    }

    /// Whether a URI can be read: it is the URI of a resource, or matches a resource template.
    pub(crate) fn has_resource(&self, uri: &str) -> bool {
        self.resource_list().find(uri).is_some()
            || self.resource_template_list().iter().any(|template| template.start(uri).is_some())
    }

    /// The list of resources as it is now.
    pub(crate) fn resource_list(&self) -> Arc<Catalog<ServerResource>> {
        self.inner.resources.now()
    }

    /// The list of resource templates as it is now.
    pub(crate) fn resource_template_list(&self) -> Arc<Catalog<ServerResourceTemplate>> {
        self.inner.resource_templates.now()
    }
}
