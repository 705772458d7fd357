//! Headers that a program may not set, because the protocol or the HTTP connection uses them.

use http::HeaderName;

/// Headers of the protocol begin with this.
const PROTOCOL: &str = "mcp-";

/// Other headers that this client or the HTTP library sets.
const RESERVED: &[&str] = &[
    "accept",
    // Compressed responses are refused.
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    // The server would see it. Credentials of a proxy belong into the URL of the proxy.
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Whether programs may not set this header.
pub(crate) fn is_reserved(name: &HeaderName) -> bool {
    name.as_str().starts_with(PROTOCOL) || RESERVED.contains(&name.as_str())
}
