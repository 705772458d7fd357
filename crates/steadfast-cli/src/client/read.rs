//! `steadfast read`: reads a resource.

use clap::Args;

use super::{Connect, Ending, Failure, Launch, ending, session, show};

/// Reads a resource
#[derive(Args)]
#[command(
    after_help = ending::CODES,
    override_usage = "steadfast read [OPTIONS] <TARGET> <URI>\n       steadfast read [OPTIONS] <URI> -- <COMMAND>..."
)]
pub(crate) struct Options {
    #[command(flatten)]
    connect: Connect,
    /// The resource
    uri: Option<String>,
    #[command(flatten)]
    launch: Launch,
}

pub(crate) async fn run(mut options: Options) -> Result<Ending, Failure> {
    let uri = options.connect.sort(options.uri.take(), &options.launch, "the resource")?;
    let timeout = options.connect.timeout();
    let reading = session::with(&options.connect, &options.launch, async |client| {
        client.read_resource(&uri).timeout(timeout).await
    });
    let Some(result) = reading.await? else { return Ok(Ending::Cancelled) };
    if options.connect.json {
        show::as_json(&result)?;
    } else {
        for contents in &result.contents {
            println!("{}", show::resource(contents));
        }
    }
    Ok(Ending::Done)
}
