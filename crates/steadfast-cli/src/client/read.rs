//! `steadfast read`: reads a resource.

use clap::Args;
use steadfast::Error;

use super::{Connect, Ending, ending, show};

/// Reads a resource
#[derive(Args)]
#[command(after_help = ending::CODES)]
pub(crate) struct Options {
    #[command(flatten)]
    connect: Connect,
    /// The resource
    uri: String,
}

pub(crate) async fn run(options: Options) -> Result<Ending, Error> {
    let client = options.connect.open().await?;
    let read = client.read_resource(&options.uri).timeout(options.connect.timeout()).await;
    client.close().await;
    let result = read?;
    if options.connect.json {
        println!("{:#}", serde_json::to_value(&result).map_err(Error::encode)?);
    } else {
        for contents in &result.contents {
            println!("{}", show::resource(contents));
        }
    }
    Ok(Ending::Done)
}
