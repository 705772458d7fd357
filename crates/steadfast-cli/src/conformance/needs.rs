//! A tool for clients that have a model, and only for them.

use steadfast::prelude::*;
use steadfast::{ClientCapabilities, Error, ErrorObject, tool};

pub(super) fn tools() -> [Tool; 1] {
    [test_missing_capability()]
}

/// Needs a client that declared sampling.
#[tool(read_only)]
async fn test_missing_capability(ctx: Context) -> Result<&'static str, Error> {
    if ctx.client().capabilities().is_some_and(|capabilities| capabilities.sampling.is_some()) {
        return Ok("The client has declared sampling");
    }
    let required = ClientCapabilities::new().with_sampling();
    Err(ErrorObject::missing_capability("this tool asks the client's model", &required).into())
}
