//! What HTTP requests need from the client that sends them.

/// Implemented by the client, which knows the tools of the server.
pub(crate) trait ToolHeaders: Send + Sync + 'static {
    /// Calls `header` with the name and value of each header that mirrors one of these arguments (JSON text). None if the tool
    /// is unknown.
    fn each_header(&self, tool: &str, arguments: &str, header: &mut dyn FnMut(&str, &str));

    /// A request is about to be sent with these credentials. Cached results belong to them.
    fn identify(&self, credentials: &mut dyn Iterator<Item = &[u8]>);
}
