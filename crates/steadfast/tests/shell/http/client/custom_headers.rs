//! Headers and other settings of a target, and which of them are refused.

use serde_json::{Value, json};
use steadfast::client::NegotiationMode;
use steadfast::transport::http::{HttpTarget, TransportFetch, TransportFetchFuture, TransportFetchRequest};
use steadfast::{ErrorKind, Outcome};

use super::connections::tls::Authority;
use super::custom_fetch::{LocalFetch, no_delay};
use super::*;

#[tokio::test]
async fn custom_headers_are_on_every_request() {
    let (url, requests) = raw(|_, request| {
        older(request, || {
            if request.method == "POST" {
                json_answer(request, &json!({"content": []}))
            } else {
                response("405 No", &[], "")
            }
        })
    })
    .await;
    let target = HttpTarget::new(&url).header("X-Team", "weather").header("authorization", "Bearer t0ken");
    let client = soon(Client::connect(target).negotiation(OLDER).into_future()).await.unwrap();
    soon(client.call_tool("any", json!({})).into_future()).await.unwrap();
    soon(client.close()).await;
    let requests = requests.lock().unwrap();
    assert!(requests.iter().any(|request| request.method == "DELETE"));
    for request in requests.iter() {
        assert_eq!(
            (request.header("x-team"), request.header("authorization")),
            (Some("weather"), Some("Bearer t0ken"))
        );
    }
}

#[tokio::test]
async fn a_header_reserved_by_the_protocol_or_http_is_refused() {
    let (url, requests) = raw(|_, request| modern(request, || response("405 No", &[], ""))).await;
    let taken = [
        "MCP-Session-Id",
        "Mcp-Protocol-Version",
        "mcp-method",
        "mcp-name",
        "mcp-param-city",
        "mcp-anything",
        "Last-Event-ID",
        "Accept",
        "Accept-Encoding",
        "Content-Type",
        "Content-Length",
        "Content-Encoding",
        "Transfer-Encoding",
        "Connection",
        "Upgrade",
        "Host",
        "TE",
        "Expect",
        "Proxy-Authorization",
    ];
    for name in taken {
        let target = HttpTarget::new(&url).header(name, "s3cret");
        let error =
            soon(Client::connect(target).negotiation(NegotiationMode::Stateless).into_future()).await.unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::Transport, Outcome::NotSent), "{name}");
        let said = why(&error);
        assert!(said.contains(&name.to_lowercase()) && !said.contains("s3cret"), "{said}");
    }
    assert!(requests.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_invalid_header_is_refused_without_showing_its_value() {
    for (name, value) in [("a b", "s3cret"), ("a", "s3cret\r\nb: c"), ("", "s3cret")] {
        let target = HttpTarget::new("http://127.0.0.1:1/").header(name, value);
        assert!(!format!("{target:?}").contains("s3cret"));
        let error = soon(Client::connect(target).into_future()).await.unwrap_err();
        assert_eq!(error.outcome(), Outcome::NotSent);
        assert!(!format!("{error:?} {}", why(&error)).contains("s3cret"), "{error:?}");
    }
}

/// A whole header line given as a name is not shown, and for a value that cannot be sent the error does not blame
/// the name.
#[tokio::test]
async fn errors_about_headers_do_not_show_secret_values() {
    for (name, value, blamed) in [
        ("Authorization: Bearer s3cret", "", "name"),
        ("authorization", "Bearer s3cret\n", "the value of the header `authorization`"),
    ] {
        let target = HttpTarget::new("http://127.0.0.1:1/").header(name, value);
        let error = soon(Client::connect(target).into_future()).await.unwrap_err();
        let said = format!("{error:?} {}", why(&error));
        assert!(said.contains(blamed) && !said.contains("s3cret"), "{said}");
    }
}

/// The id of a session is what lets a client into it.
#[tokio::test]
async fn the_id_of_a_session_is_marked_as_a_secret() {
    struct Sessions(Arc<Mutex<Vec<bool>>>);
    impl TransportFetch for Sessions {
        fn fetch(&self, request: TransportFetchRequest) -> TransportFetchFuture {
            let id = request.headers.get("mcp-session-id");
            self.0.lock().unwrap().extend(id.map(::http::HeaderValue::is_sensitive));
            let answering = LocalFetch(|_: &TransportFetchRequest, _: &Value| no_delay()).fetch(request);
            Box::pin(async {
                let mut response = answering.await?;
                response.headers_mut().insert("mcp-session-id", ::http::HeaderValue::from_static("s3cret"));
                Ok(response)
            })
        }
    }
    let marked = Arc::<Mutex<Vec<bool>>>::default();
    let target = HttpTarget::new("http://near/mcp").fetch(Sessions(Arc::clone(&marked)));
    let client = connect_once(target, OLDER).await;
    soon(client.call_tool("any", json!({})).into_future()).await.unwrap();
    let marked = marked.lock().unwrap();
    assert!(!marked.is_empty() && marked.iter().all(|marked| *marked), "{marked:?}");
}

#[tokio::test]
async fn debug_and_errors_of_a_target_do_not_show_secrets() {
    let (url, _) = raw(|_, _| response("500 Internal Server Error", &[], "")).await;
    let target = HttpTarget::new(url.replace("http://", "http://me:s3cret@")).header("x-key", "s3cret");
    assert!(!format!("{target:?} {:?}", target.clone()).contains("s3cret"));
    let connecting = Client::connect(target).negotiation(NegotiationMode::Stateless);
    assert!(!format!("{connecting:?}").contains("s3cret"));
    let error = soon(connecting.into_future()).await.unwrap_err();
    assert!(!format!("{error:?} {}", why(&error)).contains("s3cret"), "{error:?}");
}

/// An array in an array, and so on.
fn nested(levels: usize) -> Value {
    (0..levels).fold(Value::Null, |inner, _| json!([inner]))
}

/// This server cannot read a message that is so deep; only the headers matter here.
#[tokio::test]
async fn arguments_are_mirrored_beside_deep_ones_and_arguments_past_the_depth_limit_are_not_sent() {
    let (url, requests) = raw(|_, request| {
        modern(request, || {
            let city = json!({"type": "string", "x-mcp-header": "City"});
            let tool = json!({"name": "any", "inputSchema": {"type": "object", "properties": {"city": city}}});
            let tools = json!({"resultType": "complete", "ttlMs": 60_000, "cacheScope": "private", "tools": [tool]});
            json_answer(request, &tools)
        })
    })
    .await;
    let client = connect_once(HttpTarget::new(&url), NegotiationMode::Stateless).await;
    soon(client.list_tools()).await.unwrap();
    let deep = |levels| client.call_tool("any", json!({"city": "Bonn", "deep": nested(levels)})).into_future();
    soon(deep(500)).await.unwrap_err();
    let last = requests.lock().unwrap().last().unwrap().clone();
    assert_eq!((last.header("mcp-method"), last.header("mcp-param-city")), (Some("tools/call"), Some("Bonn")));
    let before = requests.lock().unwrap().len();
    let error = soon(deep(1_100)).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unsendable, Outcome::NotSent), "{error:?}");
    assert_eq!(requests.lock().unwrap().len(), before);
}

/// A fetch that must not be called.
struct UnusedFetch;

impl TransportFetch for UnusedFetch {
    fn fetch(&self, _: TransportFetchRequest) -> TransportFetchFuture {
        panic!("nothing is to be sent")
    }
}

#[tokio::test]
async fn contradictory_settings_are_refused_before_a_request_is_sent() {
    let authority = Authority::new();
    let target = || HttpTarget::new("http://127.0.0.1:1/mcp");
    let rows = [
        target().proxy("http://127.0.0.1:2").fetch(UnusedFetch),
        target().fetch(UnusedFetch).proxy("http://127.0.0.1:2"),
        target().fetch(UnusedFetch).no_proxy(),
        target().fetch(UnusedFetch).trust_certificate(authority.pem()),
    ];
    for target in rows {
        let error = soon(Client::connect(target).into_future()).await.unwrap_err();
        assert_eq!(error.outcome(), Outcome::NotSent, "{error:?}");
        assert!(why(&error).contains("have no effect beside `fetch`"), "{}", why(&error));
    }
}

#[tokio::test]
async fn the_first_of_several_configuration_errors_is_reported() {
    let rows = [
        (HttpTarget::new("http://127.0.0.1:1/").header("host", "a").proxy("ftp://b").header("c d", ""), "`host`"),
        (HttpTarget::new("http://127.0.0.1:1/").proxy("ftp://b").header("host", "a"), "`ftp:`"),
        (HttpTarget::new("gopher://127.0.0.1:1/").header("host", "a"), "`gopher:`"),
        (HttpTarget::new("http://127.0.0.1:1/").fetch(UnusedFetch).no_proxy().header("host", "a"), "`host`"),
    ];
    for (target, first) in rows {
        let error = soon(Client::connect(target).into_future()).await.unwrap_err();
        assert!(why(&error).contains(first), "{}", why(&error));
    }
}

/// A URL may hold secrets.
#[test]
fn debug_of_a_target_does_not_show_secrets_of_its_url() {
    for url in ["https://me:s3cret@example.org/mcp", "https://example.org/mcp?key=s3cret", "https://me:s3cret@:x/"] {
        let shown = format!("{:?}", HttpTarget::new(url));
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}
