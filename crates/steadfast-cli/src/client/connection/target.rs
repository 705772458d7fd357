//! The command-line options for connecting: which server, how to reach it, and the client that connects.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::Args;
use steadfast::client::{ConnectBuilder, NegotiationMode};
use steadfast::transport::child;
use steadfast::transport::http::HttpTarget;
use steadfast::{Client, Error, Implementation, Revision};

use super::authorization::CliAuthorizer;
use super::login::{LoginFlags, LoginStateReceiver};
use super::process::ServerProcess;
use crate::client::display::terminal;
use crate::client::elicitation;

/// The bounds of the timeout of connecting to a server process. Within the bounds, the timeout of connecting to a
/// server process is the request timeout (`--timeout`).
const MIN_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_CONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// The options of every command that connects to a server.
#[derive(Args)]
pub(crate) struct CliConnectOptions {
    /// The server: a URL, or a command in quotes. Omit TARGET if the command follows `--`
    target: Option<String>,
    /// Add a header to every HTTP request. May be repeated
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// Set an environment variable for the server's command. May be repeated
    #[arg(long = "env", value_name = "NAME=VALUE")]
    environment: Vec<String>,
    /// Use this revision of the protocol instead of negotiating one
    #[arg(long, value_name = "REVISION", value_parser = revision)]
    revision: Option<Revision>,
    /// Timeout of a request in seconds. Progress notifications restart the timeout
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
    /// Print the server's result as JSON, and nothing else on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Show the standard error of the server's process as it is written, and warnings about its messages. Without
    /// --verbose, the last lines of the server's standard error are shown if the server fails
    #[arg(long, short)]
    verbose: bool,
    #[command(flatten)]
    login: LoginFlags,
}

/// The command that starts the server, after `--`.
#[derive(Args)]
pub(crate) struct ServerCommand {
    /// The command that starts the server, with its arguments, instead of TARGET
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

fn revision(name: &str) -> Result<Revision, String> {
    Revision::parse(name).ok_or_else(|| {
        let known: Vec<&str> = Revision::ALL.iter().map(|known| known.as_str()).collect();
        format!("known revisions are {}", known.join(", "))
    })
}

/// A connection to the server that is ready to be opened.
pub(crate) struct CliConnectionSetup {
    pub(crate) connecting: ConnectBuilder,
    pub(crate) authorization: CliAuthorizer,
    /// Tells whether the user is logging in; `None` if no login can be necessary while the client connects.
    pub(crate) login: Option<LoginStateReceiver>,
    pub(crate) process: ServerProcess,
}

impl CliConnectOptions {
    pub(crate) fn is_verbose(&self) -> bool {
        self.verbose
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }

    /// The URL of the server, if the target is not a command.
    pub(crate) fn url(&self) -> Option<&str> {
        self.target.as_deref().filter(|target| is_url(target))
    }

    /// The operand of the subcommand: the tool, resource or prompt. If a command follows `--` there is no TARGET, and the first
    /// positional argument, which clap took for TARGET, is the operand. `what` names the operand in error messages.
    pub(crate) fn take_operand(
        &mut self,
        operand: Option<String>,
        server_command: &ServerCommand,
        what: &str,
    ) -> Result<String, Error> {
        let operand = self.take_optional_operand(operand, server_command)?;
        if operand.is_none() && self.target.is_none() && server_command.command.is_empty() {
            return Err(Error::usage("no server given: see --help"));
        }
        let missing = || format!("{what} is missing: `steadfast list` shows what the server has, --help the usage");
        operand.ok_or_else(|| Error::usage(missing()))
    }

    /// Like [`take_operand`](Self::take_operand), where the operand may be omitted.
    pub(crate) fn take_optional_operand(
        &mut self,
        operand: Option<String>,
        server_command: &ServerCommand,
    ) -> Result<Option<String>, Error> {
        match (server_command.command.is_empty(), operand) {
            (false, None) => Ok(self.target.take()),
            (false, Some(_)) => {
                Err(Error::usage("both TARGET and a command after `--` are given: the server is one of them"))
            }
            (true, operand) => Ok(operand),
        }
    }

    /// Prepares the connection. At a terminal, the user is asked when the server sends an elicitation request.
    pub(crate) async fn prepare(&self, server_command: &ServerCommand) -> Result<CliConnectionSetup, Error> {
        match (&self.target, &server_command.command[..]) {
            (Some(url), []) if is_url(url) => {
                let (authorizer, login) = self.login.authorizer(url).await?;
                let authorization = CliAuthorizer::new(authorizer);
                let target = self.with_headers(url)?.authorize(authorization.clone());
                let connecting = self.configure(Client::connect(target));
                Ok(CliConnectionSetup { connecting, authorization, login, process: ServerProcess::default() })
            }
            (Some(line), []) => {
                let words = shell_words::split(line).map_err(|error| Error::usage(error.to_string()))?;
                if let Some((scheme, _)) = words.first().and_then(|word| word.split_once("://")) {
                    // The rest may be secret, and so may all of it if it is not a URL: neither is printed.
                    let is_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.');
                    let shown = if scheme.chars().all(is_name) { format!("`{scheme}://`") } else { "this".to_owned() };
                    let what = "the server is an http:// or https:// URL, or a command";
                    return Err(Error::usage(format!("{shown} is not supported: {what}")));
                }
                self.prepare_process(&words)
            }
            (None, []) => Err(Error::usage("no server given: see --help")),
            (None, words) => self.prepare_process(words),
            (Some(_), _) => {
                Err(Error::usage("both TARGET and a command after `--` are given: the server is one of them"))
            }
        }
    }

    fn prepare_process(&self, words: &[String]) -> Result<CliConnectionSetup, Error> {
        if self.login.is_configured() {
            return Err(Error::usage("login options apply only to a server at a URL, not to a command"));
        }
        let process = ServerProcess::new(self.verbose);
        let command = self.command(words)?;
        let (command, starting) = (Arc::new(Mutex::new(process.capture_stderr(command))), process.clone());
        let connecting = Client::connect(move || {
            let started = starting.start(&command);
            async move { started }
        });
        // A command may have to download its package first (`npx`, `uvx`).
        let opening = self.timeout().clamp(MIN_CONNECT_TIMEOUT, MAX_CONNECT_TIMEOUT);
        let connecting = self.configure(connecting).opening_timeout(opening);
        Ok(CliConnectionSetup { connecting, authorization: CliAuthorizer::default(), login: None, process })
    }

    fn configure(&self, connecting: ConnectBuilder) -> ConnectBuilder {
        let era = match self.revision {
            None => NegotiationMode::Auto,
            Some(revision) if revision.is_stateless() => NegotiationMode::Stateless,
            Some(revision) => NegotiationMode::Handshake(revision),
        };
        let connecting = connecting.info(Implementation::new("steadfast", env!("CARGO_PKG_VERSION"))).negotiation(era);
        if terminal::is_interactive() { connecting.on_elicit(elicitation::elicit) } else { connecting }
    }

    fn with_headers(&self, url: &str) -> Result<HttpTarget, Error> {
        self.headers.iter().try_fold(HttpTarget::new(url), |target, header| {
            let (name, value) = header.split_once(':').ok_or_else(|| Error::usage("--header takes `name: value`"))?;
            Ok(target.header(name.trim(), value.trim()))
        })
    }

    fn command(&self, words: &[String]) -> Result<child::Command, Error> {
        let [program, arguments @ ..] = words else { return Err(Error::usage("the server's command is empty")) };
        let command = child::Command::new(program).args(arguments);
        self.environment.iter().try_fold(command, |command, variable| {
            let (name, value) = variable.split_once('=').ok_or_else(|| Error::usage("--env takes NAME=VALUE"))?;
            Ok(command.env(name, value))
        })
    }
}

/// Whether the target is a URL and not a command.
pub(crate) fn is_url(target: &str) -> bool {
    target.starts_with("http://") || target.starts_with("https://")
}
