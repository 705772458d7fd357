//! The requests of the protocol, by name.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use steadfast_model::{
    CallToolParams, CompleteParams, EmptyParams, GetPromptParams, InputResponses, LoggingLevel, Method, Prompt,
    ReadResourceParams, Reference, Resource, ResourceParams, ResourceTemplate, SetLevelParams, TaskParams, Tool,
    UpdateTaskParams, request,
};

use super::Client;
use super::call::Call;
use super::listing::Items;
use crate::error::Error;
use crate::runtime::PendingNotifications;

/// Tools.
impl Client {
    /// The server's tools.
    pub fn tools(&self) -> Items<request::ListTools> {
        Items::new(self.clone())
    }

    /// The server's tools, all pages of them.
    pub async fn list_tools(&self) -> Result<Vec<Tool>, Error> {
        self.tools().all().await
    }

    /// Calls a tool. Arguments are anything that serializes to an object, or `()` for none.
    pub fn call_tool(&self, name: impl Into<String>, arguments: impl Serialize) -> Call<request::CallTool> {
        let mut params = CallToolParams::new(name);
        match serde_json::to_value(arguments) {
            Ok(Value::Object(arguments)) => params.arguments = Some(arguments),
            Ok(Value::Null) => {}
            Ok(_) => return Call::failed(self.clone(), Error::usage("the arguments of a tool are an object")),
            Err(error) => return Call::failed(self.clone(), Error::encode(error)),
        }
        self.call(params)
    }
}

/// Resources.
impl Client {
    /// The server's resources.
    pub fn resources(&self) -> Items<request::ListResources> {
        Items::new(self.clone())
    }

    /// The server's resources, all pages of them.
    pub async fn list_resources(&self) -> Result<Vec<Resource>, Error> {
        self.resources().all().await
    }

    /// The server's resource templates.
    pub fn resource_templates(&self) -> Items<request::ListResourceTemplates> {
        Items::new(self.clone())
    }

    /// The server's resource templates, all pages of them.
    pub async fn list_resource_templates(&self) -> Result<Vec<ResourceTemplate>, Error> {
        self.resource_templates().all().await
    }

    /// Reads a resource.
    pub fn read_resource(&self, uri: impl Into<String>) -> Call<request::ReadResource> {
        self.call(ReadResourceParams::new(uri))
    }

    /// Asks to be told when a resource changes (revisions up to 2025-11-25).
    pub fn subscribe(&self, uri: impl Into<String>) -> Call<request::Subscribe> {
        self.call(ResourceParams::new(uri))
    }

    /// Asks not to be told any more (revisions up to 2025-11-25).
    pub fn unsubscribe(&self, uri: impl Into<String>) -> Call<request::Unsubscribe> {
        self.call(ResourceParams::new(uri))
    }
}

/// Prompts and completion.
impl Client {
    /// The server's prompts.
    pub fn prompts(&self) -> Items<request::ListPrompts> {
        Items::new(self.clone())
    }

    /// The server's prompts, all pages of them.
    pub async fn list_prompts(&self) -> Result<Vec<Prompt>, Error> {
        self.prompts().all().await
    }

    /// Fills in a prompt. Its arguments are texts.
    ///
    /// ```
    /// # async fn example(client: steadfast::Client) -> Result<(), steadfast::Error> {
    /// let filled = client.get_prompt("review", [("code", "fn main() {}"), ("strictness", "9")]).await?;
    /// # Ok(()) }
    /// ```
    pub fn get_prompt<K: Into<String>, V: Into<String>>(
        &self,
        name: impl Into<String>,
        arguments: impl IntoIterator<Item = (K, V)>,
    ) -> Call<request::GetPrompt> {
        let mut params = GetPromptParams::new(name);
        let arguments: BTreeMap<_, _> =
            arguments.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        params.arguments = Some(arguments).filter(|arguments| !arguments.is_empty());
        self.call(params)
    }

    /// What an argument of a prompt, or a variable of a resource template, may be completed to.
    ///
    /// ```
    /// # use steadfast::Reference;
    /// # async fn example(client: steadfast::Client) -> Result<(), steadfast::Error> {
    /// let cities = client.complete(Reference::prompt("trip"), "city", "Ber").await?.completion.values;
    /// # Ok(()) }
    /// ```
    pub fn complete(
        &self,
        of: Reference,
        argument: impl Into<String>,
        so_far: impl Into<String>,
    ) -> Call<request::Complete> {
        self.call(CompleteParams::new(of, argument, so_far))
    }
}

/// Tasks. A call that becomes one is followed by itself, if the client has declared that it takes tasks; these are for tasks
/// that the program follows in its own way.
impl Client {
    /// How a task is doing.
    pub fn get_task(&self, id: impl Into<String>) -> Call<request::GetTask> {
        self.call(TaskParams::new(id))
    }

    /// Waits for the result of a task (2025-11-25): that of the request that became the task.
    pub fn task_result(&self, id: impl Into<String>) -> Call<request::GetTaskPayload> {
        self.call(TaskParams::new(id))
    }

    /// The tasks that the server has for this client (2025-11-25).
    pub fn tasks(&self) -> Items<request::ListTasks> {
        Items::new(self.clone())
    }

    /// Gives a task up.
    pub fn cancel_task(&self, id: impl Into<String>) -> Call<request::CancelTask> {
        self.call(TaskParams::new(id))
    }

    /// Gives a task what it asked for (since 2026-07-28).
    pub fn update_task(&self, id: impl Into<String>, responses: InputResponses) -> Call<request::UpdateTask> {
        self.call(UpdateTaskParams::new(id, responses))
    }
}

/// The connection.
impl Client {
    /// Asks what the server is, once more (since 2026-07-28): its capabilities may have changed since the client connected.
    pub fn discover(&self) -> Call<request::Discover> {
        self.call(EmptyParams::default())
    }

    /// Asks whether the server is there (revisions up to 2025-11-25).
    pub async fn ping(&self) -> Result<(), Error> {
        self.call::<request::Ping>(EmptyParams::default()).await.map(drop)
    }

    /// Tells the server that the roots have changed, if it was declared that this is told. Since 2026-07-28 there is nothing
    /// to tell: a server asks when it needs them.
    pub fn roots_changed(&self) {
        if self
            .inner
            .connection
            .opener
            .capabilities
            .roots
            .as_ref()
            .is_some_and(|roots| roots.list_changed == Some(true))
        {
            PendingNotifications::new(&self.inner.connection.live().mailbox, None).post(Method::RootsListChanged, None);
        }
    }

    /// Asks for log messages of that severity and above (revisions up to 2025-11-25). [`logs`](Client::logs) does, and gives
    /// them out.
    pub fn set_log_level(&self, level: LoggingLevel) -> Call<request::SetLevel> {
        self.call(SetLevelParams::new(level))
    }
}
