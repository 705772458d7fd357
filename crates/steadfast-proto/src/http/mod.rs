//! What Streamable HTTP adds to a conversation, as decisions about values.
//!
//! Nothing here opens a socket or knows an HTTP library: [`Headers`] is all that is asked of one. Whoever serves HTTP asks
//! these functions what a request means and does as they say.
//!
//! - [`headers`]: what the headers of a POST have to say, and whether the body says the same;
//! - [`params`]: arguments of tools that are mirrored into headers;
//! - [`media`]: `Accept` and `Content-Type`;
//! - [`guard`]: `Origin` and `Host`;
//! - [`status`]: the HTTP status of an answer;
//! - [`resume`]: the events of a session, kept so that a client that was cut off can have them again.

pub mod guard;
pub mod headers;
pub mod media;
pub mod params;
pub mod resume;
pub mod status;

/// Names of the headers that the protocol gives meaning to.
pub mod name {
    /// The revision that the request is written in.
    pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
    /// The method of the request (2026-07-28).
    pub const METHOD: &str = "mcp-method";
    /// What the request is about: a tool, a prompt, a resource or a task (2026-07-28).
    pub const NAME: &str = "mcp-name";
    /// Before the name of a mirrored argument (2026-07-28).
    pub const PARAM_PREFIX: &str = "mcp-param-";
    /// The session that the request belongs to (before 2026-07-28).
    pub const SESSION_ID: &str = "mcp-session-id";
    /// The last event that the client has seen (before 2026-07-28).
    pub const LAST_EVENT_ID: &str = "last-event-id";
}

/// The headers of a request.
pub trait Headers {
    /// The values of every header of this name, given in lower case.
    fn values<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a [u8]>;
}

/// A header that may be there once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SingleHeader<'a> {
    /// Not there.
    Absent,
    /// There once: its value without the white space around it.
    Value(&'a str),
    /// There more than once: which one counts cannot be known, and two readers may not agree.
    Repeated,
    /// There, with bytes that a header may not have.
    Unreadable,
}

impl<'a> SingleHeader<'a> {
    /// Looks for a header.
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

/// Headers as pairs of a name in lower case and a value, for tests and for those who have no HTTP library.
impl Headers for [(&str, &str)] {
    fn values<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.iter().filter(move |(known, _)| *known == name).map(|(_, value)| value.as_bytes())
    }
}
