//! Which connection of the client's a request belongs to, as far as a server can tell.

use steadfast::transport::http::TransportFetchRequest;

use super::HttpServer;
use crate::observation::json::Json;

/// A connection, and whether the request says so itself.
#[derive(Clone, Copy)]
pub(super) struct Origin {
    pub(super) link: usize,
    pub(super) in_session: bool,
}

impl HttpServer {
    /// Where a request comes from. What opens a connection is the first of a new one; a session says which one it is of; what is
    /// in no session is of the newest.
    pub(super) fn origin(&self, request: &TransportFetchRequest) -> Origin {
        let message = request.body.as_ref().and_then(|body| Json::read(body));
        let method = message.as_ref().and_then(|message| message["method"].as_str());
        if matches!(method, Some("initialize" | "server/discover")) {
            self.journal.facts().counts.links += 1;
            let mut state = self.state();
            state.links += 1;
            return Origin { link: state.links, in_session: false };
        }
        let session = request.headers.get("mcp-session-id").and_then(|session| session.to_str().ok()?.parse().ok());
        Origin { link: session.unwrap_or_else(|| self.state().links), in_session: session.is_some() }
    }
}
