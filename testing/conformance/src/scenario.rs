//! The scenario that the suite asks for.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;
use steadfast::client::{ConnectBuilder, NegotiationMode};
use steadfast::transport::http::HttpTarget;
use steadfast::{Client, Error, ErrorKind, JsonObject, Revision};

use crate::authorization::SuiteCredentials;
use crate::{authorization, auto_accept};

/// One scenario.
pub(crate) struct Scenario {
    name: String,
    revision: Option<Revision>,
    context: Context,
    credentials: SuiteCredentials,
}

/// What the suite tells besides.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Context {
    tool_calls: Vec<ToolCall>,
}

/// The scenarios in which there is no user, and nothing that was given to the client says so.
const ALONE: &str = "auth/client-credentials";

#[derive(Deserialize)]
struct ToolCall {
    name: String,
    arguments: JsonObject,
}

impl Scenario {
    pub(crate) fn from_environment() -> Self {
        let variable = |name: &str| std::env::var(format!("MCP_CONFORMANCE_{name}")).ok();
        let context = variable("CONTEXT");
        let credentials = context.as_deref().and_then(|text| serde_json::from_str(text).ok());
        let context = context.as_deref().and_then(|text| serde_json::from_str(text).ok());
        Self {
            name: variable("SCENARIO").unwrap_or_default(),
            revision: variable("PROTOCOL_VERSION").and_then(|name| Revision::parse(&name)),
            context: context.unwrap_or_default(),
            credentials: credentials.unwrap_or_default(),
        }
    }

    pub(crate) async fn run(&self, url: &str) -> Result<(), Box<dyn std::error::Error>> {
        let client = self.connecting(url)?.await?;
        match self.name.as_str() {
            // There is nothing to call.
            "json-schema-ref-no-deref" => client.list_tools().await.map(drop)?,
            "json-schema-2020-12-preservation" => return_schema(&client).await?,
            "http-custom-headers" => self.make_calls(&client).await?,
            _ => use_everything(&client).await?,
        }
        client.close().await;
        Ok(())
    }

    fn connecting(&self, url: &str) -> Result<ConnectBuilder, Box<dyn std::error::Error>> {
        let era = match self.revision {
            Some(revision) if !revision.is_stateless() => NegotiationMode::Handshake(revision),
            Some(_) => NegotiationMode::Stateless,
            None => NegotiationMode::Auto,
        };
        let old = self.revision.is_some_and(|revision| !revision.is_stateless());
        let authorizer = authorization::authorizer(url, &self.credentials, self.name.starts_with(ALONE), old)?;
        let connecting = Client::connect(HttpTarget::new(url).authorize(authorizer))
            .negotiation(era)
            .on_elicit(|asked, _| async move { Ok(auto_accept::fill(&asked)) })
            .on_sample(auto_accept::sample)
            .on_roots(auto_accept::roots);
        Ok(connecting)
    }

    /// The calls that the suite wants, after the tools were listed.
    async fn make_calls(&self, client: &Client) -> Result<(), Error> {
        client.list_tools().await?;
        for call in &self.context.tool_calls {
            client.call_tool(&call.name, &call.arguments).await?;
        }
        Ok(())
    }
}

/// Gives a schema back as it came.
async fn return_schema(client: &Client) -> Result<(), Error> {
    let tools = client.list_tools().await?;
    let schema = tools.iter().find(|tool| tool.name == "json_schema_2020_12_tool").map(|tool| &tool.input_schema);
    client.call_tool("json_schema_echo", json!({ "schema": schema })).await.map(drop)
}

/// Looks at all that the server has, and uses each of it once.
async fn use_everything(client: &Client) -> Result<(), Error> {
    for tool in present(client.list_tools().await)? {
        client.call_tool(&tool.name, auto_accept::arguments(&tool.input_schema)).await?;
    }
    for resource in present(client.resources().all().await)? {
        client.read_resource(&resource.uri).await?;
    }
    for prompt in present(client.prompts().all().await)? {
        let required = prompt.arguments.iter().filter(|argument| argument.required == Some(true));
        let arguments: BTreeMap<_, _> = required.map(|argument| (&*argument.name, "text")).collect();
        client.get_prompt(&prompt.name, arguments).await?;
    }
    Ok(())
}

/// What there is; nothing if the server does not have such a list.
fn present<T>(listed: Result<Vec<T>, Error>) -> Result<Vec<T>, Error> {
    match listed {
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(Vec::new()),
        listed => listed,
    }
}
