//! The prompts of a server: adding, removing and listing them.

use std::sync::Arc;

use steadfast_model as model;
use steadfast_model::ListPromptsResult;

use super::ServerPrompt;
use crate::server::{Catalog, CatalogItem, Server, ServerChange};

impl CatalogItem for ServerPrompt {
    const KIND: u8 = b'p';
    type Definition = model::Prompt;
    type List = ListPromptsResult;

    fn key(&self) -> &str {
        self.name()
    }

    fn definition(&self) -> &model::Prompt {
        self.definition()
    }

    fn page(definitions: Vec<model::Prompt>, next_cursor: Option<String>) -> ListPromptsResult {
        let mut page = ListPromptsResult::new(definitions);
        page.next_cursor = next_cursor;
        page
    }
}

/// Methods to list, find, add and remove the prompts of a server.
impl Server {
    /// The current prompts of the server, in the order in which they were added.
    pub fn prompts(&self) -> Vec<ServerPrompt> {
        self.prompt_list().iter().cloned().collect()
    }

    /// The server's prompt with that name, if there is one.
    pub fn prompt(&self, name: &str) -> Option<ServerPrompt> {
        self.prompt_list().find(name).cloned()
    }

    /// Adds a prompt, also while clients are connected, and notifies the clients. A prompt with the same name is
    /// replaced and returned.
    ///
    /// Clients that connect while the server has no prompts do not know the prompts capability. To declare that
    /// capability anyway, see [`ServerBuilder::expect_prompts`](crate::server::ServerBuilder::expect_prompts).
    ///
    /// ```
    /// use steadfast::{ServerPrompt, Server};
    ///
    /// let server = Server::builder("growing", "1.0.0").expect_prompts().build();
    /// server.add_prompt(ServerPrompt::new("hello").handler(|| async { "Say hello." }));
    /// assert!(server.prompt("hello").is_some());
    /// assert!(server.remove_prompt("hello").is_some());
    /// assert!(server.prompts().is_empty());
    /// ```
    pub fn add_prompt(&self, prompt: ServerPrompt) -> Option<ServerPrompt> {
        if let Some(problem) = prompt.problem() {
            tracing::error!(
                prompt = prompt.name(),
                problem,
                "the prompt was added, but cannot be served: `prompts/get` fails"
            );
        }
        let replaced = self.inner.prompts.add(prompt);
        self.inner.watchers.notify(&ServerChange::Prompts);
        replaced
    }

    /// Removes a prompt and returns it; `None` if no prompt has that name.
    pub fn remove_prompt(&self, name: &str) -> Option<ServerPrompt> {
        let removed = self.inner.prompts.remove(name);
        if removed.is_some() {
            self.inner.watchers.notify(&ServerChange::Prompts);
        }
        removed
    }

    /// The list of prompts as it is now.
    pub(crate) fn prompt_list(&self) -> Arc<Catalog<ServerPrompt>> {
        self.inner.prompts.now()
    }
}
