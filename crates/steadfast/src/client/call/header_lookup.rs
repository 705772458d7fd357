//! A server of 2026-07-28 that misses a header has changed its tool: its tools are listed, and the call, which was refused,
//! is made again. Once, and only before the server has asked anything.

use steadfast_model::{Method, code};

use crate::client::Client;
use crate::error::Error;

/// Whether the tools of a server were looked up for a call.
#[derive(Default)]
pub(crate) struct HeaderLookup {
    done: bool,
}

impl HeaderLookup {
    /// Whether looking them up helps a call that ended like this. If so, that was it.
    pub(crate) fn helps(&mut self, client: &Client, method: Method, error: &Error) -> bool {
        let mismatch = error.refusal().is_some_and(|refusal| refusal.code == code::HEADER_MISMATCH);
        let helps = mismatch && !self.done && client.inner.over_http && method == Method::CallTool;
        self.done |= helps;
        helps
    }
}

/// Lists the tools: the client takes note of them.
pub(crate) async fn look_up(client: Client) {
    // If it cannot list them, the second try says what the first said.
    drop(client.tools().fresh().all().await);
}
