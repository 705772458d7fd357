//! The laws that the reference server keeps (L1 to L10), as a resource template and a prompt, both with completion.

use steadfast::prelude::*;

use super::CliReferenceServer;

/// The name and the text of each law that the reference server keeps.
const LAWS: [(&str, &str); 10] = [
    ("L1", "One ending: an accepted request ends exactly once."),
    (
        "L2",
        "A response: while the connection is open and the request is not cancelled, it gets a response, whatever its handler does.",
    ),
    ("L3", "Silence: after a cancellation is processed, nothing more is sent for that request."),
    ("L4", "Harmless lateness: a late, repeated or unmatched message has no effect."),
    ("L5", "Nothing outlives the connection: handlers are stopped and awaited, and no task or process is left."),
    ("L6", "Isolation: a panic, a flood or a blocked thread of one request neither ends nor delays the others."),
    ("L7", "Bounded: message length, nesting, requests in flight and queued bytes have limits."),
    ("L8", "Identity: a second request with an id in flight is rejected."),
    ("L9", "Order: a peer receives messages in the order in which they were queued."),
    ("L10", "Known outcome: a caller always learns whether its call was sent, and how it ended if that is known."),
];

fn find(law: &str) -> Option<&'static str> {
    LAWS.iter().find(|(name, _)| *name == law).map(|(_, text)| *text)
}

async fn complete_name(typed: String) -> Vec<String> {
    let typed = typed.to_uppercase();
    LAWS.iter().filter(|(name, _)| name.starts_with(&typed)).map(|(name, _)| (*name).to_owned()).collect()
}

#[server(part = laws)]
impl CliReferenceServer {
    /// The text of a law that this server keeps.
    #[resource("steadfast://laws/{law}", mime_type = "text/plain")]
    async fn law(&self, #[arg(complete = complete_name)] law: String) -> Option<&'static str> {
        find(&law)
    }

    /// Asks for an explanation of a law.
    #[prompt(title = "Explain a law")]
    async fn explain_law(
        &self,
        /// The name of the law, from L1 to L10
        #[arg(complete = complete_name)]
        law: String,
        /// The audience of the explanation
        #[arg(complete = ["a child", "a colleague", "a lawyer"])]
        audience: Option<String>,
    ) -> steadfast::ToolResult<String> {
        let text = find(&law).ok_or(format!("unknown law `{law}`: the laws are L1 to L10"))?;
        let audience = audience.unwrap_or("a colleague".to_owned());
        Ok(format!("Explain to {audience} why an MCP server should keep this law, with an example.\n\n{text}"))
    }
}
