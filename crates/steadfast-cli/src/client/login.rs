//! Logging in: OAuth, with the user asked at the terminal and answered by their browser.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use steadfast::{Error, Outcome};
use steadfast_auth::ReqwestClient;
use steadfast_auth::client::{
    Authorizer, AuthorizerBuilder, Credential, Error as AuthError, FileStore, Grant, Key, Later, Loopback,
    PreRegistered, Profile, Secret, TokenStore as _, Url, UserAgent, Visit, open_browser,
};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::{harmless, terminal};
use crate::output::say;

const HEADING: &str = "Logging in";

/// Who we are to a server that wants to know.
#[derive(Args)]
pub(crate) struct Login {
    /// Log in if the server asks for it: shows a URL, and waits until you come back from it
    #[arg(long = "login", help_heading = HEADING)]
    asks_user: bool,
    /// What the client is called at the authorization server. Without this it registers itself
    #[arg(long, value_name = "ID", help_heading = HEADING)]
    client_id: Option<String>,
    /// The environment variable that holds the client's secret. It is shown to the issuer, and to nobody else
    #[arg(long, value_name = "NAME", requires = "issuer", help_heading = HEADING)]
    client_secret_env: Option<String>,
    /// The authorization server that knows the client, exactly as it writes its name. Without this it is the one that the server
    /// names
    #[arg(long, value_name = "URL", requires = "client_id", help_heading = HEADING)]
    issuer: Option<String>,
    /// The client acts for itself: no user is asked
    #[arg(long, requires = "client_secret_env", conflicts_with = "asks_user", help_heading = HEADING)]
    client_credentials: bool,
    /// The URL of a document about the client, which is its name where that is understood
    #[arg(long, value_name = "URL", conflicts_with = "client_id", help_heading = HEADING)]
    client_document: Option<String>,
    /// A scope to ask for besides those that the server wants. May be given more than once
    #[arg(long = "scope", value_name = "SCOPE", help_heading = HEADING)]
    scopes: Vec<String>,
    /// Where the browser comes back to, if that is written down: http://localhost or http://127.0.0.1 with a port
    #[arg(long, value_name = "URI", help_heading = HEADING)]
    redirect_uri: Option<String>,
    #[command(flatten)]
    kept: Kept,
}

/// Where tokens are kept.
#[derive(Args)]
pub(crate) struct Kept {
    /// The folder that tokens are kept in, which nobody else may read
    #[arg(long, value_name = "FOLDER", help_heading = HEADING)]
    token_store: Option<PathBuf>,
}

impl Kept {
    pub(super) fn folder(&self) -> Result<PathBuf, Error> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let data = if cfg!(windows) {
            variable("APPDATA")
        } else if cfg!(target_os = "macos") {
            variable("HOME").map(|home| home.join("Library/Application Support"))
        } else {
            variable("XDG_DATA_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/share")))
        };
        let ours = data.map(|data| data.join("steadfast").join("tokens"));
        self.token_store
            .clone()
            .or(ours)
            .ok_or_else(|| Error::usage("there is no home to keep tokens in: --token-store"))
    }

    pub(super) fn open(&self) -> Result<FileStore, Error> {
        let folder = self.folder()?;
        let failed = |error: io::Error| unsent(format!("tokens cannot be kept in {}: {error}", folder.display()));
        FileStore::open(&folder).map_err(failed)
    }

    /// Whether tokens for this server were kept before. Nothing is made to find out.
    async fn knows(&self, url: &str) -> bool {
        if !self.folder().is_ok_and(|folder| folder.is_dir()) {
            return false;
        }
        let Ok(store) = self.open() else { return false };
        store.load(&server(url)).await.is_ok_and(|kept| kept.is_some())
    }
}

/// Where it is kept who issues the tokens of a server.
pub(super) fn server(url: &str) -> Key {
    Key::Server { url: url.to_owned() }
}

impl Login {
    /// Whether something was said about who we are.
    pub(super) fn is_wanted(&self) -> bool {
        self.asks_user || self.client_id.is_some() || self.client_document.is_some()
    }

    /// Who gets tokens for the server: nobody, if nothing was said and nothing is known. The user is asked with `--login` only.
    pub(super) async fn authorizer(&self, url: &str) -> Result<(Option<Authorizer>, Option<Asking>), Error> {
        if !self.is_wanted() && !self.kept.knows(url).await {
            return Ok((None, None));
        }
        let builder = builder(url, self.profile()?)?.store(self.kept.open()?);
        if !self.asks_user {
            return Ok((Some(builder.build()), None));
        }
        let (asks, asking) = watch::channel(false);
        let agent = Agent { listener: self.listener()?, asks: Arc::new(asks) };
        Ok((Some(builder.user_agent(agent).build()), Some(Asking(asking))))
    }

    fn profile(&self) -> Result<Profile, Error> {
        let mut profile = Profile::new("Steadfast command line");
        if let Some(document) = &self.client_document {
            profile = profile.document(document).map_err(unusable)?;
        }
        if let Some(id) = &self.client_id {
            let client = PreRegistered::new(id, self.credential()?);
            profile = profile.registered(match &self.issuer {
                Some(issuer) => client.with_issuer(issuer),
                None => client,
            });
        }
        if self.client_credentials {
            profile = profile.grant(Grant::ClientCredentials);
        }
        if !self.scopes.is_empty() {
            let scopes = self.scopes.join(" ").parse().map_err(|_| Error::usage("that is not a scope"))?;
            profile = profile.scopes(scopes);
        }
        Ok(profile)
    }

    fn credential(&self) -> Result<Credential, Error> {
        let Some(name) = &self.client_secret_env else { return Ok(Credential::None) };
        let secret = std::env::var(name).map_err(|_| Error::usage(format!("{name} is not set to a secret")))?;
        Ok(Credential::Secret(Secret::new(secret)))
    }

    /// The browser comes back to a listener on this machine. Showing the URL is the agent's, and done elsewhere.
    fn listener(&self) -> Result<Loopback, Error> {
        match &self.redirect_uri {
            Some(uri) => Loopback::new().at(uri).map_err(unusable),
            None => Ok(Loopback::new()),
        }
    }
}

pub(super) fn builder(url: &str, profile: Profile) -> Result<AuthorizerBuilder, Error> {
    let http = ReqwestClient::new().map_err(|error| unsent(error.to_string()))?;
    Authorizer::builder(url, profile, http).map_err(unusable)
}

/// What fails on this machine, before anything is sent.
pub(super) fn unsent(why: String) -> Error {
    Error::transport(Outcome::NotSent, why)
}

fn unusable(error: AuthError) -> Error {
    Error::usage(error.to_string())
}

/// Whether the user is being asked.
pub(super) struct Asking(watch::Receiver<bool>);

impl Asking {
    /// Completes when the server has had so long. While the user logs in no time passes for it.
    pub(super) async fn patience(mut self, patience: std::time::Duration) {
        loop {
            if self.0.wait_for(|asking| !asking).await.is_err() {
                // Nobody can ask any more.
                tokio::time::sleep(patience).await;
                return;
            }
            tokio::select! {
                biased;
                Ok(_) = self.0.wait_for(|asking| *asking) => {}
                () = tokio::time::sleep(patience) => return,
            }
        }
    }
}

/// The user, with their terminal and their browser.
struct Agent {
    listener: Loopback,
    asks: Arc<watch::Sender<bool>>,
}

impl UserAgent for Agent {
    fn prepare<'a>(&'a self, preferred: Option<&'a str>) -> Later<'a, Result<Box<dyn Visit>, AuthError>> {
        Box::pin(async move {
            let question = Question::default();
            let asked = question.clone();
            let listener = self.listener.clone().opener(move |url| {
                asked.put(url);
                Ok(())
            });
            let visit = listener.prepare(preferred).await?;
            let ready: Box<dyn Visit> = Box::new(Ready { visit, question, asks: Arc::clone(&self.asks) });
            Ok(ready)
        })
    }
}

/// A listener that is there, and a user who is about to be asked.
struct Ready {
    visit: Box<dyn Visit>,
    question: Question,
    asks: Arc<watch::Sender<bool>>,
}

impl Visit for Ready {
    fn redirect_uri(&self) -> &str {
        self.visit.redirect_uri()
    }

    fn visit(self: Box<Self>, url: Url) -> Later<'static, Result<String, AuthError>> {
        let Self { visit, question, asks } = *self;
        Box::pin(async move {
            asks.send_replace(true);
            let asked = Asked { question, asks };
            let came_back = visit.visit(url).await;
            drop(asked);
            came_back
        })
    }
}

/// The user is being asked as long as this lives.
struct Asked {
    question: Question,
    asks: Arc<watch::Sender<bool>>,
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.question.withdraw();
        self.asks.send_replace(false);
    }
}

/// Whether to open a browser. The user may go there without one, so nothing waits for the answer.
#[derive(Clone, Default)]
struct Question(Arc<Mutex<Option<AbortHandle>>>);

impl Question {
    /// Shows the whole URL. A browser is opened only if somebody says so.
    fn put(&self, url: &Url) {
        let shown = harmless::text(url.as_str()).into_owned();
        say(format_args!("steadfast: the server wants you to log in. Visit this URL:\n\n  {shown}\n"));
        if !terminal::somebody_is_there() {
            return;
        }
        let url = url.clone();
        let asked = Handle::current().spawn(async move {
            let answer = terminal::person().await.ask("Open it in a browser? [Y/n] ").await;
            if !matches!(answer.as_deref(), Some("" | "y" | "Y" | "yes")) {
                return;
            }
            if let Err(error) = open_browser(&url) {
                say(format_args!("steadfast: no browser opened ({error}): visit the URL yourself"));
            }
        });
        *self.held() = Some(asked.abort_handle());
    }

    fn withdraw(&self) {
        if let Some(asked) = self.held().take() {
            asked.abort();
        }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Option<AbortHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn no_time_passes_for_the_server_while_the_user_logs_in() {
        let (asks, asking) = watch::channel(false);
        let mut over = tokio::spawn(Asking(asking).patience(Duration::from_secs(10)));
        tokio::time::sleep(Duration::from_secs(9)).await;
        asks.send_replace(true);
        assert!(tokio::time::timeout(Duration::from_secs(3600), &mut over).await.is_err());
        asks.send_replace(false);
        assert!(tokio::time::timeout(Duration::from_secs(9), &mut over).await.is_err());
        assert!(tokio::time::timeout(Duration::from_secs(2), &mut over).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_nobody_logs_in_to_is_waited_for_no_longer() {
        let (asks, asking) = watch::channel(false);
        drop(asks);
        let over = Asking(asking).patience(Duration::from_secs(10));
        assert!(tokio::time::timeout(Duration::from_secs(11), over).await.is_ok());
    }
}
