//! The `Debug` output of every public type that can contain a secret.

use std::sync::Arc;

use http::{HeaderMap, Method, Response};
use serde_json::json;
use steadfast_auth::client::{
    AuthScheme, Authorizer, ClientCredential, ClientKey, ClientRegistration, Error, Grant, IdentityProvider,
    LoopbackUserAgent, MemoryTokenStore, OAuthClientSettings, OAuthFlow, OAuthFlowCommand, OAuthFlowCommandResult,
    OAuthFlowStart, OAuthGrant, PreRegisteredClient, Secret, SystemRandomness, TokenStore as _, TokenStoreKey, Tokens,
    Url, WwwAuthenticateChallenge,
};
use steadfast_auth::{HttpClientBody, HttpClientError};

use crate::wire::MinimalHttpClient;

/// Used for every secret and in every query, since queries may contain keys.
const SECRET: &str = "s3cr3t";
const SERVER: &str = "https://mcp.example.com/mcp?key=s3cr3t";

fn tokens() -> Tokens {
    let tokens = json!({
        "issuer": "https://auth.example.com",
        "resource": SERVER,
        "token_endpoint": "https://auth.example.com/token?key=s3cr3t",
        "client_id": "me",
        "method": "none",
        "access_token": SECRET,
        "scheme": "DPoP",
        "refresh_token": SECRET,
        "issued_at": 1,
        "key": SECRET,
    });
    serde_json::from_value(tokens).unwrap()
}

fn registration() -> ClientRegistration {
    let registration = json!({
        "client_id": "me",
        "client_secret": SECRET,
        "method": "client_secret_basic",
        "redirect_uri": "http://127.0.0.1:1/callback",
    });
    serde_json::from_value(registration).unwrap()
}

fn profile() -> OAuthClientSettings {
    let token_endpoint = "https://idp.example.com/token?key=s3cr3t";
    let provider = IdentityProvider::new("https://idp.example.com", token_endpoint, "me").unwrap();
    let provider = provider.credential(ClientCredential::Secret(Secret::new(SECRET)));
    let document = "https://app.example.com/client.json";
    let profile = OAuthClientSettings::new("Test")
        .document_with(document, ClientCredential::Secret(Secret::new(SECRET)))
        .unwrap();
    profile.grant(Grant::EnterpriseManaged(provider)).registered(("me", SECRET).into())
}

fn challenge() -> WwwAuthenticateChallenge {
    let resource_metadata = Some(String::from("https://mcp.example.com/metadata?key=s3cr3t"));
    WwwAuthenticateChallenge { scheme: AuthScheme::Dpop, resource_metadata, ..WwwAuthenticateChallenge::default() }
}

fn check(printed: &str) {
    assert!(!printed.contains(SECRET), "{printed}");
}

macro_rules! nothing_secret_in {
    ($($value:expr),* $(,)?) => {
        $({
            let value = $value;
            check(&format!("{value:?}"));
            check(&format!("{value:#?}"));
        })*
    };
}

#[tokio::test]
async fn no_public_type_prints_a_secret() {
    let store = MemoryTokenStore::new();
    store.save(&TokenStoreKey::Server { url: SERVER.to_owned() }, &Secret::new(SECRET)).await.unwrap();
    let input = OAuthFlowStart {
        challenge: Some(challenge()),
        tokens: Some(tokens()),
        may_refresh: true,
        issuer: Some(String::from("https://auth.example.com")),
    };
    let mut flow = OAuthFlow::new(Arc::new(profile()), SERVER, input.clone(), Arc::new(SystemRandomness)).unwrap();
    let first = flow.begin();
    let outcome = OAuthGrant { tokens: tokens(), registration: Some(registration()), refreshed: false };
    nothing_secret_in![
        Secret::new(SECRET),
        ClientCredential::Secret(Secret::new(SECRET)),
        PreRegisteredClient::from(("me", SECRET)),
        profile(),
        tokens(),
        registration(),
        challenge(),
        input,
        flow,
        first,
        outcome.clone(),
        OAuthFlowCommand::Authorized(Box::new(outcome)),
        OAuthFlowCommand::Visit(Url::parse("https://auth.example.com/authorize?state=s3cr3t").unwrap()),
        OAuthFlowCommand::FetchAssertion {
            issuer: String::from("https://auth.example.com"),
            resource: SERVER.to_owned()
        },
        OAuthFlowCommand::Failed(
            OAuthFlow::new(
                Arc::new(profile()),
                "http://me:s3cr3t@mcp.example.com/?s3cr3t",
                OAuthFlowStart::default(),
                Arc::new(SystemRandomness)
            )
            .unwrap_err()
        ),
        OAuthFlowCommandResult::Response(Response::new(HttpClientBody::from(SECRET))),
        OAuthFlowCommandResult::RegistrationLoaded(Some(registration())),
        OAuthFlowCommandResult::Redirected(String::from("code=s3cr3t")),
        OAuthFlowCommandResult::Assertion(Secret::new(SECRET)),
        OAuthFlowCommandResult::Unreachable(HttpClientError::new("connection refused")),
        TokenStoreKey::Server { url: SERVER.to_owned() },
        TokenStoreKey::Tokens { issuer: String::from("https://auth.example.com"), resource: SERVER.to_owned() },
        Authorizer::builder(SERVER, profile(), MinimalHttpClient).unwrap(),
        Authorizer::builder(SERVER, profile(), MinimalHttpClient).unwrap().build(),
        Authorizer::builder(SERVER, profile(), MinimalHttpClient)
            .unwrap()
            .build()
            .attempt(Method::POST, SERVER)
            .unwrap(),
        LoopbackUserAgent::new(),
        store,
        HttpClientBody::from(SECRET),
    ];
}

#[tokio::test]
async fn a_token_in_a_header_is_not_printed() {
    let store = MemoryTokenStore::new();
    let binding = json!({"issuer": "https://auth.example.com", "resource": SERVER}).to_string();
    store.save(&TokenStoreKey::Server { url: SERVER.to_owned() }, &Secret::new(binding)).await.unwrap();
    let key = TokenStoreKey::Tokens { issuer: String::from("https://auth.example.com"), resource: SERVER.to_owned() };
    let mut kept = serde_json::to_value(tokens()).unwrap();
    kept["scheme"] = json!("Bearer");
    store.save(&key, &Secret::new(kept.to_string())).await.unwrap();
    let authorizer =
        Authorizer::builder(SERVER, OAuthClientSettings::new("Test"), MinimalHttpClient).unwrap().store(store).build();
    let mut headers = HeaderMap::new();
    authorizer.attempt(Method::POST, SERVER).unwrap().sign(&mut headers).await.unwrap();
    assert_eq!(headers["authorization"], "Bearer s3cr3t");
    check(&format!("{headers:?}"));
}

#[test]
fn errors_repeat_no_secret() {
    let url = Authorizer::builder(
        "ftp://me:s3cr3t@mcp.example.com/s?s3cr3t",
        OAuthClientSettings::new("x"),
        MinimalHttpClient,
    )
    .unwrap_err();
    let document = OAuthClientSettings::new("x").document("https://me:s3cr3t@app.example.com/c?s3cr3t").unwrap_err();
    let key = ClientKey::from_pem(&Secret::new(SECRET), "ES256").unwrap_err();
    let errors: [Error; 3] = [url, document, key];
    for error in errors {
        check(&format!("{error} {error:?}"));
    }
}
