//! From a 401 to a successful response, with each grant and kind of discovery.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use p256::pkcs8::{EncodePrivateKey as _, EncodePublicKey as _, LineEnding};
use serde_json::json;
use steadfast_auth::client::{
    ClientCredential, ClientKey, Error, Grant, OAuthClientSettings, PreRegisteredClient, Secret,
};

use crate::site::{Site, SiteOptions, call};

#[tokio::test]
async fn a_user_is_asked_once_and_their_token_taken() {
    let site = Site::start(SiteOptions::default()).await;
    let authorizer = site.authorizer(OAuthClientSettings::new("Test")).build();
    for _ in 0..2 {
        assert_eq!(call(&authorizer, &site.url()).await.unwrap(), (200, String::from(r#"{"scopes":"basic"}"#)));
    }
    assert_eq!((site.count("/authorize"), site.count("/register"), site.count("/token")), (1, 1, 1));
    assert_eq!(site.count("/.well-known/oauth-protected-resource"), 0);
}

#[tokio::test]
async fn metadata_is_found_at_the_last_place_that_it_may_be() {
    let options = SiteOptions {
        resource_path: "/.well-known/oauth-protected-resource",
        resource_suffix: "",
        challenge_names_it: false,
        server_path: "/.well-known/openid-configuration",
        ..SiteOptions::default()
    };
    let site = Site::start(options).await;
    let authorizer = site.authorizer(OAuthClientSettings::new("Test")).build();
    assert_eq!(call(&authorizer, &site.url()).await.unwrap().0, 200);
    let paths = site.seen().paths.clone();
    assert_eq!(
        paths.get(1..5).unwrap(),
        [
            "/.well-known/oauth-protected-resource/mcp",
            "/.well-known/oauth-protected-resource",
            "/.well-known/oauth-authorization-server",
            "/.well-known/openid-configuration"
        ]
    );
}

#[tokio::test]
async fn a_server_that_publishes_nothing_is_still_understood() {
    let options = SiteOptions {
        resource_path: "/none",
        server_path: "/none",
        challenge_names_it: false,
        ..SiteOptions::default()
    };
    let site = Site::start(options).await;
    // Without metadata the issuer is the origin, which the redirect contains.
    let authorizer = site.authorizer(OAuthClientSettings::new("Test")).build();
    assert_eq!(call(&authorizer, &site.url()).await.unwrap().0, 200);
}

#[tokio::test]
async fn the_url_of_a_document_is_the_name_of_the_client() {
    let more = json!({"client_id_metadata_document_supported": true});
    let site = Site::start(SiteOptions { more, ..SiteOptions::default() }).await;
    let profile = OAuthClientSettings::new("Test").document("https://app.example.com/client.json").unwrap();
    call(&site.authorizer(profile).build(), &site.url()).await.unwrap();
    assert_eq!(site.seen().authorizations[0]["client_id"], "https://app.example.com/client.json");
    assert_eq!(site.count("/register"), 0);
}

#[tokio::test]
async fn a_registered_secret_is_shown_where_it_is_asked_for() {
    let more = json!({"token_endpoint_auth_methods_supported": ["client_secret_basic"]});
    let site = Site::start(SiteOptions { more, client_secret: Some("s3cr3t"), ..SiteOptions::default() }).await;
    assert_eq!(call(&site.authorizer(OAuthClientSettings::new("Test")).build(), &site.url()).await.unwrap().0, 200);
}

#[tokio::test]
async fn a_code_from_another_issuer_is_not_redeemed() {
    let site = Site::start(SiteOptions { iss: Some("https://evil.example.com"), ..SiteOptions::default() }).await;
    let refused = call(&site.authorizer(OAuthClientSettings::new("Test")).build(), &site.url()).await.unwrap_err();
    assert_eq!(refused, Error::InvalidRedirect("the issuer is not that of the authorization server"));
    assert_eq!(site.count("/token"), 0);
}

#[tokio::test]
async fn more_scopes_are_asked_for_together_with_those_before() {
    let site = Site::start(SiteOptions::default()).await;
    let authorizer = site.authorizer(OAuthClientSettings::new("Test")).build();
    call(&authorizer, &site.url()).await.unwrap();
    let written = call(&authorizer, &format!("{}?write", site.url())).await.unwrap();
    assert_eq!(written, (200, String::from(r#"{"scopes":"basic write"}"#)));
    assert_eq!(site.seen().authorizations[1]["scope"], "basic write");
    assert_eq!(site.refreshed(), 0, "the old scopes would not do");
}

#[tokio::test]
async fn a_server_that_refuses_everything_bothers_the_user_once() {
    let site = Site::start(SiteOptions { takes_nothing: true, ..SiteOptions::default() }).await;
    let authorizer = site.authorizer(OAuthClientSettings::new("Test")).build();
    for _ in 0..3 {
        assert_eq!(call(&authorizer, &site.url()).await.unwrap_err(), Error::TokenRejected);
    }
    assert_eq!(site.count("/authorize"), 1);
}

#[tokio::test]
async fn everybody_who_waits_for_a_user_who_says_no_hears_it() {
    let site = Site::start(SiteOptions { denies: true, ..SiteOptions::default() }).await;
    let authorizer = site.authorizer(OAuthClientSettings::new("Test")).build();
    let refusal = http::HeaderMap::new();
    let attempt = || authorizer.attempt(http::Method::POST, &site.url()).unwrap();
    let (mut one, mut two) = (attempt(), attempt());
    let refused = http::StatusCode::UNAUTHORIZED;
    let (one, two) = tokio::join!(one.answered(refused, &refusal), two.answered(refused, &refusal));
    assert!(matches!((one, two), (Err(Error::Denied(_)), Err(Error::Denied(_)))));
    assert_eq!(site.count("/authorize"), 1);
}

#[tokio::test]
async fn a_client_for_itself_shows_its_secret() {
    let more = json!({"token_endpoint_auth_methods_supported": ["client_secret_basic"]});
    let site = Site::start(SiteOptions { more, client_secret: Some("s3cr3t"), ..SiteOptions::default() }).await;
    let profile = OAuthClientSettings::new("Test").grant(Grant::ClientCredentials).registered(("me", "s3cr3t").into());
    assert_eq!(call(&site.authorizer(profile).build(), &site.url()).await.unwrap().0, 200);
    assert_eq!((site.count("/authorize"), site.count("/register")), (0, 0));
}

#[tokio::test]
async fn a_client_for_itself_signs_with_its_key() {
    let key = p256::SecretKey::from_slice(&[7; 32]).unwrap();
    let public = key.public_key().to_public_key_pem(LineEnding::LF).unwrap();
    let more = json!({"token_endpoint_auth_methods_supported": ["private_key_jwt"]});
    let site = Site::start(SiteOptions { more, client_key: Some(public), ..SiteOptions::default() }).await;
    let pem = key.to_pkcs8_pem(LineEnding::LF).unwrap();
    let key = ClientKey::from_pem(&Secret::new(pem.as_str()), "ES256").unwrap();
    let registered = PreRegisteredClient::new("me", ClientCredential::Key(key));
    let profile = OAuthClientSettings::new("Test").grant(Grant::ClientCredentials).registered(registered);
    assert_eq!(call(&site.authorizer(profile).build(), &site.url()).await.unwrap().0, 200);
}

#[tokio::test]
async fn tokens_are_bound_to_a_key_and_nonces_taken_up() {
    let site = Site::start(SiteOptions { dpop: true, ..SiteOptions::default() }).await;
    let authorizer = site.authorizer(OAuthClientSettings::new("Test")).build();
    for _ in 0..2 {
        assert_eq!(call(&authorizer, &site.url()).await.unwrap().0, 200);
    }
    assert_eq!((site.count("/authorize"), site.count("/token")), (1, 2), "once more for the nonce");
}

#[tokio::test]
async fn a_proof_is_for_the_url_that_is_asked() {
    let site = Site::start(SiteOptions { dpop: true, ..SiteOptions::default() }).await;
    let authorizer = site.authorizer(OAuthClientSettings::new("Test")).build();
    call(&authorizer, &site.url()).await.unwrap();
    // A redirect is followed with a new attempt.
    for path in ["/mcp", "/mcp/", "/moved"] {
        let url = format!("{}{path}", site.origin);
        let mut headers = http::HeaderMap::new();
        authorizer.attempt(http::Method::POST, &url).unwrap().sign(&mut headers).await.unwrap();
        let claims = headers["dpop"].to_str().unwrap().split('.').nth(1).unwrap().to_owned();
        let claims: serde_json::Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
        assert_eq!(claims["htu"], url);
    }
}

#[tokio::test]
async fn a_token_is_for_no_other_server() {
    let site = Site::start(SiteOptions::default()).await;
    let authorizer = site.authorizer(OAuthClientSettings::new("Test")).build();
    let refused = call(&authorizer, "http://127.0.0.1:1/mcp").await.unwrap_err();
    assert_eq!(refused, Error::WrongOrigin);
}
