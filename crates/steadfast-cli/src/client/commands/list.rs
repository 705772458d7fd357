//! `steadfast list`: lists the tools, resources, resource templates and prompts of a server.

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};
use steadfast::model::{Prompt, PromptArgument, Resource, ResourceTemplate, Tool};
use steadfast::{Client, Error, ErrorKind, model::code};

use crate::client::connection::session;
use crate::client::connection::session::CliSessionEnd;
use crate::client::display::table::{TableRow, TableStyle};
use crate::client::display::{content, hints, sanitize};
use crate::client::{CliCommandFailure, CliConnectOptions, CliExitStatus, ServerCommand, exit, schema};
use crate::output;

/// Lists the tools, resources, resource templates and prompts of a server
#[derive(Args)]
#[command(
    after_help = exit::help("steadfast list 'npx -y @modelcontextprotocol/server-everything' tools"),
    override_usage = "steadfast list [OPTIONS] <TARGET> [WHAT]\n       steadfast list [OPTIONS] [WHAT] -- <COMMAND>..."
)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) connect: CliConnectOptions,
    /// List only one kind of item: tools, resources, templates or prompts
    what: Option<String>,
    #[command(flatten)]
    server_command: ServerCommand,
}

/// The kind of item that the command `steadfast list` is asked to show.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ListCommandItemKind {
    Tools,
    Resources,
    Templates,
    Prompts,
}

pub(crate) async fn run(mut options: ListArgs) -> Result<CliExitStatus, CliCommandFailure> {
    let what = options.connect.take_optional_operand(options.what.take(), &options.server_command)?;
    let what = what.map(|what| ListCommandItemKind::from_str(&what, true)).transpose();
    let what = what.map_err(|_| Error::usage("unknown list: use tools, resources, templates or prompts"))?;
    let timeout = options.connect.timeout();
    let listed = session::run(&options.connect, &options.server_command, async |client| {
        ListCommandOutput::fetch(client, what, timeout).await.map_err(CliCommandFailure::from)
    });
    let listed = match listed.await? {
        CliSessionEnd::Finished(listed) => listed,
        CliSessionEnd::Interrupted(interrupt) => return Ok(CliExitStatus::Interrupted(interrupt)),
    };
    if options.connect.json {
        content::print_json(&listed.as_json())?;
    } else {
        output::print(&listed.as_tables(TableStyle::of_stdout())).map_err(CliCommandFailure::output)?;
    }
    Ok(CliExitStatus::Success)
}

/// The tools, resources and prompts of a server, for `steadfast list`. A list that was not requested is `None`.
struct ListCommandOutput {
    server: Map<String, Value>,
    title: String,
    instructions: Option<String>,
    tools: Option<Vec<Tool>>,
    resources: Option<Vec<Resource>>,
    templates: Option<Vec<ResourceTemplate>>,
    prompts: Option<Vec<Prompt>>,
}

impl ListCommandOutput {
    /// Requests the lists from the server. The timeout applies to each page of a list.
    async fn fetch(client: &Client, what: Option<ListCommandItemKind>, timeout: Duration) -> Result<Self, Error> {
        let is_requested = |kind: ListCommandItemKind| what.is_none_or(|what| what == kind);
        let mut listed = Self {
            server: server_json(client),
            title: title(client),
            instructions: client.instructions().filter(|_| what.is_none()),
            tools: None,
            resources: None,
            templates: None,
            prompts: None,
        };
        if is_requested(ListCommandItemKind::Tools) {
            listed.tools = Some(or_empty(client.tools().timeout(timeout).all().await, what)?);
        }
        if is_requested(ListCommandItemKind::Resources) {
            listed.resources = Some(or_empty(client.resources().timeout(timeout).all().await, what)?);
        }
        if is_requested(ListCommandItemKind::Templates) {
            listed.templates = Some(or_empty(client.resource_templates().timeout(timeout).all().await, what)?);
        }
        if is_requested(ListCommandItemKind::Prompts) {
            listed.prompts = Some(or_empty(client.prompts().timeout(timeout).all().await, what)?);
        }
        Ok(listed)
    }

    fn as_json(&self) -> Value {
        let mut all = self.server.clone();
        let lists = [
            ("tools", self.tools.as_ref().map(|tools| json!(tools))),
            ("resources", self.resources.as_ref().map(|resources| json!(resources))),
            ("resourceTemplates", self.templates.as_ref().map(|templates| json!(templates))),
            ("prompts", self.prompts.as_ref().map(|prompts| json!(prompts))),
        ];
        for (name, list) in lists {
            all.extend(list.map(|list| (name.to_owned(), list)));
        }
        all.into()
    }

    fn as_tables(&self, style: TableStyle) -> String {
        let instructions = self.instructions.as_deref().map(|words| sanitize::quoted(words.trim()));
        let sections = [
            format!("{}\n", self.title),
            instructions.map_or_else(String::new, |words| format!("  | {words}\n")),
            section(style, "TOOLS", self.tools.as_deref(), tool),
            section(style, "RESOURCES", self.resources.as_deref(), |item| vec![resource(item)]),
            section(style, "RESOURCE TEMPLATES", self.templates.as_deref(), |item| vec![template(item)]),
            section(style, "PROMPTS", self.prompts.as_deref(), prompt),
        ];
        sections.concat()
    }
}

/// Revision, name, capabilities and instructions of the server, for `--json`.
fn server_json(client: &Client) -> Map<String, Value> {
    let server = client.server();
    let mut about = Map::new();
    about.insert("revision".to_owned(), server.revision.as_str().into());
    about.insert("server".to_owned(), json!(server.info));
    about.insert("capabilities".to_owned(), json!(server.server_capabilities));
    about.insert("instructions".to_owned(), json!(client.instructions()));
    about
}

fn title(client: &Client) -> String {
    let server = client.server();
    let (name, version) = match &server.info {
        Some(info) => (info.title.as_deref().unwrap_or(&info.name), &*info.version),
        None => ("Unnamed server", ""),
    };
    sanitize::line(&format!("{name} {version} (revision {})", server.revision))
}

/// Formats a list of the server with its heading; the text is empty if the list is empty or was not requested.
fn section<T>(style: TableStyle, heading: &str, items: Option<&[T]>, rows: impl Fn(&T) -> Vec<TableRow>) -> String {
    match items {
        None | Some([]) => String::new(),
        Some(items) => {
            let rows: Vec<TableRow> = items.iter().flat_map(rows).collect();
            format!("\n{}{}", style.heading(heading), style.table(&rows))
        }
    }
}

fn tool(tool: &Tool) -> Vec<TableRow> {
    let mut rows = vec![item(&tool.name, &[&tool.description, &tool.title])];
    rows.extend(schema::parameters(&tool.input_schema).iter().map(hints::parameter_row));
    rows
}

fn resource(resource: &Resource) -> TableRow {
    let name = Some(resource.name.clone());
    let row = item(&resource.uri, &[&resource.description, &resource.title, &name]);
    with_media_type(row, resource.mime_type.as_deref())
}

fn template(template: &ResourceTemplate) -> TableRow {
    let name = Some(template.name.clone());
    let row = item(&template.uri_template, &[&template.description, &template.title, &name]);
    with_media_type(row, template.mime_type.as_deref())
}

fn prompt(prompt: &Prompt) -> Vec<TableRow> {
    let mut rows = vec![item(&prompt.name, &[&prompt.description, &prompt.title])];
    rows.extend(prompt.arguments.iter().map(prompt_argument));
    rows
}

/// An argument of a prompt, as a nested row of a table.
pub(crate) fn prompt_argument(argument: &PromptArgument) -> TableRow {
    let presence = if argument.required == Some(true) { "required" } else { "optional" };
    let about = match argument.description.as_deref().or(argument.title.as_deref()) {
        Some(description) => format!("{presence}: {description}"),
        None => presence.to_owned(),
    };
    TableRow { name: sanitize::line(&argument.name), about: sanitize::paragraph(&about), nested: true }
}

/// A row of a table, with the first of the given descriptions that is set.
fn item(name: &str, about: &[&Option<String>]) -> TableRow {
    let about = about.iter().find_map(|words| words.as_deref()).unwrap_or_default();
    TableRow { name: sanitize::line(name), about: sanitize::paragraph(about), nested: false }
}

fn with_media_type(row: TableRow, media_type: Option<&str>) -> TableRow {
    let Some(media_type) = media_type else { return row };
    TableRow { about: format!("{} [{}]", row.about, sanitize::line(media_type)), ..row }
}

/// The received list, or an empty list if the server does not support it. Some servers declare a capability and do not know its
/// list method: that is an error only if the user asked for just this list.
fn or_empty<T>(listed: Result<Vec<T>, Error>, what: Option<ListCommandItemKind>) -> Result<Vec<T>, Error> {
    let is_unknown =
        |error: &Error| error.refusal().is_some_and(|refusal| refusal.code == code::METHOD_NOT_FOUND) && what.is_none();
    match listed {
        Err(error) if error.kind() == ErrorKind::Unsupported || is_unknown(&error) => Ok(Vec::new()),
        listed => listed,
    }
}
