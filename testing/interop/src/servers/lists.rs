//! What a server lists, and its notifications of changes.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use steadfast::client::{Change, ChangeStream};
use steadfast::{
    Content, Error, Reference, ResourceContents, SubscriptionFilter,
    model::{PaginatedParams, request},
};

use super::session::{Session, is_refused};

const COUNTER: &str = "interop://counter";

/// How many changes are made until one is notified, and how long to wait for each: a server may drop notifications
/// while its stream is not open yet.
const TRIES: usize = 20;
const WAIT: Duration = Duration::from_millis(500);

pub(crate) fn open(session: &Session) -> Value {
    let capabilities = &session.client.server().server_capabilities;
    let declared = [
        ("tools", capabilities.tools.is_some()),
        ("resources", capabilities.resources.is_some()),
        ("prompts", capabilities.prompts.is_some()),
        ("completions", capabilities.completions.is_some()),
        ("logging", capabilities.logging.is_some()),
    ];
    let declared: Vec<_> = declared.into_iter().filter(|(_, is_declared)| *is_declared).map(|(name, _)| name).collect();
    json!({ "instructions": session.client.instructions(), "declared": declared })
}

pub(crate) async fn tools(session: &Session) -> Result<Value, Error> {
    let tools = session.client.list_tools().await?;
    let add = tools.iter().find(|tool| tool.name == "add");
    let arguments = add.and_then(|tool| tool.input_schema.get("required")).cloned();
    let names: Vec<&String> = tools.iter().map(|tool| &tool.name).collect();
    Ok(json!({ "names": names, "pages": pages(session).await?, "arguments": arguments }))
}

async fn pages(session: &Session) -> Result<usize, Error> {
    let mut pages = 1;
    let mut page = session.client.call::<request::ListTools>(PaginatedParams::new()).await?;
    while let Some(cursor) = page.next_cursor {
        page = session.client.call::<request::ListTools>(PaginatedParams::new().with_cursor(cursor)).await?;
        pages += 1;
    }
    Ok(pages)
}

pub(crate) async fn resources(session: &Session) -> Result<Value, Error> {
    let resources = session.client.resources().all().await?;
    let templates = session.client.resource_templates().all().await?;
    let texts = [read(session, COUNTER).await?, read(session, "interop://greetings/Ada").await?];
    Ok(json!({
        "resources": resources.iter().map(|resource| &resource.uri).collect::<Vec<_>>(),
        "templates": templates.iter().map(|template| &template.uri_template).collect::<Vec<_>>(),
        "texts": texts,
        "not_found": is_refused(read(session, "interop://nowhere").await)?,
    }))
}

/// The text of a resource.
pub(crate) async fn read(session: &Session, uri: &str) -> Result<Value, Error> {
    let read = session.client.read_resource(uri).await?;
    Ok(json!(read.contents.first().and_then(ResourceContents::as_text)))
}

pub(crate) async fn subscribe(session: &Session) -> Result<Value, Error> {
    subscribe_to(session, COUNTER, "touch").await
}

/// Subscribes to a resource that a tool changes.
pub(crate) async fn subscribe_to(session: &Session, uri: &str, tool: &str) -> Result<Value, Error> {
    let filter = SubscriptionFilter::new().with_resource_subscriptions(vec![uri.to_owned()]);
    let mut changes = session.client.changes(filter);
    let listening = is_listening(&mut changes).await?;
    let change = match call_until_changed(session, tool, &mut changes).await? {
        Some(Change::Resource(uri)) => json!(uri),
        other => json!(format!("{other:?}")),
    };
    Ok(json!({ "listening": listening, "change": change }))
}

pub(crate) async fn changed(session: &Session) -> Result<Value, Error> {
    let before = has_grown(session).await?;
    let mut changes = session.client.changes(SubscriptionFilter::new().with_tools_list_changed(true));
    let listening = is_listening(&mut changes).await?;
    let change = matches!(call_until_changed(session, "grow", &mut changes).await?, Some(Change::Tools));
    Ok(json!({ "listening": listening, "change": change, "before": before, "after": has_grown(session).await? }))
}

async fn has_grown(session: &Session) -> Result<bool, Error> {
    Ok(session.client.list_tools().await?.iter().any(|tool| tool.name == "grown"))
}

async fn is_listening(changes: &mut ChangeStream) -> Result<bool, Error> {
    Ok(matches!(changes.next().await.transpose()?, Some(Change::Listening(_))))
}

/// Calls a tool that changes something until the server tells of it.
async fn call_until_changed(
    session: &Session,
    tool: &str,
    changes: &mut ChangeStream,
) -> Result<Option<Change>, Error> {
    for _ in 0..TRIES {
        session.call(tool, json!({})).await?;
        if let Ok(change) = tokio::time::timeout(WAIT, changes.next()).await {
            return change.transpose();
        }
    }
    Ok(None)
}

pub(crate) async fn prompts(session: &Session) -> Result<Value, Error> {
    let prompts = session.client.prompts().all().await?;
    let prompts = prompts.iter().map(|prompt| {
        let arguments = prompt.arguments.iter().map(|argument| json!([argument.name, argument.required]));
        json!([prompt.name, arguments.collect::<Vec<_>>()])
    });
    let prompts: Vec<Value> = prompts.collect();
    let text = filled(session, "explain", [("topic", "tides"), ("audience", "a child")]).await?;
    let unknown = is_refused(filled(session, "no_such_prompt", []).await)?;
    Ok(json!({ "prompts": prompts, "text": text, "unknown": unknown }))
}

/// The first text of a prompt.
pub(crate) async fn filled<const N: usize>(
    session: &Session,
    prompt: &str,
    arguments: [(&str, &str); N],
) -> Result<Value, Error> {
    let filled = session.client.get_prompt(prompt, BTreeMap::from(arguments)).await?;
    Ok(json!(filled.messages.first().map(|message| &message.content).and_then(Content::as_text)))
}

pub(crate) async fn complete(session: &Session) -> Result<Value, Error> {
    let topic = session.client.complete(Reference::prompt("explain"), "topic", "ti").await?;
    let name = session.client.complete(Reference::resource("interop://greetings/{name}"), "name", "A").await?;
    Ok(json!({ "topic": topic.completion.values, "name": name.completion.values }))
}
