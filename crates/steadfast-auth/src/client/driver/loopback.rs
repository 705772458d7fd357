//! A user agent for programs on the user's machine: opens a browser, and listens on loopback for the redirect.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use url::Url;

use super::page::{ExpectedRedirect, serve};
use super::{BoxFuture, UserAgent, UserLogin};
use crate::client::Error;
use crate::client::authorize::state_of;
use crate::client::url_policy::redact_url;

/// Limit of concurrent connections to the loopback listener; a browser opens only a few.
const CONNECTIONS: usize = 16;

/// The path of the redirect URI if the loopback listener uses an arbitrary port.
const PATH: &str = "/callback";

type BrowserOpener = dyn Fn(&Url) -> io::Result<()> + Send + Sync;

#[derive(Clone)]
struct FixedRedirectUri {
    uri: String,
    port: u16,
    path: String,
}

/// Opens the user's browser and listens on loopback for the redirect.
#[derive(Clone)]
pub struct LoopbackUserAgent {
    /// The redirect URI, if a fixed one is registered.
    fixed: Option<FixedRedirectUri>,
    timeout: Duration,
    open: Arc<BrowserOpener>,
}

impl LoopbackUserAgent {
    /// Creates a user agent that listens on an arbitrary free port, at `/callback`, with a timeout of five minutes.
    pub fn new() -> Self {
        Self { fixed: None, timeout: Duration::from_secs(300), open: Arc::new(open_browser) }
    }

    /// Listens at this redirect URI, for a client whose metadata document or registration contains it, such as
    /// `http://localhost:3000/callback`.
    pub fn at(mut self, redirect_uri: &str) -> Result<Self, Error> {
        let unsafe_url = || Error::UnsafeUrl(redact_url(redirect_uri));
        let url = Url::parse(redirect_uri).map_err(|_| unsafe_url())?;
        let is_ours = url.scheme() == "http" && matches!(url.host_str(), Some("localhost" | "127.0.0.1"));
        let port = url.port_or_known_default().filter(|_| is_ours).ok_or_else(unsafe_url)?;
        self.fixed = Some(FixedRedirectUri { uri: redirect_uri.to_owned(), port, path: url.path().to_owned() });
        Ok(self)
    }

    /// Sets how long to wait for the user to log in with the browser.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the function that shows the authorization URL to the user, instead of opening a browser. The function
    /// runs on a thread where it may block.
    pub fn opener(mut self, open: impl Fn(&Url) -> io::Result<()> + Send + Sync + 'static) -> Self {
        self.open = Arc::new(open);
        self
    }

    async fn listen(&self, preferred: Option<&str>) -> io::Result<LoopbackListener> {
        if let Some(FixedRedirectUri { uri, port, path }) = &self.fixed {
            let first = TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).await?;
            // A browser may resolve `localhost` to either address. If there is no IPv6 loopback, IPv4 is enough; if another
            // program listens on it, that program would get the redirect.
            let second = match TcpListener::bind((Ipv6Addr::LOCALHOST, *port)).await {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(error),
                second => second.ok(),
            };
            return Ok(self.listening(first, second, uri.clone(), path));
        }
        let before = preferred.and_then(|uri| Url::parse(uri).ok()).and_then(|url| url.port());
        let listener = match before {
            // The registered port, if it is free.
            Some(port) => TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.ok(),
            None => None,
        };
        let listener = match listener {
            Some(listener) => listener,
            None => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?,
        };
        let uri = format!("http://127.0.0.1:{}{PATH}", listener.local_addr()?.port());
        Ok(self.listening(listener, None, uri, PATH))
    }

    fn listening(
        &self,
        first: TcpListener,
        second: Option<TcpListener>,
        redirect_uri: String,
        path: &str,
    ) -> LoopbackListener {
        let settings = self.clone();
        LoopbackListener { first, second, redirect_uri, path: path.to_owned(), settings }
    }
}

impl Default for LoopbackUserAgent {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for LoopbackUserAgent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Loopback({:?})", self.fixed.as_ref().map(|fixed| &fixed.uri))
    }
}

impl UserAgent for LoopbackUserAgent {
    fn prepare<'a>(&'a self, preferred: Option<&'a str>) -> BoxFuture<'a, Result<Box<dyn UserLogin>, Error>> {
        Box::pin(async move {
            let failed = |error: io::Error| Error::UserUnavailable(format!("failed to listen on loopback: {error}"));
            let visit: Box<dyn UserLogin> = Box::new(self.listen(preferred).await.map_err(failed)?);
            Ok(visit)
        })
    }
}

struct LoopbackListener {
    first: TcpListener,
    second: Option<TcpListener>,
    redirect_uri: String,
    path: String,
    settings: LoopbackUserAgent,
}

impl LoopbackListener {
    async fn accept(&self) -> io::Result<TcpStream> {
        let Some(second) = &self.second else { return Ok(self.first.accept().await?.0) };
        tokio::select! {
            biased;
            accepted = self.first.accept() => Ok(accepted?.0),
            accepted = second.accept() => Ok(accepted?.0),
        }
    }

    /// Serves HTTP connections of the browser until one of them requests the expected redirect URI, and returns the query of
    /// that URI.
    async fn wait_for_redirect(&self, expected: &ExpectedRedirect) -> String {
        let mut connections = JoinSet::new();
        let mut handles: VecDeque<AbortHandle> = VecDeque::new();
        loop {
            tokio::select! {
                biased;
                Some(served) = connections.join_next() => {
                    if let Ok(Some(query)) = served {
                        return query;
                    }
                }
                accepted = self.accept() => {
                    match accepted {
                        Ok(stream) => {
                            // The oldest connection is dropped: any program on this machine can connect.
                            if handles.len() >= CONNECTIONS && let Some(first) = handles.pop_front() {
                                first.abort();
                            }
                            handles.push_back(connections.spawn(serve(stream, expected.clone())));
                        }
                        // Out of file descriptors, for example: wait until some are closed.
                        Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                    }
                }
            }
        }
    }
}

impl UserLogin for LoopbackListener {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    fn visit(self: Box<Self>, url: Url) -> BoxFuture<'static, Result<String, Error>> {
        Box::pin(async move {
            let state = state_of(url.query().unwrap_or_default()).unwrap_or_default();
            let expected = ExpectedRedirect { path: self.path.clone(), state };
            let open = Arc::clone(&self.settings.open);
            let mut opened = tokio::task::spawn_blocking(move || open(&url));
            let answered = async {
                let answer = self.wait_for_redirect(&expected);
                tokio::pin!(answer);
                // Some openers run as long as the browser, so the redirect may arrive before they exit.
                tokio::select! {
                    biased;
                    answer = &mut answer => return Ok(answer),
                    opened = &mut opened => opened
                        .map_err(|_| Error::UserUnavailable(String::from("failed to show the authorization URL to the user")))?
                        .map_err(|error| Error::UserUnavailable(format!("failed to open a browser: {error}")))?,
                }
                Ok(answer.await)
            };
            let answered = tokio::time::timeout(self.settings.timeout, answered).await;
            answered.map_err(|_| Error::UserUnavailable(String::from("the login timed out")))?
        })
    }
}

/// Opens a URL in the user's default browser, with the command of the operating system.
pub fn open_browser(url: &Url) -> io::Result<()> {
    let mut child = browser(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    // Some of these commands run as long as the browser: a thread waits for them, so that they do not stay zombies.
    std::thread::Builder::new().name(String::from("browser")).spawn(move || child.wait())?;
    Ok(())
}

/// The command that opens a URL in the browser, without a shell.
fn browser(url: &Url) -> Command {
    let (program, arguments): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(target_os = "windows") {
        // Not `start`, a shell command, to which an ampersand is a separator.
        ("rundll32", &["url.dll,FileProtocolHandler"])
    } else {
        ("xdg-open", &[])
    };
    let mut command = Command::new(program);
    command.args(arguments).arg(url.as_str());
    command
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[test]
    fn no_shell_reads_the_url() {
        let url = Url::parse("https://example.org/a?b=$(touch%20x)&c=`d`;e|f").unwrap();
        let command = browser(&url);
        let program = command.get_program().to_string_lossy().into_owned();
        assert!(["xdg-open", "open", "rundll32"].contains(&&*program), "{program}");
        assert_eq!(command.get_args().last(), Some(std::ffi::OsStr::new(url.as_str())));
    }

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
        let agent = LoopbackUserAgent::new().opener(move |url| sender.send(url.clone()).map_err(io::Error::other));
        let visit = agent.prepare(None).await.unwrap();
        let port = Url::parse(visit.redirect_uri()).unwrap().port().unwrap();
        let url = Url::parse("https://auth.example.com/authorize?state=s1").unwrap();
        let waiting = tokio::spawn(visit.visit(url.clone()));
        // A silent connection does not block the others.
        let _idle = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        assert!(get(port, "/callback?code=evil&state=wrong").await.contains("404"));
        assert!(get(port, "/callback?code=good&state=s1").await.contains("200 OK"));
        assert_eq!(waiting.await.unwrap().unwrap(), "code=good&state=s1");
        assert_eq!(opened.recv().unwrap(), url);
    }

    #[tokio::test]
    async fn the_port_of_a_registration_is_taken_again_if_it_is_free() {
        let agent = LoopbackUserAgent::new();
        let first = agent.prepare(None).await.unwrap();
        let uri = first.redirect_uri().to_owned();
        let meanwhile = agent.prepare(Some(&uri)).await.unwrap();
        assert_ne!(meanwhile.redirect_uri(), uri);
        drop(first);
        // Others on this machine take ports too, but not the same port forever.
        let mut tries = 0;
        while agent.prepare(Some(&uri)).await.unwrap().redirect_uri() != uri {
            tries += 1;
            assert!(tries < 1000, "the port is never taken again");
        }
    }

    /// An agent at an address that is written down, ready, and its port. A port that is free may be taken the next moment.
    async fn written_down() -> (Box<dyn UserLogin>, String, u16) {
        loop {
            let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap().local_addr().unwrap().port();
            let uri = format!("http://localhost:{port}/oauth/done");
            let agent = LoopbackUserAgent::new().opener(|_| Ok(())).at(&uri).unwrap();
            if let Ok(visit) = agent.prepare(Some("http://127.0.0.1:1/callback")).await {
                return (visit, uri, port);
            }
        }
    }

    #[tokio::test]
    async fn a_redirect_uri_that_is_written_down_is_kept() {
        let (visit, uri, free) = written_down().await;
        assert_eq!(visit.redirect_uri(), uri);
        let waiting = tokio::spawn(visit.visit(Url::parse("https://auth.example.com/?state=s1").unwrap()));
        assert!(get(free, "/callback?code=c&state=s1").await.contains("404"));
        assert!(get(free, "/oauth/done?code=c&state=s1").await.contains("200 OK"));
        assert_eq!(waiting.await.unwrap().unwrap(), "code=c&state=s1");
        for wrong in ["https://localhost:1/", "http://example.com/", "http://127.0.0.1.example.com/", "x"] {
            assert!(LoopbackUserAgent::new().at(wrong).is_err(), "{wrong}");
        }
    }

    #[tokio::test]
    async fn many_who_say_nothing_do_not_keep_the_answer_out() {
        let agent = LoopbackUserAgent::new().opener(|_| Ok(())).timeout(Duration::from_secs(5));
        let visit = agent.prepare(None).await.unwrap();
        let port = Url::parse(visit.redirect_uri()).unwrap().port().unwrap();
        let mut silent = Vec::new();
        for _ in 0..2 * CONNECTIONS {
            silent.push(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap());
        }
        let waiting = tokio::spawn(visit.visit(Url::parse("https://auth.example.com/?state=s1").unwrap()));
        assert!(get(port, "/callback?code=c&state=s1").await.contains("200 OK"));
        assert_eq!(waiting.await.unwrap().unwrap(), "code=c&state=s1");
    }

    /// What a browser does that is waited for.
    fn browse(port: u16) -> io::Result<()> {
        use std::io::{Read as _, Write as _};

        let mut stream = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"GET /callback?code=c&state=s1 HTTP/1.1\r\n\r\n")?;
        stream.read_to_string(&mut String::new())?;
        Ok(())
    }

    #[tokio::test]
    async fn a_browser_that_is_waited_for_can_come_back() {
        let port = Arc::new(std::sync::atomic::AtomicU16::new(0));
        let known = Arc::clone(&port);
        let agent = LoopbackUserAgent::new().opener(move |_| browse(known.load(std::sync::atomic::Ordering::Relaxed)));
        let visit = agent.prepare(None).await.unwrap();
        port.store(Url::parse(visit.redirect_uri()).unwrap().port().unwrap(), std::sync::atomic::Ordering::Relaxed);
        let found = visit.visit(Url::parse("https://auth.example.com/?state=s1").unwrap()).await;
        assert_eq!(found.unwrap(), "code=c&state=s1");
    }

    #[tokio::test]
    async fn a_port_of_localhost_that_somebody_else_has_half_of_is_not_taken() {
        // Without IPv6 loopback, no other program can listen on it.
        let Ok(other) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await else { return };
        let port = other.local_addr().unwrap().port();
        let agent = LoopbackUserAgent::new().at(&format!("http://localhost:{port}/callback")).unwrap();
        assert!(matches!(agent.prepare(None).await.err(), Some(Error::UserUnavailable(_))));
    }

    #[tokio::test]
    async fn a_user_who_does_not_answer_is_not_waited_for_for_ever() {
        let agent = LoopbackUserAgent::new().opener(|_| Ok(())).timeout(Duration::ZERO);
        let visit = agent.prepare(None).await.unwrap();
        let error = visit.visit(Url::parse("https://auth.example.com/").unwrap()).await.unwrap_err();
        assert_eq!(error, Error::UserUnavailable(String::from("the login timed out")));
    }

    #[tokio::test]
    async fn a_browser_that_does_not_open_is_an_error() {
        let agent = LoopbackUserAgent::new().opener(|_| Err(io::Error::other("no display")));
        let visit = agent.prepare(None).await.unwrap();
        let error = visit.visit(Url::parse("https://auth.example.com/").unwrap()).await.unwrap_err();
        assert_eq!(error.to_string(), "the user is not available: failed to open a browser: no display");
    }
}
