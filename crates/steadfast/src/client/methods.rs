//! The requests of the protocol, by name.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use steadfast_model::{
    CallToolParams, CompleteParams, EmptyParams, GetPromptParams, LoggingLevel, Method, ReadResourceParams, Reference,
    ResourceParams, SetLevelParams, Tool, request,
};

use super::Client;
use super::call::Call;
use super::pages::Items;
use crate::error::Error;
use crate::runtime::Notices;

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

    /// Calls a tool. Arguments are anything that serializes to an object.
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

    /// The server's resource templates.
    pub fn resource_templates(&self) -> Items<request::ListResourceTemplates> {
        Items::new(self.clone())
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

/// The connection.
impl Client {
    /// Asks whether the server is there (revisions up to 2025-11-25).
    pub async fn ping(&self) -> Result<(), Error> {
        self.call::<request::Ping>(EmptyParams::default()).await.map(drop)
    }

    /// Tells the server that the roots have changed, if it was declared that this is told. Since 2026-07-28 there is nothing
    /// to tell: a server asks when it needs them.
    pub fn roots_changed(&self) {
        if self.inner.line.opener.capabilities.roots.as_ref().is_some_and(|roots| roots.list_changed == Some(true)) {
            Notices::new(&self.inner.line.link().mailbox, None).post(Method::RootsListChanged, None);
        }
    }

    /// Asks for log messages of that severity and above (revisions up to 2025-11-25).
    pub fn set_log_level(&self, level: LoggingLevel) -> Call<request::SetLevel> {
        self.call(SetLevelParams::new(level))
    }
}
