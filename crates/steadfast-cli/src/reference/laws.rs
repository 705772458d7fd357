//! The laws, to read and to talk about: a template of resources, and a prompt.

use steadfast::prelude::*;

use super::Reference;

/// What always holds, by its name.
const LAWS: [(&str, &str); 10] = [
    ("L1", "One ending: a request that was accepted ends exactly once."),
    (
        "L2",
        "An answer: while the connection lives and nobody cancels, a request is answered, whatever its handler does.",
    ),
    ("L3", "Silence: once a cancellation is taken in, nothing more about that request goes on the wire."),
    ("L4", "Harmless lateness: what comes too late, twice or for nothing does nothing."),
    ("L5", "Nothing outlives the connection: handlers are stopped and waited for, and no task or process is left."),
    ("L6", "Isolation: a panic, a flood or a blocked thread of one request neither ends nor delays the others."),
    ("L7", "Bounded: length, nesting, requests in flight and bytes that wait have limits, and memory stays flat."),
    ("L8", "Identity: an id in flight is never taken twice."),
    ("L9", "Order: a peer sees messages in the order in which they were committed."),
    ("L10", "Known outcome: a caller always learns what is known of its call."),
];

fn find(law: &str) -> Option<&'static str> {
    LAWS.iter().find(|(name, _)| *name == law).map(|(_, text)| *text)
}

async fn names(typed: String) -> Vec<String> {
    let typed = typed.to_uppercase();
    LAWS.iter().filter(|(name, _)| name.starts_with(&typed)).map(|(name, _)| (*name).to_owned()).collect()
}

#[server(part = laws)]
impl Reference {
    /// A law that this server keeps.
    #[resource("steadfast://laws/{law}", mime_type = "text/plain")]
    async fn law(&self, #[arg(complete = names)] law: String) -> Option<&'static str> {
        find(&law)
    }

    /// Has a law explained.
    #[prompt(title = "Explain a law")]
    async fn explain_law(
        &self,
        /// Which one, from L1 to L10
        #[arg(complete = names)]
        law: String,
        /// Who is to understand it
        #[arg(complete = ["a child", "a colleague", "a lawyer"])]
        audience: Option<String>,
    ) -> steadfast::Result<String> {
        let text = find(&law).ok_or(format!("there is no law `{law}`"))?;
        let audience = audience.unwrap_or("a colleague".to_owned());
        Ok(format!("Explain to {audience} why an MCP server should keep this law, with an example.\n\n{text}"))
    }
}
