//! The methods of `Client` that send requests: one per request of the protocol.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use steadfast_model::{
    CallToolParams, CompleteParams, EmptyParams, GetPromptParams, InputResponses, LoggingLevel, Method, Prompt,
    ReadResourceParams, Reference, Resource, ResourceTemplate, ResourceUriParams, SetLevelParams, TaskParams, Tool,
    UpdateTaskParams, request,
};

use super::Client;
use super::call::Call;
use super::listing::ItemStream;
use crate::error::Error;
use crate::runtime::OutboundNotifications;

/// Tools.
impl Client {
    /// Lists the server's tools, page by page.
    pub fn tools(&self) -> ItemStream<request::ListTools> {
        ItemStream::new(self.clone())
    }

    /// Lists the server's tools, all pages.
    pub async fn list_tools(&self) -> Result<Vec<Tool>, Error> {
        self.tools().all().await
    }

    /// Calls a tool. The arguments of the tool are any value that serializes to a JSON object, or `()` for none.
    pub fn call_tool(&self, name: impl Into<String>, arguments: impl Serialize) -> Call<request::CallTool> {
        let mut params = CallToolParams::new(name);
        match serde_json::to_value(arguments) {
            Ok(Value::Object(arguments)) => params.arguments = Some(arguments),
            Ok(Value::Null) => {}
            Ok(_) => {
                return Call::failed(
                    self.clone(),
                    Error::usage("the arguments of a tool must serialize to a JSON object"),
                );
            }
            Err(error) => return Call::failed(self.clone(), Error::encode(error)),
        }
        self.call(params)
    }
}

/// Resources.
impl Client {
    /// Lists the server's resources, page by page.
    pub fn resources(&self) -> ItemStream<request::ListResources> {
        ItemStream::new(self.clone())
    }

    /// Lists the server's resources, all pages.
    pub async fn list_resources(&self) -> Result<Vec<Resource>, Error> {
        self.resources().all().await
    }

    /// Lists the server's resource templates, page by page.
    pub fn resource_templates(&self) -> ItemStream<request::ListResourceTemplates> {
        ItemStream::new(self.clone())
    }

    /// Lists the server's resource templates, all pages.
    pub async fn list_resource_templates(&self) -> Result<Vec<ResourceTemplate>, Error> {
        self.resource_templates().all().await
    }

    /// Reads a resource.
    pub fn read_resource(&self, uri: impl Into<String>) -> Call<request::ReadResource> {
        self.call(ReadResourceParams::new(uri))
    }

    /// Subscribes to changes of a resource (revisions up to 2025-11-25). [`changes`](Client::changes) subscribes to
    /// resources in every revision, and returns the changes as a stream.
    pub fn subscribe(&self, uri: impl Into<String>) -> Call<request::Subscribe> {
        self.call(ResourceUriParams::new(uri))
    }

    /// Unsubscribes from changes of a resource (revisions up to 2025-11-25).
    pub fn unsubscribe(&self, uri: impl Into<String>) -> Call<request::Unsubscribe> {
        self.call(ResourceUriParams::new(uri))
    }
}

/// Prompts and completion.
impl Client {
    /// Lists the server's prompts, page by page.
    pub fn prompts(&self) -> ItemStream<request::ListPrompts> {
        ItemStream::new(self.clone())
    }

    /// Lists the server's prompts, all pages.
    pub async fn list_prompts(&self) -> Result<Vec<Prompt>, Error> {
        self.prompts().all().await
    }

    /// Gets the messages of a prompt. The arguments of the prompt are any value that serializes to a JSON object, or
    /// `()` for none. Arguments of a prompt are sent as strings: numbers and booleans are converted, and members that
    /// are `null` are left out.
    ///
    /// ```
    /// # async fn example(client: steadfast::Client) -> Result<(), steadfast::Error> {
    /// use serde_json::json;
    ///
    /// let prompt = client.get_prompt("review", json!({ "code": "fn main() {}", "strictness": 9 })).await?;
    /// let greeting = client.get_prompt("greeting", ()).await?;
    /// # Ok(()) }
    /// ```
    pub fn get_prompt(&self, name: impl Into<String>, arguments: impl Serialize) -> Call<request::GetPrompt> {
        match prompt_arguments(arguments) {
            Ok(arguments) => {
                let mut params = GetPromptParams::new(name);
                params.arguments = Some(arguments).filter(|arguments| !arguments.is_empty());
                self.call(params)
            }
            Err(error) => Call::failed(self.clone(), error),
        }
    }

    /// Requests completions for an argument of a prompt or a variable of a resource template. `value` is the text that
    /// the user has typed so far.
    ///
    /// ```
    /// # use steadfast::Reference;
    /// # async fn example(client: steadfast::Client) -> Result<(), steadfast::Error> {
    /// let cities = client.complete(Reference::prompt("trip"), "city", "Ber").await?.completion.values;
    /// # Ok(()) }
    /// ```
    pub fn complete(
        &self,
        reference: Reference,
        argument: impl Into<String>,
        value: impl Into<String>,
    ) -> Call<request::Complete> {
        self.call(CompleteParams::new(reference, argument, value))
    }
}

/// MCP tasks. The client polls the MCP task of a call itself; these methods are for programs that handle MCP tasks on
/// their own.
impl Client {
    /// Gets the status of an MCP task.
    pub fn get_task(&self, id: impl Into<String>) -> Call<request::GetTask> {
        self.call(TaskParams::new(id))
    }

    /// Waits for the result of an MCP task (2025-11-25): the result of the request that became the task.
    pub fn task_result(&self, id: impl Into<String>) -> Call<request::GetTaskPayload> {
        self.call(TaskParams::new(id))
    }

    /// Lists the MCP tasks that the server has for this client (2025-11-25), page by page.
    pub fn tasks(&self) -> ItemStream<request::ListTasks> {
        ItemStream::new(self.clone())
    }

    /// Cancels an MCP task.
    pub fn cancel_task(&self, id: impl Into<String>) -> Call<request::CancelTask> {
        self.call(TaskParams::new(id))
    }

    /// Answers the input requests of an MCP task (since 2026-07-28).
    pub fn update_task(&self, id: impl Into<String>, responses: InputResponses) -> Call<request::UpdateTask> {
        self.call(UpdateTaskParams::new(id, responses))
    }
}

/// The connection.
impl Client {
    /// Requests the server's capabilities (since 2026-07-28), which may have changed since the client connected.
    pub fn discover(&self) -> Call<request::Discover> {
        self.call(EmptyParams::default())
    }

    /// Pings the server (revisions up to 2025-11-25).
    pub fn ping(&self) -> Call<request::Ping> {
        self.call(EmptyParams::default())
    }

    /// Notifies the server that the client's roots have changed, if the client has declared `roots.listChanged`. Since
    /// 2026-07-28 there is no notification of changed roots: a server asks for the roots when it needs them.
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
            OutboundNotifications::new(&self.inner.connection.live().mailbox, None)
                .post(Method::RootsListChanged, None);
        }
    }

    /// Sets the minimum level of the log messages that the server sends (revisions up to 2025-11-25).
    /// [`logs`](Client::logs) sets the log level in every revision, and returns the messages as a stream.
    pub fn set_log_level(&self, level: LoggingLevel) -> Call<request::SetLevel> {
        self.call(SetLevelParams::new(level))
    }
}

/// Converts the arguments of a prompt to strings, as the protocol requires.
fn prompt_arguments(arguments: impl Serialize) -> Result<BTreeMap<String, String>, Error> {
    let arguments = match serde_json::to_value(arguments).map_err(Error::encode)? {
        Value::Object(arguments) => arguments,
        Value::Null => return Ok(BTreeMap::new()),
        _ => return Err(Error::usage("the arguments of a prompt must serialize to a JSON object")),
    };
    let mut strings = BTreeMap::new();
    for (name, value) in arguments {
        let text = match value {
            Value::String(text) => text,
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            Value::Null => continue,
            Value::Array(_) | Value::Object(_) => {
                let message = format!("the argument `{name}` of a prompt must be a string, a number or a boolean");
                return Err(Error::usage(message));
            }
        };
        strings.insert(name, text);
    }
    Ok(strings)
}
