//! `steadfast read`: reads a resource.

use clap::Args;
use steadfast::ErrorKind;

use super::listening::Listening;
use super::session::Ended;
use super::{Connect, Ending, Failure, LISTING, Launch, advice, ending, session, show};

/// Reads a resource
#[derive(Args)]
#[command(
    after_help = ending::help("steadfast read './steadfast serve' steadfast://laws/L1"),
    override_usage = "steadfast read [OPTIONS] <TARGET> <URI>\n       steadfast read [OPTIONS] <URI> -- <COMMAND>..."
)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) connect: Connect,
    /// The resource
    uri: Option<String>,
    #[command(flatten)]
    listening: Listening,
    #[command(flatten)]
    launch: Launch,
}

pub(crate) async fn run(mut options: Options) -> Result<Ending, Failure> {
    let uri = options.connect.sort(options.uri.take(), &options.launch, "the resource")?;
    let timeout = options.connect.timeout();
    let reading = session::with(&options.connect, &options.launch, async |client| {
        match options.listening.during(client, client.read_resource(&uri).timeout(timeout)).await {
            Err(error) if error.kind() == ErrorKind::Refused => {
                let resources = client.resources().timeout(LISTING).all().await.ok();
                let advice = resources.and_then(|resources| {
                    let uris: Vec<&str> = resources.iter().map(|resource| &*resource.uri).collect();
                    advice::what_there_is("resources", &uri, &uris)
                });
                Err(Failure::from(error).with_note(advice))
            }
            read => read.map_err(Failure::from),
        }
    });
    let result = match reading.await? {
        Ended::Done(result) => result,
        Ended::GivenUp(interrupt) => return Ok(Ending::Cancelled(interrupt)),
    };
    if options.connect.json {
        show::as_json(&result)?;
    } else {
        for contents in &result.contents {
            show::print(&show::resource(contents))?;
        }
    }
    Ok(Ending::Done)
}
