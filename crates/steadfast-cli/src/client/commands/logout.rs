//! `steadfast logout`: deletes the tokens of a server. The client registration is kept unless the user asks to delete it, since
//! other servers with the same authorization server use the registration too.

use clap::Args;
use steadfast::Error;
use steadfast_auth::client::{OAuthClientSettings, TokenStore as _};

use crate::client::connection::login;
use crate::client::connection::login::TokenStoreOptions;
use crate::client::connection::target;
use crate::client::{CliCommandFailure, CliExitStatus, exit};
use crate::output::eprint_line;

/// Deletes the stored tokens of a server and revokes them if possible. The client registration is kept for the next login
#[derive(Args)]
#[command(after_help = exit::help("steadfast logout https://example.com/mcp"))]
pub(crate) struct LogoutArgs {
    /// The URL of the server
    target: String,
    /// Also delete the client registration, so that the next login registers a new client. Servers with the same authorization
    /// server share the registration: they will require a new login too
    #[arg(long)]
    forget_registration: bool,
    #[command(flatten)]
    tokens: TokenStoreOptions,
}

pub(crate) async fn run(options: LogoutArgs) -> Result<CliExitStatus, CliCommandFailure> {
    let url = &options.target;
    if !target::is_url(url) {
        return Err(Error::usage("`logout` takes the URL of a server: a server that is a command has no login").into());
    }
    if !options.tokens.path()?.is_dir() {
        // No tokens were ever stored; the folder is not created to find that out.
        return Ok(CliExitStatus::Success);
    }
    let store = options.tokens.open()?;
    let authorizer =
        login::builder(url, OAuthClientSettings::new("Steadfast command line"))?.store(store.clone()).build();
    let failed = |error: String| login::local_error(format!("the tokens could not be deleted: {error}"));
    if options.forget_registration {
        let was_registered = authorizer.forget().await.map_err(|error| failed(error.to_string()))?;
        if !was_registered {
            eprint_line(
                "steadfast: no client registration is stored for this server: you were not logged in, or the server needs none",
            );
        }
        return Ok(CliExitStatus::Success);
    }
    authorizer.sign_out().await.map_err(|error| failed(error.to_string()))?;
    store.remove(&login::server_key(url)).await.map_err(|error| failed(error.to_string()))?;
    Ok(CliExitStatus::Success)
}
