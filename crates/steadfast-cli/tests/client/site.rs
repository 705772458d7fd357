//! A site on loopback: a small MCP server of 2026-07-28, and the authorization server in front of it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

/// The token that the authorization server issues to every user.
const TOKEN: &str = "a-token-that-nobody-may-see";

#[derive(Clone)]
pub(crate) struct Site(Arc<Inner>);

struct Inner {
    port: u16,
    locked: bool,
    /// The requested paths, in order.
    asked: Mutex<Vec<String>>,
}

struct Request {
    method: String,
    path: String,
    query: String,
    token: Option<String>,
    body: String,
}

/// A status, headers and a body.
type Response = (u16, Vec<(&'static str, String)>, String);

impl Site {
    /// A server without authorization.
    pub(crate) fn open_to_all() -> Self {
        Self::start(false)
    }

    /// A server that requires authorization.
    pub(crate) fn locked() -> Self {
        Self::start(true)
    }

    fn start(locked: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let port = listener.local_addr().expect("it is bound").port();
        let site = Self(Arc::new(Inner { port, locked, asked: Mutex::default() }));
        let serving = site.clone();
        // The thread ends with the tests.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let site = serving.clone();
                std::thread::spawn(move || site.serve(stream));
            }
        });
        site
    }

    fn base(&self) -> String {
        format!("http://127.0.0.1:{}", self.0.port)
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/mcp", self.base())
    }

    /// How often that path was requested.
    pub(crate) fn count(&self, path: &str) -> usize {
        let asked = self.0.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.iter().filter(|asked| *asked == path).count()
    }

    /// The default URL of the tool `visit`: longer than a line of any terminal.
    pub(crate) fn address_to_visit() -> String {
        format!("https://example.com/{}?end=1", "long/".repeat(60))
    }

    /// Acts as the user's browser with the URL that the command shows.
    pub(crate) fn log_in(&self, shown: &str) {
        let url = shown.split_whitespace().find(|word| word.starts_with(&format!("{}/authorize?", self.base())));
        let url = url.unwrap_or_else(|| panic!("no URL of the authorization server in {shown:?}"));
        let location = get(url).lines().find_map(|line| line.strip_prefix("Location: ").map(str::to_owned));
        let page = get(&location.expect("the user is sent back"));
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    }

    fn serve(&self, mut stream: TcpStream) {
        let Some(request) = read(&stream) else { return };
        let path = request.path.clone();
        self.0.asked.lock().unwrap_or_else(PoisonError::into_inner).push(path);
        let (status, headers, body) = self.answer(&request);
        let headers = headers.into_iter().fold(String::new(), |all, (name, value)| all + name + ": " + &value + "\r\n");
        let head = format!(
            "HTTP/1.1 {status} Whatever\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n",
            body.len()
        );
        // An error means that the client has closed the connection.
        let _ = write!(stream, "{head}{headers}\r\n{body}");
    }

    fn answer(&self, request: &Request) -> Response {
        let base = self.base();
        let plain = |value: Value| (200, Vec::new(), value.to_string());
        match request.path.as_str() {
            "/mcp" => self.mcp(request),
            "/.well-known/oauth-protected-resource/mcp" => {
                plain(json!({ "resource": self.url(), "authorization_servers": [base] }))
            }
            "/.well-known/oauth-authorization-server" => plain(json!({
                "issuer": base,
                "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"),
                "registration_endpoint": format!("{base}/register"),
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
                "grant_types_supported": ["authorization_code", "client_credentials"],
            })),
            "/register" => {
                let mut registered: Value = serde_json::from_str(&request.body).expect("it is JSON");
                registered["client_id"] = json!("a-client");
                (201, Vec::new(), registered.to_string())
            }
            "/authorize" => {
                let find = |name: &str| parameter(&request.query, name).expect("the parameter is there");
                let back = format!("{}?code=a-code&state={}", decoded(find("redirect_uri")), find("state"));
                (302, vec![("Location", back)], String::new())
            }
            "/token" => plain(json!({ "access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600 })),
            _ => (404, Vec::new(), String::new()),
        }
    }

    fn mcp(&self, request: &Request) -> Response {
        if self.0.locked && request.token.as_deref() != Some(TOKEN) {
            let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", self.base());
            let challenge = format!("Bearer resource_metadata=\"{metadata}\"");
            return (401, vec![("WWW-Authenticate", challenge)], String::new());
        }
        if request.method != "POST" {
            return (405, Vec::new(), String::new());
        }
        let message: Value = serde_json::from_str(&request.body).expect("it is JSON");
        let result = match message["method"].as_str() {
            Some("server/discover") => json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
                "ttlMs": 0, "cacheScope": "private",
            }),
            Some("tools/call") => Self::call(&message["params"]),
            _ => return (202, Vec::new(), String::new()),
        };
        (200, Vec::new(), json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string())
    }

    fn call(params: &Value) -> Value {
        let usual = Self::address_to_visit();
        let url = params["arguments"]["url"].as_str().unwrap_or(&usual);
        let said = match (params["name"].as_str(), &params["inputResponses"]["visited"]["action"]) {
            (Some("visit"), Value::Null) => {
                let asked = json!({
                    "method": "elicitation/create",
                    "params": {
                        "mode": "url", "message": "Please go there \u{1b}[8mhidden", "url": url,
                        "elicitationId": "e1",
                    },
                });
                return json!({ "resultType": "input_required", "inputRequests": { "visited": asked } });
            }
            (Some("visit"), action) => action.as_str().unwrap_or("nothing").to_owned(),
            _ => "ada".to_owned(),
        };
        json!({ "resultType": "complete", "content": [{ "type": "text", "text": said }] })
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (mut length, mut token) = (0, None);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().ok()?,
            "authorization" => token = value.trim().strip_prefix("Bearer ").map(str::to_owned),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let body = String::from_utf8(body).ok()?;
    Some(Request { method, path: path.to_owned(), query: query.to_owned(), token, body })
}

fn get(url: &str) -> String {
    let rest = url.strip_prefix("http://").expect("it is not encrypted");
    let (host, target) = rest.split_once('/').expect("it has a path");
    let mut stream = TcpStream::connect(host).expect("somebody listens");
    write!(stream, "GET /{target} HTTP/1.1\r\nHost: {host}\r\n\r\n").expect("it is read");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers with text");
    answer.replace("\r\n", "\n")
}

fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').find_map(|pair| pair.split_once('=').filter(|(found, _)| *found == name).map(|(_, value)| value))
}

/// Enough for the URLs of loopback.
fn decoded(text: &str) -> String {
    text.replace("%3A", ":").replace("%2F", "/")
}
