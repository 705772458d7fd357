//! The handshake of the revisions up to 2025-11-25.

use serde::{Deserialize, Serialize};

use super::meta::Meta;
use crate::capabilities::{ClientCapabilities, ServerCapabilities};
use crate::implementation::Implementation;
use crate::setters::setters;

/// The parameters of `initialize`.
///
/// The protocol revision is text: a client may offer a revision that this crate does not know, and the server then answers with
/// another revision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeParams {
    /// The newest protocol revision that the client supports.
    pub protocol_version: String,
    /// The capabilities that the client declares.
    pub capabilities: ClientCapabilities,
    /// The name and version of the client software.
    pub client_info: Implementation,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl InitializeParams {
    /// The parameters of `initialize`, with which a client proposes this revision.
    pub fn new(
        protocol_version: impl Into<String>,
        capabilities: ClientCapabilities,
        client_info: Implementation,
    ) -> Self {
        Self { protocol_version: protocol_version.into(), capabilities, client_info, meta: None }
    }
}

setters!(InitializeParams { with_meta(meta: Meta) });

/// The result of `initialize`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeResult {
    /// The protocol revision that the server chose for the connection.
    pub protocol_version: String,
    /// The capabilities that the server declares.
    pub capabilities: ServerCapabilities,
    /// The name and version of the server software.
    pub server_info: Implementation,
    /// Instructions for a model on how to use the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl InitializeResult {
    /// The result of `initialize`, with which a server accepts a connection in this revision.
    pub fn new(
        protocol_version: impl Into<String>,
        capabilities: ServerCapabilities,
        server_info: Implementation,
    ) -> Self {
        Self { protocol_version: protocol_version.into(), capabilities, server_info, instructions: None, meta: None }
    }
}

setters!(InitializeResult { with_instructions(instructions: String), with_meta(meta: Meta) });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_revision_and_unknown_members_are_readable() {
        let text = r#"{"protocolVersion":"1.0.0","capabilities":{},"clientInfo":{"name":"c","version":"1"},"x":1}"#;
        let params: InitializeParams = serde_json::from_str(text).unwrap();
        assert_eq!(params.protocol_version, "1.0.0");
    }
}
