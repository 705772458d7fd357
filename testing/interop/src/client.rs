//! The clients: where they come from and what they speak.

/// One client of one generation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// What to ask its registry for. Those after the first are taken, in this order, when the one before cannot be had.
    pub(crate) packages: &'static [&'static str],
    pub(crate) revisions: &'static [&'static str],
    /// The checks that it can do; none means all.
    only: &'static [&'static str],
    /// Why it can do no others.
    why: &'static str,
}

/// How a client is installed and spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// From PyPI, by this script.
    Python(&'static str),
    /// From npm, by this script.
    TypeScript(&'static str),
    /// From npm, by its own command line.
    Inspector,
}

const OLD: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const ALL: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

impl Client {
    pub(crate) const ALL: &'static [Client] = &[
        Client {
            name: "python-mcp-1",
            kind: Kind::Python("mcp1.py"),
            packages: &["mcp==1.27.2"],
            revisions: OLD,
            only: &[],
            why: "",
        },
        Client {
            name: "python-mcp-2",
            kind: Kind::Python("mcp2.py"),
            packages: &["mcp==2.3.0"],
            revisions: ALL,
            only: &[],
            why: "",
        },
        Client {
            name: "fastmcp-4",
            kind: Kind::Python("fastmcp4.py"),
            // The first is the second with the parts that only a server needs.
            packages: &["fastmcp==4.1.4", "fastmcp-slim[client]==4.1.4"],
            revisions: ALL,
            only: &[],
            why: "",
        },
        Client {
            name: "typescript-sdk-1",
            kind: Kind::TypeScript("sdk1.mjs"),
            packages: &["@modelcontextprotocol/sdk@1.32.2"],
            revisions: OLD,
            only: &[],
            why: "",
        },
        Client {
            name: "typescript-client-2",
            kind: Kind::TypeScript("client2.mjs"),
            packages: &["@modelcontextprotocol/client@2.4.0"],
            revisions: ALL,
            only: &[],
            why: "",
        },
        Client {
            name: "inspector",
            kind: Kind::Inspector,
            packages: &["@modelcontextprotocol/inspector@2.12.0"],
            // It has a setting for the era, not for the revision.
            revisions: &["2025-11-25", "2026-07-28"],
            only: &["list", "call", "large", "resources", "prompts"],
            why: "its command line makes one request, and answers none",
        },
    ];

    /// Why it cannot do a check, if it cannot.
    pub(crate) fn missing(&self, check: &str) -> Option<&'static str> {
        (!self.only.is_empty() && !self.only.contains(&check)).then_some(self.why)
    }

    /// Whether a quick run has this revision: the newest of each era.
    pub(crate) fn is_newest(revision: &str) -> bool {
        revision >= "2025-11-25"
    }
}
