//! What to connect to, and how.

use std::time::Duration;

use clap::Args;
use steadfast::client::{Connecting, Era};
use steadfast::transport::child;
use steadfast::transport::http_client::HttpTarget;
use steadfast::{Client, Error, Implementation, Revision};

use super::admission::Admission;
use super::login::{Asking, Login};
use super::{ask, terminal};

/// How to reach a server.
#[derive(Args)]
pub(crate) struct Connect {
    /// The server: a URL, or a command in quotes. It is left out if the command comes after `--`
    target: Option<String>,
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
    #[command(flatten)]
    login: Login,
}

/// The command of a server. It comes last.
#[derive(Args)]
pub(crate) struct Launch {
    /// The command that is the server, with its arguments, in place of TARGET
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

fn revision(name: &str) -> Result<Revision, String> {
    Revision::parse(name).ok_or_else(|| {
        let known: Vec<&str> = Revision::ALL.iter().map(|known| known.as_str()).collect();
        format!("known revisions are {}", known.join(", "))
    })
}

/// A server that is about to be connected to.
pub(super) struct Approach {
    pub(super) connecting: Connecting,
    pub(super) admission: Admission,
    /// Set if the user may have to log in meanwhile.
    pub(super) asking: Option<Asking>,
}

impl Connect {
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }

    /// Takes what was written before and after `--` apart: with a command there is no target, and what stands in its place is
    /// the thing that is wanted of the server. `what` is what that is called.
    pub(crate) fn sort(&mut self, wanted: Option<String>, launch: &Launch, what: &str) -> Result<String, Error> {
        let wanted = match (launch.command.is_empty(), wanted) {
            (false, None) => self.target.take(),
            (false, Some(_)) => return Err(Error::usage("there is a command after `--`, so nothing else is a server")),
            (true, wanted) => wanted,
        };
        wanted.ok_or_else(|| Error::usage(format!("{what} is missing: see --help")))
    }

    /// Gets ready to connect. Questions of the server's are put to whoever sits at the terminal.
    pub(super) async fn approach(&self, launch: &Launch) -> Result<Approach, Error> {
        match (&self.target, &launch.command[..]) {
            (Some(url), []) if is_url(url) => {
                let (authorizer, asking) = self.login.authorizer(url).await?;
                let admission = Admission::new(authorizer);
                let target = self.with_headers(url)?.authorize(admission.clone());
                Ok(Approach { connecting: self.dressed(Client::connect(target)), admission, asking })
            }
            (Some(line), []) => {
                let words = shell_words::split(line).map_err(|error| Error::usage(error.to_string()))?;
                self.started(&words)
            }
            (None, []) => Err(Error::usage("there is no server: see --help")),
            (None, words) => self.started(words),
            (Some(_), _) => Err(Error::usage("there is a command after `--`, so nothing else is a server")),
        }
    }

    fn started(&self, words: &[String]) -> Result<Approach, Error> {
        if self.login.is_wanted() {
            return Err(Error::usage("a command is not logged in to: it is ours already"));
        }
        let connecting = self.dressed(Client::connect(self.command(words)?));
        Ok(Approach { connecting, admission: Admission::default(), asking: None })
    }

    fn dressed(&self, connecting: Connecting) -> Connecting {
        let era = match self.revision {
            None => Era::Any,
            Some(revision) if revision.is_modern() => Era::Modern,
            Some(revision) => Era::Handshake(revision),
        };
        let connecting = connecting.info(Implementation::new("steadfast", env!("CARGO_PKG_VERSION"))).era(era);
        if terminal::somebody_is_there() { connecting.on_elicit(ask::elicit) } else { connecting }
    }

    fn with_headers(&self, url: &str) -> Result<HttpTarget, Error> {
        self.headers.iter().try_fold(HttpTarget::new(url), |target, header| {
            let (name, value) = header.split_once(':').ok_or_else(|| Error::usage("a header is `name: value`"))?;
            Ok(target.header(name.trim(), value.trim()))
        })
    }

    fn command(&self, words: &[String]) -> Result<child::Command, Error> {
        let [program, arguments @ ..] = words else { return Err(Error::usage("the command is empty")) };
        self.environment.iter().try_fold(child::Command::new(program).args(arguments), |command, variable| {
            let (name, value) =
                variable.split_once('=').ok_or_else(|| Error::usage("an environment variable is NAME=VALUE"))?;
            Ok(command.env(name, value))
        })
    }
}

/// Whether this is a URL, and not a command.
pub(super) fn is_url(target: &str) -> bool {
    target.starts_with("http://") || target.starts_with("https://")
}
