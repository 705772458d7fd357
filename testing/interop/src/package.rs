//! What is installed, and from where.

/// One installation. What offers a client and a server is installed once for both.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: &'static str,
    pub(crate) registry: Registry,
    /// What to ask the registry for, each with all that it needs to run. Those after the first are taken, in this order,
    /// when the one before cannot be had.
    pub(crate) wanted: &'static [&'static [&'static str]],
}

/// Where packages come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Registry {
    /// PyPI.
    Python,
    /// npm.
    Node,
}

pub(crate) static MCP_1: Package = python("python-mcp-1", &[&["mcp==1.27.2"]]);
pub(crate) static MCP_2: Package = python("python-mcp-2", &[&["mcp==2.3.0"]]);
pub(crate) static FASTMCP_4: Package = python(
    "fastmcp-4",
    &[
        &["fastmcp==4.1.4"],
        // The same code. What its `server` wants besides, without the certificates of authorities, which it wants newer than
        // some registries have them: nothing here speaks TLS.
        &[
            "fastmcp-slim[client]==4.1.4",
            "cyclopts",
            "griffelib",
            "jsonref",
            "jsonschema-path",
            "openapi-pydantic",
            "packaging",
            "pyperclip",
            "pyyaml",
            "uncalled-for",
            "watchfiles",
            "websockets",
        ],
    ],
);
pub(crate) static SDK_1: Package = node("typescript-sdk-1", &[&["@modelcontextprotocol/sdk@1.32.2"]]);
pub(crate) static CLIENT_2: Package = node("typescript-client-2", &[&["@modelcontextprotocol/client@2.4.0"]]);
pub(crate) static SERVER_2: Package = node("typescript-server-2", &[&["@modelcontextprotocol/server@2.4.0"]]);
pub(crate) static INSPECTOR: Package = node("inspector", &[&["@modelcontextprotocol/inspector@2.12.0"]]);
pub(crate) static EVERYTHING: Package = node("everything", &[&["@modelcontextprotocol/server-everything@2026.8.31"]]);

const fn python(name: &'static str, wanted: &'static [&'static [&'static str]]) -> Package {
    Package { name, registry: Registry::Python, wanted }
}

const fn node(name: &'static str, wanted: &'static [&'static [&'static str]]) -> Package {
    Package { name, registry: Registry::Node, wanted }
}
