//! `steadfast read`: reads a resource.

use clap::Args;
use steadfast::ErrorKind;

use crate::client::connection::session;
use crate::client::connection::session::CliSessionEnd;
use crate::client::display::server_log::ServerLogDisplayOptions;
use crate::client::display::{content, hints};
use crate::client::{CliCommandFailure, CliConnectOptions, CliExitStatus, HINT_TIMEOUT, ServerCommand, exit};

/// Reads a resource
#[derive(Args)]
#[command(
    after_help = exit::help("steadfast read './steadfast serve' steadfast://laws/L1"),
    override_usage = "steadfast read [OPTIONS] <TARGET> <URI>\n       steadfast read [OPTIONS] <URI> -- <COMMAND>..."
)]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    pub(crate) connect: CliConnectOptions,
    /// The URI of the resource
    uri: Option<String>,
    #[command(flatten)]
    server_log: ServerLogDisplayOptions,
    #[command(flatten)]
    server_command: ServerCommand,
}

pub(crate) async fn run(mut options: ReadArgs) -> Result<CliExitStatus, CliCommandFailure> {
    let uri = options.connect.take_operand(options.uri.take(), &options.server_command, "the URI of the resource")?;
    let timeout = options.connect.timeout();
    let reading = session::run(&options.connect, &options.server_command, async |client| {
        match options.server_log.show_during(client, client.read_resource(&uri).timeout(timeout)).await {
            Err(error) if error.kind() == ErrorKind::Refused => {
                let resources = client.resources().timeout(HINT_TIMEOUT).all().await.ok();
                let hint = resources.and_then(|resources| {
                    let uris: Vec<&str> = resources.iter().map(|resource| &*resource.uri).collect();
                    hints::suggest_names("resources", &uri, &uris)
                });
                Err(CliCommandFailure::from(error).with_note(hint))
            }
            result => result.map_err(CliCommandFailure::from),
        }
    });
    let result = match reading.await? {
        CliSessionEnd::Finished(result) => result,
        CliSessionEnd::Interrupted(interrupt) => return Ok(CliExitStatus::Interrupted(interrupt)),
    };
    if options.connect.json {
        content::print_json(&result)?;
    } else {
        for contents in &result.contents {
            content::print_line(&content::format_resource(contents))?;
        }
    }
    Ok(CliExitStatus::Success)
}
