//! The session that a handshake of an older revision has opened, as headers of every request.

use http::{HeaderMap, HeaderValue};
use steadfast_model::Revision;
use steadfast_proto::http::name;

/// Empty before the handshake. There are no sessions since 2026-07-28.
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
            // Revision 2025-03-26 does not have this header; its servers ignore it.
            headers.insert(name::PROTOCOL_VERSION, HeaderValue::from_static(revision.as_str()));
        }
        headers
    }
}
