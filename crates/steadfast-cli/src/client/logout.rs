//! `steadfast logout`: forgets the tokens of a server.

use clap::Args;
use steadfast::Error;
use steadfast_auth::client::{Profile, TokenStore as _};

use super::login::{self, Kept};
use super::{Ending, Failure, ending, target};

/// Forgets the tokens of a server
#[derive(Args)]
#[command(after_help = ending::help("steadfast logout https://example.com/mcp"))]
pub(crate) struct Options {
    /// The URL of the server
    target: String,
    #[command(flatten)]
    kept: Kept,
}

pub(crate) async fn run(options: Options) -> Result<Ending, Failure> {
    let url = &options.target;
    if !target::is_url(url) {
        return Err(Error::usage("only a server at a URL is logged in to").into());
    }
    if !options.kept.folder()?.is_dir() {
        // Nothing was ever kept, and nothing is made to find that out.
        return Ok(Ending::Done);
    }
    let store = options.kept.open()?;
    let authorizer = login::builder(url, Profile::new("Steadfast command line"))?.store(store.clone()).build();
    let failed = |error: String| login::unsent(format!("the tokens are still there: {error}"));
    authorizer.sign_out().await.map_err(|error| failed(error.to_string()))?;
    store.remove(&login::server(url)).await.map_err(|error| failed(error.to_string()))?;
    Ok(Ending::Done)
}
