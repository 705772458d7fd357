//! What the handshake of an older revision has established, as every request says it.

use http::{HeaderMap, HeaderValue};
use steadfast_model::Revision;
use steadfast_proto::http::name;

/// The session, if there is one. Since 2026-07-28 there is none.
#[derive(Clone, Default)]
pub(crate) struct Session {
    pub(crate) id: Option<HeaderValue>,
    pub(crate) revision: Option<Revision>,
}

impl Session {
    pub(crate) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(id) = &self.id {
            headers.insert(name::SESSION_ID, id.clone());
        }
        if let Some(revision) = self.revision {
            // Revision 2025-03-26 has no such header, and does not mind it.
            headers.insert(name::PROTOCOL_VERSION, HeaderValue::from_static(revision.as_str()));
        }
        headers
    }
}
