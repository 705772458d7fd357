//! The cache over HTTP: entries per authorization, and mirrored arguments.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use steadfast::ErrorKind;
use steadfast::transport::http::{
    Authorize, HttpTarget, OutgoingHttpRequest, RequestAuthorization, RequestAuthorizationFuture,
};

use crate::client::manual_server::*;
use crate::http::client::{connect, json_answer, modern, raw};

const HOUR: u64 = 3_600_000;

/// A token that the test exchanges.
#[derive(Clone)]
struct Token(Arc<Mutex<&'static str>>);

impl Authorize for Token {
    fn attempt(&self, _: &OutgoingHttpRequest<'_>) -> Box<dyn RequestAuthorization> {
        Box::new(self.clone())
    }
}

impl RequestAuthorization for Token {
    fn sign<'a>(&'a mut self, headers: &'a mut HeaderMap) -> RequestAuthorizationFuture<'a, ()> {
        headers.insert(AUTHORIZATION, HeaderValue::from_static(*self.0.lock().unwrap()));
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test]
async fn private_entries_are_cached_per_authorization() {
    let (url, _) = raw(|_, request| {
        let token = request.header("authorization").unwrap_or_default().to_owned();
        let result = match request.body["method"].as_str() {
            Some("tools/list") => listing(&[&token], HOUR, "private"),
            _ => contents(&token, HOUR),
        };
        modern(request, || json_answer(request, &result))
    })
    .await;
    let token = Token(Arc::new(Mutex::new("Bearer one")));
    let target = HttpTarget::new(&url).authorize(token.clone());
    let client = soon(Client::connect(target).negotiation(NegotiationMode::Stateless).into_future()).await.unwrap();
    assert_eq!(at_once(names(&client)).await, ["Bearer one"]);
    *token.0.lock().unwrap() = "Bearer two";
    // No request was sent since, so the other principal is not known yet.
    assert_eq!(at_once(names(&client)).await, ["Bearer one"]);
    let _ = soon(client.call_tool("t", json!({})).into_future()).await;
    assert_eq!(at_once(names(&client)).await, ["Bearer two"]);
}

#[tokio::test]
async fn arguments_are_mirrored_by_a_cached_tool_list() {
    let (url, requests) = raw(|_, request| {
        let mut page = listing(&["query"], HOUR, "public");
        page["tools"][0]["inputSchema"]["properties"] = json!({"region": {"type": "string", "x-mcp-header": "Region"}});
        let result = match request.body["method"].as_str() {
            Some("tools/list") => page,
            _ => json!({"resultType": "complete", "content": []}),
        };
        modern(request, || json_answer(request, &result))
    })
    .await;
    let cache = steadfast::client::ResponseCache::new();
    for _ in 0..2 {
        let connecting = Client::connect(url.as_str()).negotiation(NegotiationMode::Stateless).cache(cache.clone());
        let client = soon(connecting.into_future()).await.unwrap();
        soon(client.list_tools()).await.unwrap();
        soon(client.call_tool("query", json!({"region": "north"})).into_future()).await.unwrap();
    }
    let requests = requests.lock().unwrap();
    assert_eq!(requests.iter().filter(|request| request.is("tools/list")).count(), 1);
    let mirrored =
        requests.iter().filter(|request| request.is("tools/call")).map(|request| request.header("mcp-param-region"));
    assert_eq!(mirrored.collect::<Vec<_>>(), [Some("north"), Some("north")]);
}

#[tokio::test]
async fn a_result_of_an_unknown_type_is_an_error() {
    let (url, _) =
        raw(|_, request| modern(request, || json_answer(request, &json!({"resultType": "maybe", "content": []}))))
            .await;
    let client = connect(&url, NegotiationMode::Stateless).await;
    let error = soon(client.call_tool("t", json!({})).into_future()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode, "{error:?}");
}
