//! The client under test of the official conformance suite.
//!
//! The suite starts it with the URL of a server and the name of a scenario in the environment. It does what an application
//! would do: connects, looks at what there is, and uses it. Only where a scenario has a task of its own is it named here;
//! everything that the protocol asks of a client is the SDK's to do.

mod authorization;
mod auto_accept;
mod scenario;

use std::process::ExitCode;

use scenario::Scenario;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let Some(url) = std::env::args().nth(1) else {
        eprintln!("usage: conformance-client URL");
        return ExitCode::FAILURE;
    };
    match Scenario::from_environment().run(&url).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:?}");
            ExitCode::FAILURE
        }
    }
}
