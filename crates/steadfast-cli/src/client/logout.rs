//! `steadfast logout`: forgets the tokens of a server. What the client is registered as is kept, unless that is to go too: other
//! servers of the same authorization server need it.

use clap::Args;
use steadfast::Error;
use steadfast_auth::client::{Profile, TokenStore as _};

use super::login::{self, Kept};
use super::{Ending, Failure, ending, target};
use crate::output::say;

/// Forgets the tokens of a server. What this client is registered as stays for the next login
#[derive(Args)]
#[command(after_help = ending::help("steadfast logout https://example.com/mcp"))]
pub(crate) struct Options {
    /// The URL of the server
    target: String,
    /// Forget also what this client is registered as: the next login registers it anew. Other servers of the same authorization
    /// server share that, and will want you to log in again
    #[arg(long)]
    forget_registration: bool,
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
    if options.forget_registration {
        let was_registered = authorizer.forget().await.map_err(|error| failed(error.to_string()))?;
        if !was_registered {
            say("steadfast: no registration is known for this server: you were not logged in, or it needs none");
        }
        return Ok(Ending::Done);
    }
    authorizer.sign_out().await.map_err(|error| failed(error.to_string()))?;
    store.remove(&login::server(url)).await.map_err(|error| failed(error.to_string()))?;
    Ok(Ending::Done)
}
