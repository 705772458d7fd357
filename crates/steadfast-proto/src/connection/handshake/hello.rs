//! What a client or server declares about itself in the handshake, and which messages each side may therefore send
//! and receive.

use steadfast_model::wire::PerMessageMembers;
use steadfast_model::{
    ClientCapabilities, Implementation, InitializeResult, Method, Revision, ServerCapabilities, VendorMethod,
};

/// How this side of a connection, a client or a server, describes itself to the peer.
#[derive(Debug, Clone)]
pub enum ClientOrServerDescription {
    /// This side of the connection is a server.
    Server(ServerDescription),
    /// This side of the connection is a client.
    Client(ClientDescription),
}

/// How a server describes itself to clients.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerDescription {
    /// The name and version of the server.
    pub info: Implementation,
    /// The capabilities of the server.
    pub capabilities: ServerCapabilities,
    /// Instructions for a model that uses the server.
    pub instructions: Option<String>,
    /// The vendor methods (those not in the specification) that the server handles.
    pub vendor_methods: Vec<VendorMethod>,
    /// The `_meta` entries and cache hints that the server adds to its results in stateless revisions.
    common_members: PerMessageMembers,
}

impl ServerDescription {
    /// The description of a server with this name and these capabilities.
    pub fn new(info: Implementation, capabilities: ServerCapabilities) -> Self {
        let common_members = PerMessageMembers::of_server(&info);
        Self { info, capabilities, instructions: None, vendor_methods: Vec::new(), common_members }
    }

    /// The `_meta` entries and cache hints that the server adds to its results in stateless revisions.
    pub(in crate::connection) fn common_members(&self) -> &PerMessageMembers {
        &self.common_members
    }
}

/// How a client describes itself to servers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClientDescription {
    /// The name and version of the client.
    pub info: Implementation,
    /// The capabilities of the client.
    pub capabilities: ClientCapabilities,
    /// The vendor methods (those not in the specification) that the client handles.
    pub vendor_methods: Vec<VendorMethod>,
    /// Decodes the result of `initialize`. The decoder is a function pointer that only a client's description has, so that the
    /// linker leaves it out of a server.
    pub(super) decode_result: fn(&str) -> serde_json::Result<InitializeResult>,
}

impl ClientDescription {
    /// The description of a client with this name and these capabilities.
    pub fn new(info: Implementation, capabilities: ClientCapabilities) -> Self {
        Self { info, capabilities, vendor_methods: Vec::new(), decode_result: |text| serde_json::from_str(text) }
    }
}

impl From<ServerDescription> for ClientOrServerDescription {
    fn from(hello: ServerDescription) -> Self {
        Self::Server(hello)
    }
}

impl From<ClientDescription> for ClientOrServerDescription {
    fn from(hello: ClientDescription) -> Self {
        Self::Client(hello)
    }
}

impl ClientOrServerDescription {
    /// The method with this name: one of the specification, or a vendor method that this side has a handler for.
    pub(in crate::connection) fn find_method(&self, name: &str) -> Option<Method> {
        let vendor_methods = match self {
            Self::Server(hello) => &hello.vendor_methods,
            Self::Client(hello) => &hello.vendor_methods,
        };
        Method::from_name(name)
            .or_else(|| vendor_methods.iter().find(|method| method.name() == name).copied().map(Method::Vendor))
    }

    /// Whether this side may send messages of this method in this revision.
    pub(in crate::connection) fn may_send(&self, method: Method, revision: Revision) -> bool {
        match self {
            Self::Server(_) => method.from_server_in(revision),
            Self::Client(_) => method.from_client_in(revision),
        }
    }

    /// Whether the peer may send messages of this method in this revision.
    pub(in crate::connection) fn may_receive(&self, method: Method, revision: Revision) -> bool {
        match self {
            Self::Server(_) => method.from_client_in(revision),
            Self::Client(_) => method.from_server_in(revision),
        }
    }

    /// Whether this side has declared the capability that the method needs.
    pub(in crate::connection) fn offers(&self, method: Method, revision: Revision) -> bool {
        let Some(capability) = method.capability().filter(|capability| capability.exists_in(revision)) else {
            return true;
        };
        match self {
            Self::Server(hello) => hello.capabilities.has(capability),
            Self::Client(hello) => hello.capabilities.has(capability),
        }
    }
}
