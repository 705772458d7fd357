//! What the HTTP requests of a client read from the client's cache (the headers of a tool), and report to the cache
//! (their credentials).

use super::ClientCache;
use crate::transport::http::client::ClientToolHeaders;

impl ClientToolHeaders for ClientCache {
    fn each_header(&self, tool: &str, arguments: &str, header: &mut dyn FnMut(&str, &str)) {
        if let Some(tool) = self.tool(tool) {
            tool.each_header(arguments, |name, value| header(name, &value));
        }
    }

    fn identify(&self, credentials: &mut dyn Iterator<Item = &[u8]>) {
        self.set_credentials(credentials);
    }
}
