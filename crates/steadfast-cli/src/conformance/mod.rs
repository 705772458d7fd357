//! The server that the official conformance suite is run against.
//!
//! The conformance suite uses the tools, resources and prompts of this server by name, and checks their results in revisions
//! with sessions and in stateless ones. The server uses only the public API of the library, as any user would, so that the
//! conformance suite tests the library.

mod asks;
mod changes;
mod content;
mod media;
mod needs;
mod prompts;
mod reports;
mod resources;
mod rounds;
mod schemas;
mod tasks;

use steadfast::Server;

/// The server with all fixtures of the conformance suite.
pub(crate) fn server() -> Server {
    Server::builder("steadfast-conformance", env!("CARGO_PKG_VERSION"))
        .title("Steadfast conformance fixtures")
        .instructions("Fixtures of the conformance suite, of no other use.")
        .tools(content::tools())
        .tools(reports::tools())
        .tools(schemas::tools())
        .tools(asks::tools())
        .tools(needs::tools())
        .tools(changes::tools())
        .tools(rounds::tools())
        .tools(tasks::tools())
        .resources(resources::resources())
        .resource_templates(resources::templates())
        .prompts(prompts::prompts())
        .prompts(rounds::prompts())
        .build()
}
