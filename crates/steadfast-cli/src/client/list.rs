//! `steadfast list`: what a server has.

use clap::Args;
use serde_json::json;
use steadfast::{Client, Error, ErrorKind};

use super::{Connect, Ending, show};

/// Lists what a server has: its tools, resources, templates and prompts
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    connect: Connect,
}

pub(crate) async fn run(options: Options) -> Result<Ending, Error> {
    let client = options.connect.open().await?;
    let tools = present(client.tools().all().await)?;
    let resources = present(client.resources().all().await)?;
    let templates = present(client.resource_templates().all().await)?;
    let prompts = present(client.prompts().all().await)?;
    if options.connect.json {
        let all = json!({
            "revision": client.revision().as_str(), "server": client.server().info, "tools": tools,
            "resources": resources, "resourceTemplates": templates, "prompts": prompts,
        });
        println!("{all:#}");
    } else {
        greet(&client);
        section("TOOL", tools.into_iter().map(|tool| [tool.name, tool.description.unwrap_or_default()]));
        section("RESOURCE", resources.into_iter().map(|item| [item.uri, item.description.unwrap_or(item.name)]));
        section(
            "TEMPLATE",
            templates.into_iter().map(|item| [item.uri_template, item.description.unwrap_or(item.name)]),
        );
        section("PROMPT", prompts.into_iter().map(|prompt| [prompt.name, prompt.description.unwrap_or_default()]));
    }
    client.close().await;
    Ok(Ending::Done)
}

fn greet(client: &Client) {
    let server = client.server();
    let (name, version) = match &server.info {
        Some(info) => (info.title.as_deref().unwrap_or(&info.name), &*info.version),
        None => ("A server without a name", ""),
    };
    println!("{name} {version} (revision {})", client.revision());
}

fn section(heading: &str, items: impl Iterator<Item = [String; 2]>) {
    let rows: Vec<Vec<String>> = items.map(Vec::from).collect();
    if !rows.is_empty() {
        print!("\n{}", show::table(&[heading, ""], &rows));
    }
}

/// What there is; nothing if the server does not have such a list.
fn present<T>(listed: Result<Vec<T>, Error>) -> Result<Vec<T>, Error> {
    match listed {
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(Vec::new()),
        listed => listed,
    }
}
