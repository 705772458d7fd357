//! The server that the official conformance suite is run against.
//!
//! The suite knows its tools, resources and prompts by name, and looks at what they answer in both eras. They are written
//! as any user of the library would write them: nothing here may reach behind its public interface, so that what the suite
//! passes is the library's doing.

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

/// The server with all fixtures.
pub(crate) fn server() -> Server {
    Server::builder("steadfast-conformance", env!("CARGO_PKG_VERSION"))
        .title("Steadfast conformance fixtures")
        .instructions("What the conformance suite calls. It is of no other use.")
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
