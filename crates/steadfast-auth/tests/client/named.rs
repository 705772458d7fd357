//! The referrer of each request, which the HTTP client needs to check the addresses that a host name resolves to.

use std::sync::{Arc, Mutex};

use http::{HeaderMap, Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use steadfast_auth::client::{
    Authorizer, ClientCredential, Grant, IdentityProvider, OAuthClientSettings, OAuthResponseAction,
    PreRegisteredClient, Secret,
};
use steadfast_auth::{HttpClient, HttpClientBody, HttpClientFuture, MetadataSourceHost};

const SERVER: &str = "https://mcp.example.com/mcp";

/// The requested hosts, with the referrer of each.
type RequestedHosts = Vec<(String, Option<String>)>;

/// A server, its authorization server and an identity provider.
#[derive(Clone, Default)]
struct AllServers(Arc<Mutex<RequestedHosts>>);

impl HttpClient for AllServers {
    fn send(&self, request: Request<HttpClientBody>, _: usize) -> HttpClientFuture<'_> {
        let (host, path) = (request.uri().host().unwrap().to_owned(), request.uri().path());
        let answer: Value = match (host.as_str(), path) {
            ("mcp.example.com", _) => {
                json!({"resource": SERVER, "authorization_servers": ["https://auth.example.com"]})
            }
            ("auth.example.com", "/token") => json!({"access_token": "a", "token_type": "Bearer"}),
            ("auth.example.com", _) => {
                json!({"issuer": "https://auth.example.com", "token_endpoint": "https://auth.example.com/token"})
            }
            _ => {
                let kind = "urn:ietf:params:oauth:token-type:id-jag";
                json!({"access_token": "b", "token_type": "Bearer", "issued_token_type": kind})
            }
        };
        let named_by = request.extensions().get::<MetadataSourceHost>().map(|named_by| named_by.host().to_owned());
        self.0.lock().unwrap().push((host, named_by));
        Box::pin(async move { Ok(Response::new(HttpClientBody::from(answer.to_string()))) })
    }
}

/// The requests for a token, with this profile.
async fn asked(profile: OAuthClientSettings) -> RequestedHosts {
    let everybody = AllServers::default();
    let builder = Authorizer::builder(SERVER, profile, everybody.clone()).unwrap();
    let authorizer = builder.assertions(Secret::new("c")).build();
    let mut attempt = authorizer.attempt(Method::POST, SERVER).unwrap();
    assert_eq!(attempt.answered(StatusCode::UNAUTHORIZED, &HeaderMap::new()).await, Ok(OAuthResponseAction::Retry));
    std::mem::take(&mut *everybody.0.lock().unwrap())
}

#[tokio::test]
async fn what_the_server_names_is_said_to_be_named_by_it_and_what_the_program_chose_is_not() {
    let (named, chosen) = (Some(String::from("mcp.example.com")), None);
    let provider = IdentityProvider::new("https://idp.example.com", "https://idp.example.com/token", "me").unwrap();
    let profile = OAuthClientSettings::new("Test").grant(Grant::EnterpriseManaged(provider));
    let client = || PreRegisteredClient::new("me", ClientCredential::None);
    let expected = |at_issuer: &Option<String>| {
        let hosts = ["mcp.example.com", "auth.example.com", "idp.example.com", "auth.example.com"].map(String::from);
        let by = [named.clone(), at_issuer.clone(), chosen.clone(), at_issuer.clone()];
        hosts.into_iter().zip(by).collect::<RequestedHosts>()
    };
    assert_eq!(asked(profile.clone().registered(client())).await, expected(&named));
    assert_eq!(asked(profile.registered(client().with_issuer("https://auth.example.com"))).await, expected(&chosen));
}
