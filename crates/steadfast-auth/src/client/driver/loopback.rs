//! The user agent that most programs want: a browser on this machine, and a listener on loopback that it comes back to.

use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinSet;
use url::Url;

use super::page::{Expected, serve};
use super::{Later, UserAgent, Visit};
use crate::client::Error;
use crate::client::authorize::state_of;

/// As many connections are looked at at once; a browser makes a few.
const CONNECTIONS: usize = 16;

type Opener = dyn Fn(&Url) -> io::Result<()> + Send + Sync;

/// Opens the user's browser and listens on loopback for its answer.
#[derive(Clone)]
pub struct Loopback {
    port: u16,
    patience: Duration,
    open: Arc<Opener>,
}

impl Loopback {
    /// Listens on whatever port is free, at `/callback`, and waits five minutes for the user.
    pub fn new() -> Self {
        Self { port: 0, patience: Duration::from_secs(300), open: Arc::new(open_browser) }
    }

    /// Listens on this port: for a client whose redirect URI is written down somewhere.
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Waits this long for the user.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Shows the URL in another way. The function runs on a thread where it may block.
    pub fn opener(mut self, open: impl Fn(&Url) -> io::Result<()> + Send + Sync + 'static) -> Self {
        self.open = Arc::new(open);
        self
    }

    /// The port that answers went to before, if any is free to choose.
    async fn listen(&self, preferred: Option<&str>) -> io::Result<TcpListener> {
        let preferred = preferred.and_then(|uri| Url::parse(uri).ok()).and_then(|url| url.port());
        if let Some(port) = preferred.filter(|_| self.port == 0)
            && let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await
        {
            return Ok(listener);
        }
        TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)).await
    }
}

impl Default for Loopback {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Loopback {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Loopback({})", self.port)
    }
}

impl UserAgent for Loopback {
    fn prepare<'a>(&'a self, preferred: Option<&'a str>) -> Later<'a, Result<Box<dyn Visit>, Error>> {
        Box::pin(async move {
            let failed = |error: io::Error| Error::NoUser(format!("there is no port to listen on: {error}"));
            let listener = self.listen(preferred).await.map_err(failed)?;
            let port = listener.local_addr().map_err(failed)?.port();
            let redirect_uri = format!("http://127.0.0.1:{port}/callback");
            let visit: Box<dyn Visit> = Box::new(Listening { listener, redirect_uri, settings: self.clone() });
            Ok(visit)
        })
    }
}

struct Listening {
    listener: TcpListener,
    redirect_uri: String,
    settings: Loopback,
}

impl Visit for Listening {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    fn visit(self: Box<Self>, url: Url) -> Later<'static, Result<String, Error>> {
        Box::pin(async move {
            let state = state_of(url.query().unwrap_or_default()).unwrap_or_default();
            let expected = Expected { path: String::from("/callback"), state };
            let open = Arc::clone(&self.settings.open);
            let opened = tokio::task::spawn_blocking(move || open(&url)).await;
            opened
                .map_err(|_| Error::NoUser(String::from("showing the URL failed")))?
                .map_err(|error| Error::NoUser(format!("the browser did not open: {error}")))?;
            let answer = tokio::time::timeout(self.settings.patience, answer(&self.listener, &expected));
            answer.await.map_err(|_| Error::NoUser(String::from("there was no answer in time")))
        })
    }
}

/// Looks at connections until one brings the answer.
async fn answer(listener: &TcpListener, expected: &Expected) -> String {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(served) = connections.join_next() => {
                if let Ok(Some(query)) = served {
                    return query;
                }
            }
            accepted = listener.accept(), if connections.len() < CONNECTIONS => {
                match accepted {
                    Ok((stream, _)) => _ = connections.spawn(serve(stream, expected.clone())),
                    // Out of descriptors, perhaps: others may give some back.
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                }
            }
        }
    }
}

/// Opens a URL in the browser that the user likes, by the command that their system has for it.
pub fn open_browser(url: &Url) -> io::Result<()> {
    let (program, arguments): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(target_os = "windows") {
        // Not `start`, which is read by a shell to which an ampersand means something.
        ("rundll32", &["url.dll,FileProtocolHandler"])
    } else {
        ("xdg-open", &[])
    };
    let mut child = Command::new(program)
        .args(arguments)
        .arg(url.as_str())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    // Some of them stay for as long as the browser does; somebody has to see them end.
    std::thread::Builder::new().name(String::from("browser")).spawn(move || child.wait())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    async fn get(port: u16, target: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        stream.write_all(format!("GET {target} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn the_url_is_opened_and_the_right_answer_taken() {
        let (sender, opened) = mpsc::channel();
        let agent = Loopback::new().opener(move |url| sender.send(url.clone()).map_err(io::Error::other));
        let visit = agent.prepare(None).await.unwrap();
        let port = Url::parse(visit.redirect_uri()).unwrap().port().unwrap();
        let url = Url::parse("https://auth.example.com/authorize?state=s1").unwrap();
        let waiting = tokio::spawn(visit.visit(url.clone()));
        // One that says nothing does not keep the others waiting.
        let _idle = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        assert!(get(port, "/callback?code=evil&state=wrong").await.contains("404"));
        assert!(get(port, "/callback?code=good&state=s1").await.contains("200 OK"));
        assert_eq!(waiting.await.unwrap().unwrap(), "code=good&state=s1");
        assert_eq!(opened.recv().unwrap(), url);
    }

    #[tokio::test]
    async fn the_port_of_a_registration_is_taken_again_if_it_is_free() {
        let agent = Loopback::new();
        let first = agent.prepare(None).await.unwrap();
        let uri = first.redirect_uri().to_owned();
        let meanwhile = agent.prepare(Some(&uri)).await.unwrap();
        assert_ne!(meanwhile.redirect_uri(), uri);
        drop(first);
        assert_eq!(agent.prepare(Some(&uri)).await.unwrap().redirect_uri(), uri);
    }

    #[tokio::test]
    async fn a_user_who_does_not_answer_is_not_waited_for_for_ever() {
        let agent = Loopback::new().opener(|_| Ok(())).patience(Duration::ZERO);
        let visit = agent.prepare(None).await.unwrap();
        let error = visit.visit(Url::parse("https://auth.example.com/").unwrap()).await.unwrap_err();
        assert_eq!(error, Error::NoUser(String::from("there was no answer in time")));
    }

    #[tokio::test]
    async fn a_browser_that_does_not_open_is_an_error() {
        let agent = Loopback::new().opener(|_| Err(io::Error::other("no display")));
        let visit = agent.prepare(None).await.unwrap();
        let error = visit.visit(Url::parse("https://auth.example.com/").unwrap()).await.unwrap_err();
        assert_eq!(error.to_string(), "the user was not reached: the browser did not open: no display");
    }
}
