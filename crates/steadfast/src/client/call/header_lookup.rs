//! Header mismatches (2026-07-28): a server that misses a header has changed its tool since it was listed. The client
//! lists the tools and sends the refused call again: once, and only before the server has asked for input.

use steadfast_model::{Method, code};

use crate::client::Client;
use crate::error::Error;

/// Whether a call has listed the tools because of a header mismatch.
#[derive(Default)]
pub(crate) struct HeaderMismatchRetry {
    done: bool,
}

impl HeaderMismatchRetry {
    /// Whether to list the tools and send a call again that ended with this error. True once.
    pub(crate) fn should_retry(&mut self, client: &Client, method: Method, error: &Error) -> bool {
        let mismatch = error.refusal().is_some_and(|refusal| refusal.code == code::HEADER_MISMATCH);
        let retry = mismatch && !self.done && client.inner.over_http && method == Method::CallTool;
        self.done |= retry;
        retry
    }
}

/// Lists the tools of the server, which updates the client's tool cache.
pub(crate) async fn list_tools(client: Client) {
    // If the list cannot be had, the second attempt of the call ends with the same refusal as the first.
    drop(client.tools().fresh().all().await);
}
