//! The rules of Streamable HTTP, as functions without I/O.
//!
//! The functions for Streamable HTTP open no socket and depend on no HTTP library; the trait [`Headers`] is the only
//! interface to an HTTP library. The HTTP service of a server calls these functions to decide how to handle a
//! request.
//!
//! - [`headers`]: the headers of a POST, and whether they agree with the body;
//! - [`params`]: arguments of tools that are mirrored into headers;
//! - [`media`]: reads the headers `Accept` and `Content-Type`;
//! - [`origin_policy`]: checks the headers `Origin` and `Host`;
//! - [`status`]: the HTTP status of a response;
//! - [`resume`]: the events of a session, stored so that a client can resume a stream after a disconnect.

pub mod headers;
pub mod media;
pub mod origin_policy;
pub mod params;
pub mod resume;
pub mod status;

/// The names of the HTTP headers that MCP defines.
pub mod name {
    /// The header with the protocol revision that the request is written in.
    pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
    /// The header with the method of the request (since 2026-07-28).
    pub const METHOD: &str = "mcp-method";
    /// The header that names what the request is about: a tool, a prompt, a resource or a task (since 2026-07-28).
    pub const NAME: &str = "mcp-name";
    /// The prefix of the headers that mirror arguments of tools (since 2026-07-28).
    pub const PARAM_PREFIX: &str = "mcp-param-";
    /// The header with the id of the session that the request belongs to (before 2026-07-28).
    pub const SESSION_ID: &str = "mcp-session-id";
    /// The header with the id of the last server-sent event that the client has received (before 2026-07-28).
    pub const LAST_EVENT_ID: &str = "last-event-id";
}

/// The headers of an HTTP request, as the interface to any HTTP library.
pub trait Headers {
    /// The values of every header of this name, which is in lower case.
    fn values<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a [u8]>;
}

/// An HTTP header that may occur at most once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SingleHeader<'a> {
    /// It is absent.
    Absent,
    /// The header occurs once: its value without surrounding white space.
    Value(&'a str),
    /// The header occurs more than once, and different readers may use different values.
    Repeated,
    /// The value of the header contains invalid bytes.
    Unreadable,
}

impl<'a> SingleHeader<'a> {
    /// Reads a header.
    pub fn of(headers: &'a (impl Headers + ?Sized), name: &str) -> Self {
        let mut values = headers.values(name);
        let Some(value) = values.next() else { return Self::Absent };
        if values.next().is_some() {
            return Self::Repeated;
        }
        let printable = value.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
        match std::str::from_utf8(value) {
            Ok(text) if printable => Self::Value(text.trim_matches([' ', '\t'])),
            _ => Self::Unreadable,
        }
    }
}

/// HTTP headers as pairs of a name in lower case and a value, for tests and for callers without an HTTP library.
impl Headers for [(&str, &str)] {
    fn values<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.iter().filter(move |(known, _)| *known == name).map(|(_, value)| value.as_bytes())
    }
}
