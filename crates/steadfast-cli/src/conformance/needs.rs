//! A tool of the conformance server that requires the client's sampling capability.

use steadfast::ServerTool;
use steadfast::server::RequiredClientCapability;

pub(super) fn tools() -> [ServerTool; 1] {
    [ServerTool::new("test_missing_capability")
        .description("Needs a client that declared sampling.")
        .read_only()
        .needs(RequiredClientCapability::Sampling)
        .handler(async || "The client has declared sampling")]
}
