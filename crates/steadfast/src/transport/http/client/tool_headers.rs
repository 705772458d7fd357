//! What requests need of the client above them, and have to tell it.

/// The client above.
pub(crate) trait ToolHeaders: Send + Sync + 'static {
    /// Calls `header` with each header that mirrors one of the arguments in this JSON text, as far as the tool is known.
    fn each_header(&self, tool: &str, arguments: &str, header: &mut dyn FnMut(&str, &str));

    /// A request goes out with these credentials.
    fn identify(&self, credentials: &mut dyn Iterator<Item = &[u8]>);
}
