//! The servers: their packages and revisions.

use super::check::{self, Check};
use super::everything;
use super::transport::TransportKind;
use crate::package::{self, Package, Registry};
use crate::revision::{ALL, OLD};

/// A server of one generation of an SDK.
pub(crate) struct Peer {
    pub(crate) package: &'static Package,
    /// The program, beside the packages.
    pub(crate) script: &'static str,
    pub(crate) transports: &'static [TransportKind],
    pub(crate) revisions: &'static [&'static str],
    /// What is done with it.
    pub(crate) checks: &'static [Check],
    /// Why there is nothing to check, for the checks for which it offers nothing on a transport in a revision.
    lacks: fn(&str, TransportKind, &str) -> Option<&'static str>,
}

const BOTH: &[TransportKind] = &[TransportKind::Stdio, TransportKind::Http];
const EACH: &[TransportKind] = &[TransportKind::Stdio, TransportKind::Http, TransportKind::Sse];

impl Peer {
    pub(crate) const EVERY: &'static [Peer] = &[
        Peer {
            package: &package::MCP_1,
            script: "mcp1_server.py",
            transports: EACH,
            revisions: OLD,
            checks: check::ALL,
            lacks: nothing,
        },
        Peer {
            package: &package::MCP_2,
            script: "mcp2_server.py",
            transports: EACH,
            revisions: ALL,
            checks: check::ALL,
            lacks: nothing,
        },
        Peer {
            package: &package::FASTMCP_4,
            script: "fastmcp4_server.py",
            transports: EACH,
            revisions: ALL,
            checks: check::ALL,
            lacks: |check, _, revision| match check {
                "subscribe" => Some("it has no subscriptions to resources"),
                "changed" if revision >= "2026" => Some("it has no `subscriptions/listen`"),
                _ => None,
            },
        },
        Peer {
            package: &package::SDK_1,
            script: "sdk1_server.mjs",
            transports: EACH,
            revisions: OLD,
            checks: check::ALL,
            lacks: nothing,
        },
        Peer {
            package: &package::SERVER_2,
            script: "server2.mjs",
            transports: BOTH,
            revisions: ALL,
            checks: check::ALL,
            lacks: nothing,
        },
        Peer {
            package: &package::EVERYTHING,
            script: "node_modules/@modelcontextprotocol/server-everything/dist/index.js",
            transports: EACH,
            revisions: OLD,
            checks: everything::ALL,
            lacks: |check, transport, _| match check {
                "cancel" => Some("what it does for long does not look whether it was cancelled"),
                "log" => Some("it logs by itself, at moments of its own"),
                "kill" if transport == TransportKind::Http => {
                    Some("its streams can be resumed, and the client tries for a minute")
                }
                _ if everything::ALL.iter().any(|offered| offered.name == check) => None,
                _ => Some("its lists change only when a client has connected"),
            },
        },
    ];

    pub(crate) fn name(&self) -> &'static str {
        self.package.name
    }

    /// Why there is nothing to check, if there is not.
    pub(crate) fn missing(&self, check: &str, transport: TransportKind, revision: &str) -> Option<&'static str> {
        (self.lacks)(check, transport, revision)
    }

    /// What Node has to load first, to say where the server listens.
    pub(crate) fn loaded_first(&self) -> Option<&'static str> {
        (self.package.registry == Registry::Node).then_some("announce.mjs")
    }

    /// Whether a revision is its newest. For it the client does not choose which revision to offer.
    pub(crate) fn is_newest(&self, revision: &str) -> bool {
        self.revisions.last() == Some(&revision)
    }
}

/// It offers all there is.
fn nothing(_check: &str, _transport: TransportKind, _revision: &str) -> Option<&'static str> {
    None
}
