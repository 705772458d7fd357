//! Headers that a program may not set: those that the protocol speaks by, and those of the connection.

use http::HeaderName;

/// The protocol's own begin so.
const PROTOCOL: &str = "mcp-";

/// What else is written here, or by whoever carries the request.
const RESERVED: &[&str] = &[
    "accept",
    // What comes packed is not unpacked.
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    // The server would read it. The URL of the proxy has a place for it.
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Whether a header of this name would say something in the protocol's place.
pub(crate) fn is_reserved(name: &HeaderName) -> bool {
    name.as_str().starts_with(PROTOCOL) || RESERVED.contains(&name.as_str())
}
