use std::convert::Infallible;
use std::sync::Mutex;

use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use tower::ServiceExt;

use super::*;
use crate::resource_server::{AccessToken, verify_with};

/// What the inner service received.
type ReceivedRequests = Arc<Mutex<Vec<Parts>>>;

fn layer() -> BearerLayer {
    let verifier = verify_with(async |token: AccessToken| match token.expose() {
        "alice" => Ok(Principal::new("alice").with_scopes("read".parse().unwrap())),
        "admin" => Ok(Principal::new("admin").with_scopes("read write".parse().unwrap())),
        "late" => Err(TokenRejection::Expired),
        "down" => Err(TokenRejection::Unavailable("the authorization server does not answer")),
        _ => Err(TokenRejection::Invalid("unknown token")),
    });
    let metadata = ResourceMetadata::new("https://mcp.example.com/mcp", ["https://auth.example.com"]).unwrap();
    BearerLayer::new(verifier, &metadata).scopes("read".parse().unwrap())
}

async fn sent(layer: BearerLayer, request: http::request::Builder) -> (Response<()>, ReceivedRequests) {
    let arrived = ReceivedRequests::default();
    let seen = arrived.clone();
    let inner = tower::service_fn(move |request: Request<()>| {
        seen.lock().unwrap().push(request.into_parts().0);
        std::future::ready(Ok::<_, Infallible>(Response::new(())))
    });
    let response = layer.layer(inner).oneshot(request.body(()).unwrap()).await.unwrap();
    (response, arrived)
}

fn with_token(token: &str) -> http::request::Builder {
    Request::builder().uri("/mcp").header(AUTHORIZATION, format!("Bearer {token}"))
}

fn challenge(response: &Response<()>) -> &str {
    response.headers().get(WWW_AUTHENTICATE).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn a_good_token_lets_the_principal_through_and_stays_behind() {
    let (response, arrived) = sent(layer(), with_token("alice")).await;
    assert_eq!(response.status(), 200);
    let arrived = arrived.lock().unwrap();
    assert_eq!(arrived[0].extensions.get::<Principal>().and_then(Principal::subject), Some("alice"));
    assert!(!arrived[0].headers.contains_key(AUTHORIZATION));
    assert!(!format!("{arrived:?}").contains("Bearer"));
}

#[tokio::test]
async fn without_a_token_the_client_is_sent_to_the_metadata() {
    let (response, arrived) = sent(layer(), Request::builder().uri("/mcp")).await;
    assert_eq!(response.status(), 401);
    assert_eq!(
        challenge(&response),
        "Bearer scope=\"read\", resource_metadata=\"https://mcp.example.com/.well-known/oauth-protected-resource/mcp\""
    );
    assert!(arrived.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_token_that_is_not_good_goes_nowhere() {
    for (token, reason) in
        [("nobody", "unknown token"), ("late", "the token has expired"), ("a\"b", "the token is malformed")]
    {
        let (response, arrived) = sent(layer(), with_token(token)).await;
        assert_eq!(response.status(), 401, "{token}");
        assert!(challenge(&response).contains("error=\"invalid_token\""), "{}", challenge(&response));
        assert!(challenge(&response).contains(reason), "{}", challenge(&response));
        assert!(arrived.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn another_scheme_is_challenged_as_if_there_were_nothing() {
    let (response, _) = sent(layer(), Request::builder().header(AUTHORIZATION, "Basic YWxpY2U6eA==")).await;
    assert_eq!(response.status(), 401);
    assert!(!challenge(&response).contains("error"));
}

#[tokio::test]
async fn two_headers_and_a_token_in_the_query_are_bad_requests() {
    let twice = with_token("alice").header(AUTHORIZATION, "Bearer alice");
    let query = with_token("alice").uri("/mcp?access_token=alice");
    for request in [twice, query] {
        let (response, arrived) = sent(layer(), request).await;
        assert_eq!(response.status(), 400);
        assert!(challenge(&response).contains("error=\"invalid_request\""));
        assert!(arrived.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn requests_are_refused_while_the_verifier_is_unavailable() {
    let (response, arrived) = sent(layer(), with_token("down")).await;
    assert_eq!(response.status(), 503);
    assert!(arrived.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_request_may_need_more_and_the_challenge_names_all_of_it() {
    let by_method = |parts: &Parts| match parts.method {
        http::Method::DELETE => "write".parse().unwrap(),
        _ => Scopes::none(),
    };
    let delete = |token| with_token(token).method("DELETE");
    let (response, arrived) = sent(layer().scopes_by(by_method), delete("alice")).await;
    assert_eq!(response.status(), 403);
    assert!(challenge(&response).contains("error=\"insufficient_scope\""));
    assert!(challenge(&response).contains("scope=\"read write\""));
    assert!(arrived.lock().unwrap().is_empty());
    assert_eq!(sent(layer().scopes_by(by_method), delete("admin")).await.0.status(), 200);
    assert_eq!(sent(layer().scopes_by(by_method), with_token("alice")).await.0.status(), 200);
}

#[tokio::test]
async fn the_scope_decision_does_not_see_the_token() {
    let layer = layer().scopes_by(|parts| {
        assert!(!parts.headers.contains_key(AUTHORIZATION));
        Scopes::none()
    });
    assert_eq!(sent(layer, with_token("alice")).await.0.status(), 200);
}

#[tokio::test]
async fn a_broader_scope_lets_through_if_the_server_says_so() {
    let needs = "write:files".parse::<Scopes>().unwrap();
    let strict = layer().scopes(needs.clone());
    let hierarchical = layer().scopes(needs).implied_by(|granted, needed| needed.starts_with(&format!("{granted}:")));
    assert_eq!(sent(strict, with_token("admin")).await.0.status(), 403);
    assert_eq!(sent(hierarchical.clone(), with_token("admin")).await.0.status(), 200);
    assert_eq!(sent(hierarchical, with_token("alice")).await.0.status(), 403);
}

#[tokio::test]
async fn one_request_has_one_challenge_however_often_it_is_made() {
    let layer = layer().scopes("write read admin".parse().unwrap());
    for token in [None, Some("nobody"), Some("alice")] {
        let mut challenges = Vec::new();
        for _ in 0..3 {
            let request = token.map_or_else(|| Request::builder().uri("/mcp"), with_token);
            let (response, _) = sent(layer.clone(), request).await;
            challenges.push(challenge(&response).to_owned());
        }
        assert!(challenges[0].contains("scope=\"admin read write\""), "{challenges:?}");
        assert!(challenges.iter().all(|one| *one == challenges[0]), "{challenges:?}");
    }
}
