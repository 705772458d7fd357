//! `steadfast list`: what a server has.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use steadfast::model::{Implementation, Prompt, Resource, ResourceTemplate, Revision, Tool};
use steadfast::{Client, Error, ErrorKind};

use super::{Connect, Ending, Failure, Launch, ending, harmless, session, show};

/// Lists what a server has: its tools, resources, templates and prompts
#[derive(Args)]
#[command(
    after_help = ending::CODES,
    override_usage = "steadfast list [OPTIONS] <TARGET>\n       steadfast list [OPTIONS] -- <COMMAND>..."
)]
pub(crate) struct Options {
    #[command(flatten)]
    connect: Connect,
    #[command(flatten)]
    launch: Launch,
}

pub(crate) async fn run(options: Options) -> Result<Ending, Failure> {
    let timeout = options.connect.timeout();
    let listed =
        session::with(&options.connect, &options.launch, async |client| Listed::of(client, timeout).await).await?;
    let Some(listed) = listed else { return Ok(Ending::Cancelled) };
    if options.connect.json {
        show::as_json(&listed.as_json())?;
    } else {
        print!("{}", listed.as_tables());
    }
    Ok(Ending::Done)
}

/// All that a server has.
struct Listed {
    revision: Revision,
    server: Option<Implementation>,
    tools: Vec<Tool>,
    resources: Vec<Resource>,
    templates: Vec<ResourceTemplate>,
    prompts: Vec<Prompt>,
}

impl Listed {
    /// Each page may take so long.
    async fn of(client: &Client, timeout: Duration) -> Result<Self, Error> {
        Ok(Self {
            revision: client.revision(),
            server: client.server().info.clone(),
            tools: present(client.tools().timeout(timeout).all().await)?,
            resources: present(client.resources().timeout(timeout).all().await)?,
            templates: present(client.resource_templates().timeout(timeout).all().await)?,
            prompts: present(client.prompts().timeout(timeout).all().await)?,
        })
    }

    fn as_json(&self) -> Value {
        json!({
            "revision": self.revision.as_str(), "server": self.server, "tools": self.tools,
            "resources": self.resources, "resourceTemplates": self.templates, "prompts": self.prompts,
        })
    }

    fn as_tables(&self) -> String {
        let (name, version) = match &self.server {
            Some(info) => (info.title.as_deref().unwrap_or(&info.name), &*info.version),
            None => ("A server without a name", ""),
        };
        let greeting = harmless::line(&format!("{name} {version} (revision {})", self.revision));
        let tools = self.tools.iter().map(|tool| [&*tool.name, tool.description.as_deref().unwrap_or_default()]);
        let resources =
            self.resources.iter().map(|item| [&*item.uri, item.description.as_deref().unwrap_or(&item.name)]);
        let templates =
            self.templates.iter().map(|item| [&*item.uri_template, item.description.as_deref().unwrap_or(&item.name)]);
        let prompts = self.prompts.iter().map(|item| [&*item.name, item.description.as_deref().unwrap_or_default()]);
        let sections = [
            section("TOOL", tools),
            section("RESOURCE", resources),
            section("TEMPLATE", templates),
            section("PROMPT", prompts),
        ];
        format!("{greeting}\n{}", sections.concat())
    }
}

fn section<'a>(heading: &str, items: impl Iterator<Item = [&'a str; 2]>) -> String {
    let rows: Vec<Vec<String>> = items.map(|item| item.map(harmless::line).into()).collect();
    if rows.is_empty() { String::new() } else { format!("\n{}", show::table(&[heading, ""], &rows)) }
}

/// What there is; nothing if the server does not have such a list.
fn present<T>(listed: Result<Vec<T>, Error>) -> Result<Vec<T>, Error> {
    match listed {
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(Vec::new()),
        listed => listed,
    }
}
