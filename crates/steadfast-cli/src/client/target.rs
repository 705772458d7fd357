//! What to connect to, and how.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::Args;
use steadfast::client::{Connecting, Era};
use steadfast::transport::child;
use steadfast::transport::http::HttpTarget;
use steadfast::{Client, Error, Implementation, Revision};

use super::admission::Admission;
use super::login::{Asking, Login};
use super::process::Process;
use super::{ask, terminal};

/// How long a process may take to say that it is there: as long as an answer, within these bounds.
const LEAST_OPENING: Duration = Duration::from_secs(10);
const MOST_OPENING: Duration = Duration::from_secs(60);

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
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
    /// Write JSON, for scripts: all that the server answered, and nothing else on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Show what the server's process writes to standard error as it comes, and warnings about what it says. Without this its
    /// last lines are shown if it fails
    #[arg(long, short)]
    verbose: bool,
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
    pub(super) process: Process,
}

impl Connect {
    pub(crate) fn is_verbose(&self) -> bool {
        self.verbose
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }

    /// Where the server is, if it is not a command.
    pub(super) fn url(&self) -> Option<&str> {
        self.target.as_deref().filter(|target| is_url(target))
    }

    /// Takes what was written before and after `--` apart: with a command there is no target, and what stands in its place is
    /// the thing that is wanted of the server. `what` is what that is called.
    pub(crate) fn sort(&mut self, wanted: Option<String>, launch: &Launch, what: &str) -> Result<String, Error> {
        let wanted = self.sort_optional(wanted, launch)?;
        if wanted.is_none() && self.target.is_none() && launch.command.is_empty() {
            return Err(Error::usage("there is no server: see --help"));
        }
        let missing = || format!("{what} is missing: `steadfast list` shows what there is, --help how to say it");
        wanted.ok_or_else(|| Error::usage(missing()))
    }

    /// The same where nothing in particular need be wanted.
    pub(crate) fn sort_optional(&mut self, wanted: Option<String>, launch: &Launch) -> Result<Option<String>, Error> {
        match (launch.command.is_empty(), wanted) {
            (false, None) => Ok(self.target.take()),
            (false, Some(_)) => Err(Error::usage("there is a command after `--`, so nothing else is a server")),
            (true, wanted) => Ok(wanted),
        }
    }

    /// Gets ready to connect. Questions of the server's are put to whoever sits at the terminal.
    pub(super) async fn approach(&self, launch: &Launch) -> Result<Approach, Error> {
        match (&self.target, &launch.command[..]) {
            (Some(url), []) if is_url(url) => {
                let (authorizer, asking) = self.login.authorizer(url).await?;
                let admission = Admission::new(authorizer);
                let target = self.with_headers(url)?.authorize(admission.clone());
                let connecting = self.dressed(Client::connect(target));
                Ok(Approach { connecting, admission, asking, process: Process::default() })
            }
            (Some(line), []) => {
                let words = shell_words::split(line).map_err(|error| Error::usage(error.to_string()))?;
                if let Some((scheme, _)) = words.first().and_then(|word| word.split_once("://")) {
                    // The rest of it may be secret; so may all of it that is no URL.
                    let is_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.');
                    let other = if scheme.chars().all(is_name) { format!("`{scheme}://`") } else { "this".to_owned() };
                    let what = "a server is a URL with http:// or https://, or a command";
                    return Err(Error::usage(format!("{other} is neither: {what}")));
                }
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
        let process = Process::new(self.verbose);
        let command = self.command(words)?;
        let (command, starting) = (Arc::new(Mutex::new(process.listening(command))), process.clone());
        let connecting = Client::connect(move || {
            let started = starting.start(&command);
            async move { started }
        });
        // A command may have to be fetched before it can run (`npx`, `uvx`).
        let opening = self.timeout().clamp(LEAST_OPENING, MOST_OPENING);
        let connecting = self.dressed(connecting).opening_timeout(opening);
        Ok(Approach { connecting, admission: Admission::default(), asking: None, process })
    }

    fn dressed(&self, connecting: Connecting) -> Connecting {
        let era = match self.revision {
            None => Era::Any,
            Some(revision) if revision.is_stateless() => Era::Modern,
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
        let command = child::Command::new(program).args(arguments);
        self.environment.iter().try_fold(command, |command, variable| {
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
