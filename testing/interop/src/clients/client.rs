//! The clients: their packages and revisions.

use crate::package::{self, Package};
use crate::revision::{ALL, OLD};

/// One client of one generation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) package: &'static Package,
    pub(crate) kind: Kind,
    pub(crate) revisions: &'static [&'static str],
    /// The checks that it can do; none means all.
    only: &'static [&'static str],
    /// Why it can do no others.
    why: &'static str,
}

/// How a client is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// By this script.
    Script(&'static str),
    /// By its own command line.
    Inspector,
}

impl Client {
    pub(crate) const EVERY: &'static [Client] = &[
        Client { package: &package::MCP_1, kind: Kind::Script("mcp1.py"), revisions: OLD, only: &[], why: "" },
        Client { package: &package::MCP_2, kind: Kind::Script("mcp2.py"), revisions: ALL, only: &[], why: "" },
        Client { package: &package::FASTMCP_4, kind: Kind::Script("fastmcp4.py"), revisions: ALL, only: &[], why: "" },
        Client { package: &package::SDK_1, kind: Kind::Script("sdk1.mjs"), revisions: OLD, only: &[], why: "" },
        Client { package: &package::CLIENT_2, kind: Kind::Script("client2.mjs"), revisions: ALL, only: &[], why: "" },
        Client {
            package: &package::INSPECTOR,
            kind: Kind::Inspector,
            // It has a setting for the era, not for the revision.
            revisions: &["2025-11-25", "2026-07-28"],
            only: &["list", "call", "large", "resources", "prompts"],
            why: "its command line makes one request, and answers none",
        },
    ];

    pub(crate) fn name(&self) -> &'static str {
        self.package.name
    }

    /// Why it cannot do a check, if it cannot.
    pub(crate) fn missing(&self, check: &str) -> Option<&'static str> {
        (!self.only.is_empty() && !self.only.contains(&check)).then_some(self.why)
    }
}
