//! What to connect to, and how.

use std::time::Duration;

use clap::Args;
use steadfast::client::{Connecting, Era};
use steadfast::transport::child;
use steadfast::transport::http_client::HttpTarget;
use steadfast::{Client, Error, Implementation, Revision};

use super::ask;

/// How to reach a server.
#[derive(Args)]
pub(crate) struct Connect {
    /// The server: a URL, or a command in quotes
    target: String,
    /// A header of every HTTP request, as `name: value`. May be given more than once
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// An environment variable of the command, as NAME=VALUE. May be given more than once
    #[arg(long = "env", value_name = "NAME=VALUE")]
    environment: Vec<String>,
    /// Speak this revision, instead of finding out
    #[arg(long, value_name = "REVISION", value_parser = revision)]
    revision: Option<Revision>,
    /// How long to wait for an answer or for progress, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    /// Write JSON, for scripts
    #[arg(long)]
    pub(crate) json: bool,
}

fn revision(name: &str) -> Result<Revision, String> {
    Revision::parse(name).ok_or_else(|| {
        let known: Vec<&str> = Revision::ALL.iter().map(|known| known.as_str()).collect();
        format!("known revisions are {}", known.join(", "))
    })
}

impl Connect {
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }

    /// Connects. Questions of the server's are put to whoever sits at the terminal.
    pub(crate) async fn open(&self) -> Result<Client, Error> {
        let connecting = if self.target.starts_with("http://") || self.target.starts_with("https://") {
            Client::connect(self.url()?)
        } else {
            Client::connect(self.command()?)
        };
        self.dressed(connecting).await
    }

    fn dressed(&self, connecting: Connecting) -> Connecting {
        let era = match self.revision {
            None => Era::Any,
            Some(revision) if revision.is_modern() => Era::Modern,
            Some(revision) => Era::Handshake(revision),
        };
        let connecting = connecting.info(Implementation::new("steadfast", env!("CARGO_PKG_VERSION"))).era(era);
        if ask::somebody_is_there() { connecting.on_elicit(ask::elicit) } else { connecting }
    }

    fn url(&self) -> Result<HttpTarget, Error> {
        self.headers.iter().try_fold(HttpTarget::new(&self.target), |target, header| {
            let (name, value) =
                header.split_once(':').ok_or_else(|| Error::usage(format!("`{header}` is not `name: value`")))?;
            Ok(target.header(name.trim(), value.trim()))
        })
    }

    fn command(&self) -> Result<child::Command, Error> {
        let words = shell_words::split(&self.target).map_err(|error| Error::usage(format!("{error}")))?;
        let [program, arguments @ ..] = &words[..] else { return Err(Error::usage("the command is empty")) };
        self.environment.iter().try_fold(child::Command::new(program).args(arguments), |command, variable| {
            let (name, value) =
                variable.split_once('=').ok_or_else(|| Error::usage(format!("`{variable}` is not NAME=VALUE")))?;
            Ok(command.env(name, value))
        })
    }
}
