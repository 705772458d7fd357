//! The capabilities that clients and servers declare.
//!
//! Up to 2025-11-25 capabilities are declared once, in the handshake; since 2026-07-28 clients declare them with every request
//! and servers in the result of `server/discover`. Unknown members of capabilities are preserved: peers may define capabilities
//! of their own.

use serde::{Deserialize, Serialize};

use crate::json::{ExtraMembers, JsonObject};
use crate::method::Capability;
use crate::setters::setters;

/// The identifier of the tasks extension in the `extensions` of the capabilities.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The MCP capabilities that a client declares.
///
/// ```
/// use steadfast_model::{Capability, ClientCapabilities};
/// let capabilities = ClientCapabilities::new().with_roots(true).with_elicitation_form();
/// assert!(capabilities.has(Capability::Roots));
/// assert!(!capabilities.has(Capability::Sampling));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ClientCapabilities {
    /// Experimental capabilities of the client, which the protocol does not define.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experimental: Option<JsonObject>,
    /// The protocol extensions that the client supports, by identifier, with their settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<JsonObject>,
    /// The client can list its roots for the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roots: Option<ListChangedCapability>,
    /// The client can sample from its model for the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingCapability>,
    /// The client can ask its user for input that the server requests (elicitation).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationCapability>,
    /// The client can run requests of the server as MCP tasks (2025-11-25).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TasksCapability>,
    /// Members of the JSON object that this type has no field for.
    #[serde(flatten)]
    pub extra: ExtraMembers,
}

impl ClientCapabilities {
    /// No capabilities.
    pub fn new() -> Self {
        Self::default()
    }

    /// True if the client declares this capability.
    pub fn has(&self, capability: Capability) -> bool {
        match capability {
            Capability::Roots => self.roots.is_some(),
            Capability::Sampling => self.sampling.is_some(),
            Capability::Elicitation => self.elicitation.is_some(),
            Capability::Tasks => self.tasks.is_some() || self.has_extension(TASKS_EXTENSION),
            Capability::Tools
            | Capability::Prompts
            | Capability::Resources
            | Capability::Completions
            | Capability::Logging => false,
        }
    }

    /// True if the client declares the protocol extension with this identifier.
    pub fn has_extension(&self, identifier: &str) -> bool {
        self.extensions.as_ref().is_some_and(|extensions| extensions.contains_key(identifier))
    }

    /// Adds the client capability `roots`. If `list_changed` is true, the client sends notifications when its roots
    /// change.
    pub fn with_roots(mut self, list_changed: bool) -> Self {
        self.roots = Some(ListChangedCapability::new(list_changed));
        self
    }

    /// Adds the client capability `sampling`.
    pub fn with_sampling(mut self) -> Self {
        self.sampling.get_or_insert_default();
        self
    }

    /// Adds the client capability `sampling` with `tools`, so that the model may use tools.
    pub fn with_sampling_tools(mut self) -> Self {
        self.sampling.get_or_insert_default().tools = Some(JsonObject::new());
        self
    }

    /// Adds the client capability `elicitation` with `form`, for elicitation by form.
    pub fn with_elicitation_form(mut self) -> Self {
        self.elicitation.get_or_insert_default().form = Some(JsonObject::new());
        self
    }

    /// Adds the client capability `elicitation` with `url`, for elicitation by URL.
    pub fn with_elicitation_url(mut self) -> Self {
        self.elicitation.get_or_insert_default().url = Some(JsonObject::new());
        self
    }

    /// Adds a protocol extension and its settings to the capabilities of the client.
    pub fn with_extension(mut self, identifier: impl Into<String>, settings: JsonObject) -> Self {
        self.extensions.get_or_insert_default().insert(identifier.into(), settings.into());
        self
    }
}

setters!(ClientCapabilities {
    with_experimental(experimental: JsonObject),
    with_tasks(tasks: TasksCapability),
});

/// The MCP capabilities that a server declares.
///
/// ```
/// use steadfast_model::ServerCapabilities;
/// let capabilities = ServerCapabilities::new().with_tools(true).with_logging();
/// assert_eq!(serde_json::to_string(&capabilities).unwrap(), r#"{"logging":{},"tools":{"listChanged":true}}"#);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ServerCapabilities {
    /// Experimental capabilities of the server, which the protocol does not define.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experimental: Option<JsonObject>,
    /// The protocol extensions that the server supports, by identifier, with their settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<JsonObject>,
    /// The server can send log messages to the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logging: Option<JsonObject>,
    /// The server completes arguments (since 2025-03-26; before, `completion/complete` needed no capability).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completions: Option<JsonObject>,
    /// The server offers prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<ListChangedCapability>,
    /// The server offers resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesCapability>,
    /// The server offers tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ListChangedCapability>,
    /// The server can run requests of the client as MCP tasks (2025-11-25).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TasksCapability>,
    /// Members of the JSON object that this type has no field for.
    #[serde(flatten)]
    pub extra: ExtraMembers,
}

impl ServerCapabilities {
    /// No capabilities.
    pub fn new() -> Self {
        Self::default()
    }

    /// True if the server declares this capability.
    pub fn has(&self, capability: Capability) -> bool {
        match capability {
            Capability::Tools => self.tools.is_some(),
            Capability::Prompts => self.prompts.is_some(),
            Capability::Resources => self.resources.is_some(),
            Capability::Completions => self.completions.is_some(),
            Capability::Logging => self.logging.is_some(),
            Capability::Tasks => self.tasks.is_some() || self.has_extension(TASKS_EXTENSION),
            Capability::Roots | Capability::Sampling | Capability::Elicitation => false,
        }
    }

    /// True if the server declares the protocol extension with this identifier.
    pub fn has_extension(&self, identifier: &str) -> bool {
        self.extensions.as_ref().is_some_and(|extensions| extensions.contains_key(identifier))
    }

    /// Adds the server capability `tools`. If `list_changed` is true, the server sends notifications when its list of
    /// tools changes.
    pub fn with_tools(mut self, list_changed: bool) -> Self {
        self.tools = Some(ListChangedCapability::new(list_changed));
        self
    }

    /// Adds the server capability `prompts`. If `list_changed` is true, the server sends notifications when its list
    /// of prompts changes.
    pub fn with_prompts(mut self, list_changed: bool) -> Self {
        self.prompts = Some(ListChangedCapability::new(list_changed));
        self
    }

    /// Adds the server capability `resources`. The arguments say whether the server sends notifications when its list
    /// of resources changes, and whether clients may subscribe to single resources.
    pub fn with_resources(mut self, list_changed: bool, subscribe: bool) -> Self {
        self.resources = Some(ResourcesCapability {
            list_changed: list_changed.then_some(true),
            subscribe: subscribe.then_some(true),
        });
        self
    }

    /// Adds the server capability `logging`, for log messages to the client.
    pub fn with_logging(mut self) -> Self {
        self.logging = Some(JsonObject::new());
        self
    }

    /// Adds the server capability `completions`.
    pub fn with_completions(mut self) -> Self {
        self.completions = Some(JsonObject::new());
        self
    }

    /// Adds a protocol extension and its settings to the capabilities of the server.
    pub fn with_extension(mut self, identifier: impl Into<String>, settings: JsonObject) -> Self {
        self.extensions.get_or_insert_default().insert(identifier.into(), settings.into());
        self
    }
}

setters!(ServerCapabilities {
    with_experimental(experimental: JsonObject),
    with_tasks(tasks: TasksCapability),
});

/// A capability whose only setting is whether notifications are sent when its list changes: the list of tools, prompts or
/// roots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListChangedCapability {
    /// The side that declares the capability sends notifications when the list changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

impl ListChangedCapability {
    /// The capability of a list, with or without notifications of its changes.
    pub fn new(list_changed: bool) -> Self {
        Self { list_changed: list_changed.then_some(true) }
    }
}

/// The server's `resources` capability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourcesCapability {
    /// Clients may subscribe to single resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscribe: Option<bool>,
    /// The server sends notifications when its list of resources changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

/// The client's `sampling` capability.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SamplingCapability {
    /// The client can include context of MCP servers in the prompt to its model (deprecated).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<JsonObject>,
    /// The client's model may use tools in sampling (since 2025-11-25).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<JsonObject>,
    /// Members of the JSON object that this type has no field for.
    #[serde(flatten)]
    pub extra: ExtraMembers,
}

/// The client's `elicitation` capability. An empty `elicitation` capability means that the client supports elicitation by form
/// only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ElicitationCapability {
    /// The client supports elicitation by form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<JsonObject>,
    /// The client supports elicitation by a URL that its user visits (since 2025-11-25).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<JsonObject>,
    /// Members of the JSON object that this type has no field for.
    #[serde(flatten)]
    pub extra: ExtraMembers,
}

impl ElicitationCapability {
    /// True if the client supports elicitation by form.
    pub fn has_form(&self) -> bool {
        self.form.is_some() || self.url.is_none()
    }

    /// True if the client supports elicitation by URL: asking its user to visit a URL.
    pub fn has_url(&self) -> bool {
        self.url.is_some()
    }
}

/// The `tasks` capability of 2025-11-25, which clients and servers can declare.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TasksCapability {
    /// The client or server that declares this capability supports `tasks/list`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<JsonObject>,
    /// The client or server that declares this capability supports `tasks/cancel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<JsonObject>,
    /// The requests that the declaring side can run as tasks: `{"tools": {"call": {}}}` and the like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<JsonObject>,
}

impl TasksCapability {
    /// True if requests of one kind can be run as MCP tasks; `covers("tools", "call")` asks about `tools/call`
    /// requests.
    pub fn covers(&self, group: &str, request: &str) -> bool {
        let group = self.requests.as_ref().and_then(|requests| requests.get(group));
        group.is_some_and(|group| group.get(request).is_some())
    }
}

setters!(TasksCapability {
    with_list(list: JsonObject),
    with_cancel(cancel: JsonObject),
    with_requests(requests: JsonObject),
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_members_are_preserved() {
        let text = r#"{"tools":{},"x-vendor":{"a":[1]}}"#;
        let capabilities: ServerCapabilities = serde_json::from_str(text).unwrap();
        assert!(capabilities.has(Capability::Tools));
        assert_eq!(serde_json::to_string(&capabilities).unwrap(), text);
    }

    #[test]
    fn an_empty_elicitation_capability_means_forms() {
        let empty = ElicitationCapability::default();
        assert!(empty.has_form() && !empty.has_url());
        let url: ElicitationCapability = serde_json::from_str(r#"{"url":{}}"#).unwrap();
        assert!(!url.has_form() && url.has_url());
    }

    #[test]
    fn tasks_are_declared_in_the_core_or_as_an_extension() {
        let core: ServerCapabilities = serde_json::from_str(r#"{"tasks":{"cancel":{}}}"#).unwrap();
        let extension = ServerCapabilities::new().with_extension(TASKS_EXTENSION, JsonObject::new());
        assert!(core.has(Capability::Tasks) && extension.has(Capability::Tasks));
        assert!(!ServerCapabilities::new().has(Capability::Tasks));
    }
}
