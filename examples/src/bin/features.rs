//! Tools, prompts and resources of one server, and a client that uses them all.
//!
//! Models call tools, users start from prompts, and applications read resources. All three are plain methods of one value,
//! which they share.

use std::collections::BTreeMap;
use std::sync::Mutex;

use steadfast::prelude::*;
use steadfast::{
    CompleteContext, Reference, ResourceContents, Role,
    model::{CompleteParams, GetPromptParams, PaginatedParams, ReadResourceParams, request},
};

#[derive(Default)]
struct Notes {
    notes: Mutex<BTreeMap<String, String>>,
}

/// A notebook.
#[server(name = "notes")]
impl Notes {
    /// Writes a note.
    #[tool(idempotent)]
    async fn write(&self, title: String, text: String) -> steadfast::ToolResult<String> {
        if title.is_empty() {
            // The model gets this message, and can call again with a title.
            return Err(ToolError::new("a note needs a title"));
        }
        self.lock().insert(title.clone(), text);
        Ok(format!("wrote {title}"))
    }

    /// All titles.
    #[resource("notes://all", mime_type = "text/plain")]
    async fn titles(&self) -> String {
        self.lock().keys().cloned().collect::<Vec<_>>().join("\n")
    }

    /// A note. The variables of the URI are parameters; `None` means that there is no such resource.
    #[resource("notes://note/{title}", mime_type = "text/plain")]
    async fn note(&self, title: String) -> Option<String> {
        self.lock().get(&title).cloned()
    }

    /// Asks the model to work on a note.
    #[prompt(title = "Work on a note")]
    async fn work_on(
        &self,
        /// The note
        title: String,
        /// What to do with it
        #[arg(complete = ["shorten", "sort", "translate"])]
        task: String,
        /// Limit of words in the result
        words: Option<u32>,
    ) -> steadfast::ToolResult<Vec<PromptMessage>> {
        // Any error type works.
        let text = self.lock().get(&title).cloned().ok_or(format!("there is no note `{title}`"))?;
        let note = Content::resource(ResourceContents::text(format!("notes://note/{title}"), text));
        let limit = words.map(|words| format!(" Use at most {words} words.")).unwrap_or_default();
        let request = format!("Please {task} this note.{limit}");
        Ok(vec![PromptMessage::user(note), PromptMessage::new(Role::User, request)])
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.notes.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[tokio::main]
async fn main() -> Result<(), steadfast::Error> {
    let client = Client::connect(Notes::default()).await?;

    let arguments = serde_json::json!({ "title": "shopping", "text": "milk, bread, rope" });
    let written = client.call_tool("write", arguments).await?;
    println!("tool: {}", written.content.first().and_then(Content::as_text).unwrap_or_default());

    let resources = client.call::<request::ListResources>(PaginatedParams::new()).await?.resources;
    let templates = client.call::<request::ListResourceTemplates>(PaginatedParams::new()).await?.resource_templates;
    for (uri, name) in resources.iter().map(|resource| (&resource.uri, &resource.name)) {
        println!("resource: {name} at {uri}");
    }
    for (uri, name) in templates.iter().map(|template| (&template.uri_template, &template.name)) {
        println!("resources: {name} at {uri}");
    }
    for uri in ["notes://note/shopping", "notes://note/nothing"] {
        match client.call::<request::ReadResource>(ReadResourceParams::new(uri)).await {
            Ok(read) => println!("{uri} holds {:?}", read.contents.first().and_then(ResourceContents::as_text)),
            Err(error) => println!("{uri}: {error}"),
        }
    }

    // While a user fills in a prompt, the server completes the arguments.
    let context = CompleteContext::new([("title".to_owned(), "shopping".to_owned())].into());
    let typed = CompleteParams::new(Reference::prompt("work_on"), "task", "s").with_context(context);
    println!("completed: {:?}", client.call::<request::Complete>(typed).await?.completion.values);

    let params = GetPromptParams::new("work_on").with_argument("title", "shopping").with_argument("task", "sort");
    for message in client.call::<request::GetPrompt>(params.clone().with_argument("words", "3")).await?.messages {
        println!("prompt: {}", serde_json::to_string(&message).unwrap_or_default());
    }
    // On the wire each argument is a string. If it cannot be parsed, the error names the argument.
    if let Err(error) = client.call::<request::GetPrompt>(params.with_argument("words", "few")).await {
        println!("prompt: {error}");
    }
    client.close().await;
    Ok(())
}
