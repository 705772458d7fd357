//! Logs in with OAuth: shows the authorization URL at the terminal, where the user opens it in a browser.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use steadfast::{Error, Outcome};
use steadfast_auth::OAuthReqwestClient;
use steadfast_auth::client::{
    Authorizer, AuthorizerBuilder, BoxFuture, ClientCredential, Error as AuthError, FileTokenStore, Grant,
    LoopbackUserAgent, OAuthClientSettings, PreRegisteredClient, Secret, TokenStore as _, TokenStoreKey, Url,
    UserAgent, UserLogin, open_browser,
};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::client::display::{sanitize, terminal};
use crate::output::eprint_line;

const HEADING: &str = "Logging in";

/// The command-line options for authorization at the server.
#[derive(Args)]
pub(crate) struct LoginFlags {
    /// Log in if the server requires it: shows a URL and waits until you have logged in there
    #[arg(long = "login", help_heading = HEADING)]
    interactive: bool,
    /// The client id at the authorization server. Without a client id the client registers itself
    #[arg(long, value_name = "ID", help_heading = HEADING)]
    client_id: Option<String>,
    /// The environment variable that holds the client secret. The secret is sent only to the issuer
    #[arg(long, value_name = "NAME", requires = "issuer", help_heading = HEADING)]
    client_secret_env: Option<String>,
    /// The issuer identifier of the authorization server that the client id belongs to, exactly as in its metadata. Default:
    /// the authorization server that the server's metadata names
    #[arg(long, value_name = "URL", requires = "client_id", help_heading = HEADING)]
    issuer: Option<String>,
    /// Use the client credentials grant: the client acts for itself, without a user
    #[arg(long, requires = "client_secret_env", conflicts_with = "interactive", help_heading = HEADING)]
    client_credentials: bool,
    /// The URL of a client ID metadata document, used as the client id where the authorization server supports that
    #[arg(long, value_name = "URL", conflicts_with = "client_id", help_heading = HEADING)]
    client_document: Option<String>,
    /// Request this scope in addition to those that the server requires. May be repeated
    #[arg(long = "scope", value_name = "SCOPE", help_heading = HEADING)]
    scopes: Vec<String>,
    /// The redirect URI if a fixed one is registered: http://localhost or http://127.0.0.1 with a port
    #[arg(long, value_name = "URI", help_heading = HEADING)]
    redirect_uri: Option<String>,
    #[command(flatten)]
    tokens: TokenStoreOptions,
}

/// The command-line option for the folder in which tokens are stored.
#[derive(Args)]
pub(crate) struct TokenStoreOptions {
    /// The folder in which tokens are stored, readable only by you
    #[arg(long, value_name = "FOLDER", help_heading = HEADING)]
    token_store: Option<PathBuf>,
}

impl TokenStoreOptions {
    pub(crate) fn path(&self) -> Result<PathBuf, Error> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let data = if cfg!(windows) {
            variable("APPDATA")
        } else if cfg!(target_os = "macos") {
            variable("HOME").map(|home| home.join("Library/Application Support"))
        } else {
            variable("XDG_DATA_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/share")))
        };
        let default = data.map(|data| data.join("steadfast").join("tokens"));
        self.token_store
            .clone()
            .or(default)
            .ok_or_else(|| Error::usage("no home directory to store tokens in: use --token-store FOLDER"))
    }

    pub(crate) fn open(&self) -> Result<FileTokenStore, Error> {
        let folder = self.path()?;
        let failed =
            |error: io::Error| local_error(format!("failed to open the token folder {}: {error}", folder.display()));
        FileTokenStore::open(&folder).map_err(failed)
    }

    /// Whether tokens for the MCP server at this URL are stored. The token folder is not created to find out.
    async fn has_tokens(&self, url: &str) -> bool {
        if !self.path().is_ok_and(|folder| folder.is_dir()) {
            return false;
        }
        let Ok(store) = self.open() else { return false };
        store.load(&server_key(url)).await.is_ok_and(|entry| entry.is_some())
    }
}

/// The key under which the issuer of a server's tokens is in the token store.
pub(crate) fn server_key(url: &str) -> TokenStoreKey {
    TokenStoreKey::Server { url: url.to_owned() }
}

impl LoginFlags {
    /// Whether one of the options `--login`, `--client-id` and `--client-document` is given.
    pub(crate) fn is_configured(&self) -> bool {
        self.interactive || self.client_id.is_some() || self.client_document.is_some()
    }

    /// The authorizer for the server; `None` if there are neither login options nor stored tokens. The user is asked
    /// to log in only if `--login` is given.
    pub(crate) async fn authorizer(
        &self,
        url: &str,
    ) -> Result<(Option<Authorizer>, Option<LoginStateReceiver>), Error> {
        if !self.is_configured() && !self.tokens.has_tokens(url).await {
            return Ok((None, None));
        }
        let builder = builder(url, self.profile()?)?.store(self.tokens.open()?);
        if !self.interactive {
            return Ok((Some(builder.build()), None));
        }
        let (logging_in, watch) = watch::channel(false);
        let agent = TerminalUserAgent { listener: self.listener()?, logging_in: Arc::new(logging_in) };
        Ok((Some(builder.user_agent(agent).build()), Some(LoginStateReceiver(watch))))
    }

    fn profile(&self) -> Result<OAuthClientSettings, Error> {
        let mut profile = OAuthClientSettings::new("Steadfast command line");
        if let Some(document) = &self.client_document {
            profile = profile.document(document).map_err(usage_error)?;
        }
        if let Some(id) = &self.client_id {
            let client = PreRegisteredClient::new(id, self.credential()?);
            profile = profile.registered(match &self.issuer {
                Some(issuer) => client.with_issuer(issuer),
                None => client,
            });
        }
        if self.client_credentials {
            profile = profile.grant(Grant::ClientCredentials);
        }
        if !self.scopes.is_empty() {
            let scopes =
                self.scopes.join(" ").parse().map_err(|_| Error::usage("--scope is not a valid OAuth scope"))?;
            profile = profile.scopes(scopes);
        }
        Ok(profile)
    }

    fn credential(&self) -> Result<ClientCredential, Error> {
        let Some(name) = &self.client_secret_env else { return Ok(ClientCredential::None) };
        let secret = std::env::var(name)
            .map_err(|_| Error::usage(format!("the environment variable {name} does not hold a client secret")))?;
        Ok(ClientCredential::Secret(Secret::new(secret)))
    }

    /// The loopback listener to which the browser is redirected. [`TerminalUserAgent`] shows the authorization URL.
    fn listener(&self) -> Result<LoopbackUserAgent, Error> {
        match &self.redirect_uri {
            Some(uri) => LoopbackUserAgent::new().at(uri).map_err(usage_error),
            None => Ok(LoopbackUserAgent::new()),
        }
    }
}

pub(crate) fn builder(url: &str, profile: OAuthClientSettings) -> Result<AuthorizerBuilder, Error> {
    let http = OAuthReqwestClient::new().map_err(|error| local_error(error.to_string()))?;
    Authorizer::builder(url, profile, http).map_err(usage_error)
}

/// The error of a failure on this machine, before any request is sent.
pub(crate) fn local_error(why: String) -> Error {
    Error::transport(Outcome::NotSent, why)
}

fn usage_error(error: AuthError) -> Error {
    Error::usage(error.to_string())
}

/// Tells whether the user is logging in at the moment.
pub(crate) struct LoginStateReceiver(watch::Receiver<bool>);

impl LoginStateReceiver {
    /// Completes when the timeout has passed. Each login of the user restarts the timeout.
    pub(crate) async fn timeout_outside_login(mut self, timeout: std::time::Duration) {
        loop {
            if self.0.wait_for(|logging_in| !logging_in).await.is_err() {
                // The authorizer was dropped: there is no login any more.
                tokio::time::sleep(timeout).await;
                return;
            }
            tokio::select! {
                biased;
                Ok(_) = self.0.wait_for(|logging_in| *logging_in) => {}
                () = tokio::time::sleep(timeout) => return,
            }
        }
    }
}

/// Asks the user to log in: shows the authorization URL at the terminal and offers to open a browser.
struct TerminalUserAgent {
    listener: LoopbackUserAgent,
    logging_in: Arc<watch::Sender<bool>>,
}

impl UserAgent for TerminalUserAgent {
    fn prepare<'a>(&'a self, preferred: Option<&'a str>) -> BoxFuture<'a, Result<Box<dyn UserLogin>, AuthError>> {
        Box::pin(async move {
            let question = OpenBrowserQuestion::default();
            let shown = question.clone();
            let listener = self.listener.clone().opener(move |url| {
                shown.show(url);
                Ok(())
            });
            let visit = listener.prepare(preferred).await?;
            let prepared: Box<dyn UserLogin> =
                Box::new(TerminalUserLogin { visit, question, logging_in: Arc::clone(&self.logging_in) });
            Ok(prepared)
        })
    }
}

/// A login of the user whose loopback listener is bound.
struct TerminalUserLogin {
    visit: Box<dyn UserLogin>,
    question: OpenBrowserQuestion,
    logging_in: Arc<watch::Sender<bool>>,
}

impl UserLogin for TerminalUserLogin {
    fn redirect_uri(&self) -> &str {
        self.visit.redirect_uri()
    }

    fn visit(self: Box<Self>, url: Url) -> BoxFuture<'static, Result<String, AuthError>> {
        let Self { visit, question, logging_in } = *self;
        Box::pin(async move {
            logging_in.send_replace(true);
            let guard = LoginGuard { question, logging_in };
            let redirect = visit.visit(url).await;
            drop(guard);
            redirect
        })
    }
}

/// Marks the user as logging in until this guard is dropped.
struct LoginGuard {
    question: OpenBrowserQuestion,
    logging_in: Arc<watch::Sender<bool>>,
}

impl Drop for LoginGuard {
    fn drop(&mut self) {
        self.question.withdraw();
        self.logging_in.send_replace(false);
    }
}

/// The question whether to open a browser. The user may open the authorization URL without answering the question, so the login
/// does not wait for an answer.
#[derive(Clone, Default)]
struct OpenBrowserQuestion(Arc<Mutex<Option<AbortHandle>>>);

impl OpenBrowserQuestion {
    /// Shows the whole authorization URL to the user. A browser is opened only if the user agrees.
    fn show(&self, url: &Url) {
        let shown = sanitize::text(url.as_str()).into_owned();
        eprint_line(format_args!("steadfast: the server requires a login. Open this URL:\n\n  {shown}\n"));
        if !terminal::is_interactive() {
            return;
        }
        let url = url.clone();
        let question = Handle::current().spawn(async move {
            let answer = terminal::open_dialog().await.ask("Open this URL in a browser? [Y/n] ").await;
            if !matches!(answer.as_deref(), Some("" | "y" | "Y" | "yes")) {
                return;
            }
            if let Err(error) = open_browser(&url) {
                eprint_line(format_args!("steadfast: failed to open a browser ({error}): open the URL yourself"));
            }
        });
        *self.task() = Some(question.abort_handle());
    }

    fn withdraw(&self) {
        if let Some(question) = self.task().take() {
            question.abort();
        }
    }

    fn task(&self) -> std::sync::MutexGuard<'_, Option<AbortHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_timeout_does_not_run_while_the_user_logs_in() {
        let (logging_in, watch) = watch::channel(false);
        let mut over = tokio::spawn(LoginStateReceiver(watch).timeout_outside_login(Duration::from_secs(10)));
        tokio::time::sleep(Duration::from_secs(9)).await;
        logging_in.send_replace(true);
        assert!(tokio::time::timeout(Duration::from_secs(3600), &mut over).await.is_err());
        logging_in.send_replace(false);
        assert!(tokio::time::timeout(Duration::from_secs(9), &mut over).await.is_err());
        assert!(tokio::time::timeout(Duration::from_secs(2), &mut over).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_login_the_timeout_is_as_long_as_given() {
        let (logging_in, watch) = watch::channel(false);
        drop(logging_in);
        let over = LoginStateReceiver(watch).timeout_outside_login(Duration::from_secs(10));
        assert!(tokio::time::timeout(Duration::from_secs(11), over).await.is_ok());
    }
}
