//! Refresh tokens are used only once, by concurrent callers and processes, also if a caller is dropped.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{HeaderMap, Method, Request, StatusCode};
use steadfast_auth::client::{
    Authorizer, BoxFuture, Error, FileTokenStore, MemoryTokenStore, OAuthClientSettings, OAuthResponseAction,
    TokenStore as _, TokenStoreKey, Url, UserAgent, UserLogin,
};
use steadfast_auth::{HttpClient, HttpClientBody, HttpClientError, HttpClientFuture};

use crate::site::{Site, SiteOptions, call};
use crate::wire::MinimalHttpClient;

/// The environment variable of a child process: the server and the directory.
const CHILD: &str = "STEADFAST_AUTH_TEST_CHILD";

/// A site whose first token expires at once, and an authorizer for it.
async fn stale(store: MemoryTokenStore) -> (Site, Authorizer) {
    let site = Site::start(SiteOptions { lifetimes: vec![0], ..SiteOptions::default() }).await;
    let authorizer = site.authorizer(OAuthClientSettings::new("Test")).store(store).build();
    (site, authorizer)
}

struct TempFolder(PathBuf);

impl TempFolder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("steadfast-auth-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn many_who_need_a_refresh_get_it_from_one_request() {
    let (site, authorizer) = stale(MemoryTokenStore::new()).await;
    let url = site.url();
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let (authorizer, url) = (authorizer.clone(), url.clone());
            tokio::spawn(async move { call(&authorizer, &url).await.map(|answer| answer.0) })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), Ok(200));
    }
    assert_eq!((site.count("/authorize"), site.refreshed()), (1, 1));
}

#[tokio::test]
async fn those_who_share_a_directory_refresh_once() {
    let scratch = TempFolder::new("shared");
    let site = Site::start(SiteOptions { lifetimes: vec![0], ..SiteOptions::default() }).await;
    let authorizer = |site: &Site| {
        let store = FileTokenStore::open(&scratch.0).unwrap();
        site.authorizer(OAuthClientSettings::new("Test")).store(store).build()
    };
    // Has an expired token, and starts to refresh it.
    site.refreshes.forget_permits(1000);
    let first = authorizer(&site);
    let url = site.url();
    let waiting = tokio::spawn(async move { call(&first, &url).await });
    while site.refreshed() == 0 {
        tokio::task::yield_now().await;
    }
    // Meanwhile other authorizers, as in other processes, find the same tokens.
    let others: Vec<_> = (0..4)
        .map(|_| {
            let (authorizer, url) = (authorizer(&site), site.url());
            tokio::spawn(async move { call(&authorizer, &url).await.map(|answer| answer.0) })
        })
        .collect();
    site.refreshes.add_permits(1000);
    let _ = waiting.await.unwrap();
    for other in others {
        assert_eq!(other.await.unwrap(), Ok(200));
    }
    assert_eq!((site.count("/authorize"), site.refreshed()), (1, 1));
}

/// Gets the first token, which has expired, and does not use it.
pub(crate) async fn authorize(authorizer: &Authorizer, site: &Site) {
    let mut attempt = authorizer.attempt(Method::POST, &site.url()).unwrap();
    let answered = attempt.answered(StatusCode::UNAUTHORIZED, &HeaderMap::new()).await;
    assert_eq!(answered, Ok(OAuthResponseAction::Retry));
}

#[tokio::test]
async fn processes_that_share_a_directory_refresh_once() {
    let scratch = TempFolder::new("processes");
    let site = Site::start(SiteOptions { lifetimes: vec![0], ..SiteOptions::default() }).await;
    let store = FileTokenStore::open(&scratch.0).unwrap();
    authorize(&site.authorizer(OAuthClientSettings::new("Test")).store(store).build(), &site).await;
    let children: Vec<_> = (0..3)
        .map(|_| {
            let told = format!("{} {}", site.url(), scratch.0.display());
            let mut command = std::process::Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "refresh::a_child_process_takes_its_turn"]).env(CHILD, told);
            tokio::task::spawn_blocking(move || command.output().unwrap())
        })
        .collect();
    for child in children {
        let output = child.await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    assert_eq!((site.count("/authorize"), site.refreshed()), (1, 1));
    assert_eq!(site.count("/mcp"), 3, "each child has asked, and was not refused");
}

/// Does nothing by itself: the test above runs it in child processes. It has no user agent, so it needs the refresh.
#[tokio::test]
async fn a_child_process_takes_its_turn() {
    let Ok(told) = std::env::var(CHILD) else { return };
    let (url, directory) = told.split_once(' ').unwrap();
    let store = FileTokenStore::open(directory).unwrap();
    let authorizer =
        Authorizer::builder(url, OAuthClientSettings::new("Test"), MinimalHttpClient).unwrap().store(store).build();
    assert_eq!(call(&authorizer, url).await.unwrap().0, 200);
}

/// The environment variable of another child process: the directory.
const HOLDER: &str = "STEADFAST_AUTH_TEST_HOLDER";

fn locked() -> TokenStoreKey {
    TokenStoreKey::Tokens {
        issuer: String::from("https://auth.example.com"),
        resource: String::from("https://mcp.example.com"),
    }
}

#[tokio::test(start_paused = true)]
async fn the_lock_of_a_process_that_is_killed_is_free() {
    use std::io::BufRead as _;

    let scratch = TempFolder::new("killed");
    let store = FileTokenStore::open(&scratch.0).unwrap();
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "refresh::a_child_process_holds_a_lock", "--nocapture"]).env(HOLDER, &scratch.0);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    let said = tokio::task::spawn_blocking(move || lines.map_while(Result::ok).any(|line| line.contains("it is held")));
    assert!(said.await.unwrap(), "the child has it");
    assert!(store.lock(&locked()).await.is_err(), "nobody else has it meanwhile");
    child.kill().unwrap();
    child.wait().unwrap();
    store.lock(&locked()).await.unwrap();
}

/// Does nothing by itself: the test above runs it in a child process, and kills it.
#[tokio::test]
async fn a_child_process_holds_a_lock() {
    let Ok(directory) = std::env::var(HOLDER) else { return };
    let _lock = FileTokenStore::open(directory).unwrap().lock(&locked()).await.unwrap();
    println!("it is held");
    std::future::pending::<()>().await;
}

/// An HTTP client whose requests fail, and which counts them.
#[derive(Clone, Default)]
struct FailingHttpClient(Arc<AtomicUsize>);

impl HttpClient for FailingHttpClient {
    fn send(&self, _: Request<HttpClientBody>, _: usize) -> HttpClientFuture<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async {
            tokio::task::yield_now().await;
            Err(HttpClientError::new("connection refused"))
        })
    }
}

#[tokio::test]
async fn those_who_wait_for_a_refresh_that_fails_do_not_try_it_again() {
    let store = MemoryTokenStore::new();
    let (site, authorizer) = stale(store.clone()).await;
    authorize(&authorizer, &site).await;
    let silence = FailingHttpClient::default();
    let cut_off = Authorizer::builder(&site.url(), OAuthClientSettings::new("Test"), silence.clone())
        .unwrap()
        .store(store)
        .build();
    let attempt = || cut_off.attempt(Method::POST, &site.url()).unwrap();
    let (mut one, mut two, mut headers, mut others) = (attempt(), attempt(), HeaderMap::new(), HeaderMap::new());
    let (one, two) = tokio::join!(one.sign(&mut headers), two.sign(&mut others));
    assert!(matches!((one, two), (Err(Error::Unreachable { .. }), Err(Error::Unreachable { .. }))));
    assert_eq!(silence.0.load(Ordering::Relaxed), 1);
    // Later it is retried, and the stored refresh token is still valid.
    assert!(attempt().sign(&mut headers).await.is_err());
    assert_eq!(silence.0.load(Ordering::Relaxed), 2);
    assert_eq!(call(&authorizer, &site.url()).await.unwrap().0, 200);
    assert_eq!(site.count("/authorize"), 1);
}

#[tokio::test]
async fn a_refresh_goes_on_when_its_caller_is_gone() {
    let (site, authorizer) = stale(MemoryTokenStore::new()).await;
    site.refreshes.forget_permits(1000);
    let caller = tokio::spawn({
        let (authorizer, url) = (authorizer.clone(), site.url());
        async move { call(&authorizer, &url).await }
    });
    while site.refreshed() == 0 {
        tokio::task::yield_now().await;
    }
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    site.refreshes.add_permits(1000);
    assert_eq!(call(&authorizer, &site.url()).await.unwrap().0, 200);
    assert_eq!((site.count("/authorize"), site.refreshed()), (1, 1));
}

#[tokio::test]
async fn tokens_are_found_again_after_a_restart() {
    let scratch = TempFolder::new("restart");
    let site = Site::start(SiteOptions::default()).await;
    for _ in 0..2 {
        let store = FileTokenStore::open(&scratch.0).unwrap();
        let authorizer = site.authorizer(OAuthClientSettings::new("Test")).store(store).build();
        assert_eq!(call(&authorizer, &site.url()).await.unwrap().0, 200);
    }
    assert_eq!((site.count("/authorize"), site.count("/token")), (1, 1));
}

/// A user agent that follows the URL itself, with a fixed redirect URI.
pub(crate) struct DirectUserAgent;

impl UserAgent for DirectUserAgent {
    fn prepare<'a>(&'a self, _: Option<&'a str>) -> BoxFuture<'a, Result<Box<dyn UserLogin>, Error>> {
        Box::pin(async { Ok(Box::new(Self) as Box<dyn UserLogin>) })
    }
}

impl UserLogin for DirectUserAgent {
    fn redirect_uri(&self) -> &'static str {
        "http://localhost:3000/callback"
    }

    fn visit(self: Box<Self>, url: Url) -> BoxFuture<'static, Result<String, Error>> {
        Box::pin(async move {
            let sent = MinimalHttpClient
                .send(Request::get(url.as_str()).body(HttpClientBody::default()).unwrap(), 10_000)
                .await
                .unwrap();
            let location = sent.headers()["location"].to_str().unwrap();
            Ok(location.split_once('?').unwrap().1.to_owned())
        })
    }
}

#[tokio::test]
async fn signing_out_forgets_the_tokens_and_keeps_the_registration() {
    let site = Site::start(SiteOptions::default()).await;
    let authorizer = site.authorizer(OAuthClientSettings::new("Test")).user_agent(DirectUserAgent).build();
    call(&authorizer, &site.url()).await.unwrap();
    authorizer.sign_out().await.unwrap();
    call(&authorizer, &site.url()).await.unwrap();
    assert_eq!((site.count("/authorize"), site.count("/register")), (2, 1));
}

#[tokio::test]
async fn forgetting_a_server_forgets_the_registration_too() {
    let store = MemoryTokenStore::new();
    let site = Site::start(SiteOptions::default()).await;
    let authorizer =
        site.authorizer(OAuthClientSettings::new("Test")).user_agent(DirectUserAgent).store(store.clone()).build();
    call(&authorizer, &site.url()).await.unwrap();
    assert_eq!(authorizer.forget().await, Ok(true));
    assert_eq!(format!("{store:?}"), "MemoryTokenStore(0 values)");
    assert_eq!(authorizer.forget().await, Ok(false), "there is nothing left");
    call(&authorizer, &site.url()).await.unwrap();
    assert_eq!((site.count("/authorize"), site.count("/register")), (2, 2));
}

#[tokio::test]
async fn nobody_to_ask_is_an_error() {
    let site = Site::start(SiteOptions::default()).await;
    let authorizer =
        Authorizer::builder(&site.url(), OAuthClientSettings::new("Test"), MinimalHttpClient).unwrap().build();
    assert!(matches!(call(&authorizer, &site.url()).await, Err(Error::UserUnavailable(_))));
}
