//! `steadfast list`: what a server has.

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};
use steadfast::model::{Prompt, PromptArgument, Resource, ResourceTemplate, Tool};
use steadfast::{Client, Error, ErrorKind, code};

use super::layout::{Page, Row};
use super::session::Ended;
use super::{Connect, Ending, Failure, Launch, advice, ending, harmless, schema, session, show};
use crate::output;

/// Lists what a server has: its tools, resources, templates and prompts
#[derive(Args)]
#[command(
    after_help = ending::help("steadfast list 'npx -y @modelcontextprotocol/server-everything' tools"),
    override_usage = "steadfast list [OPTIONS] <TARGET> [WHAT]\n       steadfast list [OPTIONS] [WHAT] -- <COMMAND>..."
)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) connect: Connect,
    /// Only these: tools, resources, templates or prompts
    what: Option<String>,
    #[command(flatten)]
    launch: Launch,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    Tools,
    Resources,
    Templates,
    Prompts,
}

pub(crate) async fn run(mut options: Options) -> Result<Ending, Failure> {
    let what = options.connect.sort_optional(options.what.take(), &options.launch)?;
    let what = what.map(|what| What::from_str(&what, true)).transpose();
    let what = what.map_err(|_| Error::usage("what there is to list: tools, resources, templates or prompts"))?;
    let timeout = options.connect.timeout();
    let listed = session::with(&options.connect, &options.launch, async |client| {
        Listed::of(client, what, timeout).await.map_err(Failure::from)
    });
    let listed = match listed.await? {
        Ended::Done(listed) => listed,
        Ended::GivenUp(interrupt) => return Ok(Ending::Cancelled(interrupt)),
    };
    if options.connect.json {
        show::as_json(&listed.as_json())?;
    } else {
        output::print(&listed.as_tables(Page::of_stdout())).map_err(Failure::unwritten)?;
    }
    Ok(Ending::Done)
}

/// What a server has, as far as it was asked for.
struct Listed {
    about: Map<String, Value>,
    greeting: String,
    instructions: Option<String>,
    tools: Option<Vec<Tool>>,
    resources: Option<Vec<Resource>>,
    templates: Option<Vec<ResourceTemplate>>,
    prompts: Option<Vec<Prompt>>,
}

impl Listed {
    /// Each page may take so long.
    async fn of(client: &Client, what: Option<What>, timeout: Duration) -> Result<Self, Error> {
        let wanted = |kind: What| what.is_none_or(|what| what == kind);
        let mut listed = Self {
            about: about(client),
            greeting: greeting(client),
            instructions: client.instructions().filter(|_| what.is_none()),
            tools: None,
            resources: None,
            templates: None,
            prompts: None,
        };
        if wanted(What::Tools) {
            listed.tools = Some(present(client.tools().timeout(timeout).all().await, what)?);
        }
        if wanted(What::Resources) {
            listed.resources = Some(present(client.resources().timeout(timeout).all().await, what)?);
        }
        if wanted(What::Templates) {
            listed.templates = Some(present(client.resource_templates().timeout(timeout).all().await, what)?);
        }
        if wanted(What::Prompts) {
            listed.prompts = Some(present(client.prompts().timeout(timeout).all().await, what)?);
        }
        Ok(listed)
    }

    fn as_json(&self) -> Value {
        let mut all = self.about.clone();
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

    fn as_tables(&self, page: Page) -> String {
        let instructions = self.instructions.as_deref().map(|words| harmless::quoted(words.trim()));
        let sections = [
            format!("{}\n", self.greeting),
            instructions.map_or_else(String::new, |words| format!("  | {words}\n")),
            section(page, "TOOLS", self.tools.as_deref(), tool),
            section(page, "RESOURCES", self.resources.as_deref(), |item| vec![resource(item)]),
            section(page, "RESOURCE TEMPLATES", self.templates.as_deref(), |item| vec![template(item)]),
            section(page, "PROMPTS", self.prompts.as_deref(), prompt),
        ];
        sections.concat()
    }
}

/// What the server says of itself.
fn about(client: &Client) -> Map<String, Value> {
    let server = client.server();
    let mut about = Map::new();
    about.insert("revision".to_owned(), server.revision.as_str().into());
    about.insert("server".to_owned(), json!(server.info));
    about.insert("capabilities".to_owned(), json!(server.server_capabilities));
    about.insert("instructions".to_owned(), json!(client.instructions()));
    about
}

fn greeting(client: &Client) -> String {
    let server = client.server();
    let (name, version) = match &server.info {
        Some(info) => (info.title.as_deref().unwrap_or(&info.name), &*info.version),
        None => ("A server without a name", ""),
    };
    harmless::line(&format!("{name} {version} (revision {})", server.revision))
}

/// One list, if it was asked for. An empty one is not worth a heading.
fn section<T>(page: Page, heading: &str, items: Option<&[T]>, rows: impl Fn(&T) -> Vec<Row>) -> String {
    match items {
        None | Some([]) => String::new(),
        Some(items) => {
            let rows: Vec<Row> = items.iter().flat_map(rows).collect();
            format!("\n{}{}", page.heading(heading), page.table(&rows))
        }
    }
}

fn tool(tool: &Tool) -> Vec<Row> {
    let mut rows = vec![item(&tool.name, &[&tool.description, &tool.title])];
    rows.extend(schema::parameters(&tool.input_schema).iter().map(advice::row));
    rows
}

fn resource(resource: &Resource) -> Row {
    let name = Some(resource.name.clone());
    let row = item(&resource.uri, &[&resource.description, &resource.title, &name]);
    with_media_type(row, resource.mime_type.as_deref())
}

fn template(template: &ResourceTemplate) -> Row {
    let name = Some(template.name.clone());
    let row = item(&template.uri_template, &[&template.description, &template.title, &name]);
    with_media_type(row, template.mime_type.as_deref())
}

fn prompt(prompt: &Prompt) -> Vec<Row> {
    let mut rows = vec![item(&prompt.name, &[&prompt.description, &prompt.title])];
    rows.extend(prompt.arguments.iter().map(prompt_argument));
    rows
}

/// An argument of a prompt, as a row below it.
pub(super) fn prompt_argument(argument: &PromptArgument) -> Row {
    let needed = if argument.required == Some(true) { "required" } else { "optional" };
    let about = match argument.description.as_deref().or(argument.title.as_deref()) {
        Some(description) => format!("{needed}: {description}"),
        None => needed.to_owned(),
    };
    Row { name: harmless::line(&argument.name), about: harmless::paragraph(&about), inner: true }
}

/// An entry, with the first that is said about it.
fn item(name: &str, about: &[&Option<String>]) -> Row {
    let about = about.iter().find_map(|words| words.as_deref()).unwrap_or_default();
    Row { name: harmless::line(name), about: harmless::paragraph(about), inner: false }
}

fn with_media_type(row: Row, media_type: Option<&str>) -> Row {
    let Some(media_type) = media_type else { return row };
    Row { about: format!("{} [{}]", row.about, harmless::line(media_type)), ..row }
}

/// What there is; nothing if the server does not have such a list. Some declare that they have it and do not know its method:
/// that is told to who asked for just this list, and keeps nobody else from the others.
fn present<T>(listed: Result<Vec<T>, Error>, what: Option<What>) -> Result<Vec<T>, Error> {
    let is_unknown =
        |error: &Error| error.refusal().is_some_and(|refusal| refusal.code == code::METHOD_NOT_FOUND) && what.is_none();
    match listed {
        Err(error) if error.kind() == ErrorKind::Unsupported || is_unknown(&error) => Ok(Vec::new()),
        listed => listed,
    }
}
