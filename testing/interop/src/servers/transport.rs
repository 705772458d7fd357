//! The transports to a server.

use crate::package::{self, Package};

/// How our client reaches a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransportKind {
    /// It starts the server and speaks to its standard input and output.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE, the transport of 2024-11-05, which servers go on to offer for older clients.
    Sse,
}

impl TransportKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Sse => "sse",
        }
    }

    /// What a server calls it on its command line.
    pub(crate) fn word(self, package: &Package) -> &'static str {
        match self {
            Self::Http if package == &package::EVERYTHING => "streamableHttp",
            other => other.name(),
        }
    }

    /// Streamable HTTP came with 2025-03-26. HTTP+SSE has nothing to do with the revisions since 2026-07-28.
    pub(crate) fn carries(self, revision: &str) -> bool {
        match self {
            Self::Stdio => true,
            Self::Http => revision >= "2025-03-26",
            Self::Sse => revision < "2026",
        }
    }
}
