//! Whole flows, with functions as servers.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::header::LOCATION;
use http::{Request, Response};
use serde_json::{Value, json};

use super::*;
use crate::client::Secret;
use crate::client::challenge::WwwAuthenticateChallenge;
use crate::client::credentials::{ClientCredential, ClientKey};
use crate::client::profile::{IdentityProvider, PreRegisteredClient};
use crate::client::random::CountingRandomness;

const SERVER: &str = "https://mcp.example.com/mcp";
const CALLBACK: &str = "http://127.0.0.1:7/callback";

/// A flow and its servers: a response for each path, on any host.
struct World {
    profile: OAuthClientSettings,
    input: OAuthFlowStart,
    answers: Vec<(&'static str, u16, Value)>,
    registration: Option<ClientRegistration>,
    /// The parameters of the redirect besides code and state.
    redirect: &'static str,
    /// `METHOD url` of each request, and its form or body.
    seen: Vec<(String, String)>,
    visited: Vec<Url>,
}

fn world() -> World {
    World {
        profile: OAuthClientSettings::new("Test"),
        input: OAuthFlowStart::default(),
        answers: vec![
            ("mcp.example.com/.well-known/oauth-protected-resource/mcp", 200, resource(SERVER)),
            ("auth.example.com/.well-known/oauth-authorization-server", 200, metadata(json!({}))),
            ("auth.example.com/register", 201, json!({"client_id": "registered"})),
            ("auth.example.com/token", 200, tokens()),
        ],
        registration: None,
        redirect: "",
        seen: Vec::new(),
        visited: Vec::new(),
    }
}

fn resource(name: &str) -> Value {
    json!({"resource": name, "authorization_servers": ["https://auth.example.com"]})
}

fn tokens() -> Value {
    json!({"access_token": "access", "token_type": "Bearer", "expires_in": 100, "refresh_token": "refresh"})
}

fn metadata(more: Value) -> Value {
    let mut document = json!({
        "issuer": "https://auth.example.com",
        "authorization_endpoint": "https://auth.example.com/authorize",
        "token_endpoint": "https://auth.example.com/token",
        "registration_endpoint": "https://auth.example.com/register",
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
    });
    for (name, value) in more.as_object().unwrap() {
        document[name] = value.clone();
    }
    document
}

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000)
}

impl World {
    fn set(mut self, path: &'static str, status: u16, body: Value) -> Self {
        self.answers.insert(0, (path, status, body));
        self
    }

    fn metadata(self, more: Value) -> Self {
        self.set("auth.example.com/.well-known/oauth-authorization-server", 200, metadata(more))
    }

    fn flow(&self) -> OAuthFlow {
        let random = Arc::new(CountingRandomness::default());
        OAuthFlow::new(Arc::new(self.profile.clone()), SERVER, self.input.clone(), random).unwrap()
    }

    fn run(&mut self) -> Result<OAuthGrant, Error> {
        let mut flow = self.flow();
        let first = flow.begin();
        self.drive(flow, first)
    }

    fn drive(&mut self, mut flow: OAuthFlow, mut command: OAuthFlowCommand) -> Result<OAuthGrant, Error> {
        for _ in 0..20 {
            let event = match command {
                OAuthFlowCommand::Send(request) => OAuthFlowCommandResult::Response(self.answer(&request)),
                OAuthFlowCommand::LoadRegistration { .. } => {
                    OAuthFlowCommandResult::RegistrationLoaded(self.registration.clone())
                }
                OAuthFlowCommand::PrepareRedirect { .. } => OAuthFlowCommandResult::RedirectReady(CALLBACK.to_owned()),
                OAuthFlowCommand::Visit(url) => {
                    let state = url.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
                    self.visited.push(url);
                    OAuthFlowCommandResult::Redirected(format!("code=the-code&state={state}{}", self.redirect))
                }
                OAuthFlowCommand::FetchAssertion { .. } => {
                    OAuthFlowCommandResult::Assertion(Secret::new("the-assertion"))
                }
                OAuthFlowCommand::Authorized(outcome) => return Ok(*outcome),
                OAuthFlowCommand::Failed(error) => return Err(error),
            };
            command = flow.handle(event, now());
        }
        panic!("no end: {:?}", self.seen)
    }

    fn answer(&mut self, request: &Request<HttpClientBody>) -> Response<HttpClientBody> {
        let body = String::from_utf8(request.body().as_bytes().to_vec()).unwrap();
        self.seen.push((format!("{} {}", request.method(), request.uri()), body));
        let url = request.uri().to_string();
        let found = self.answers.iter().find(|(path, ..)| url.strip_prefix("https://") == Some(path));
        let (status, body) = found.map_or((404, Value::Null), |(_, status, body)| (*status, body.clone()));
        let mut response = Response::builder().status(status);
        if let Some(location) = body["location"].as_str() {
            response = response.header(LOCATION, location);
        }
        response.body(HttpClientBody::from(body.to_string())).unwrap()
    }

    fn paths(&self) -> Vec<&str> {
        self.seen.iter().map(|(line, _)| line.as_str()).collect()
    }

    fn form(&self, index: usize, wanted: &str) -> Option<String> {
        let body = self.seen[index].1.as_bytes();
        form_urlencoded::parse(body).find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
    }

    fn token_form(&self, wanted: &str) -> Option<String> {
        self.form(self.seen.len() - 1, wanted)
    }

    fn asked(&self, wanted: &str) -> Option<String> {
        let url = self.visited.last().unwrap();
        url.query_pairs().find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
    }
}

#[test]
fn a_user_is_asked_and_tokens_come() {
    let mut world = world();
    let outcome = world.run().unwrap();
    assert_eq!(
        world.paths(),
        [
            "GET https://mcp.example.com/.well-known/oauth-protected-resource/mcp",
            "GET https://auth.example.com/.well-known/oauth-authorization-server",
            "POST https://auth.example.com/register",
            "POST https://auth.example.com/token",
        ]
    );
    assert_eq!(outcome.tokens.access_token.expose(), "access");
    assert_eq!(outcome.tokens.expires_at, Some(1_000_100));
    assert_eq!(outcome.registration.unwrap().client_id, "registered");
    assert_eq!(world.asked("resource").as_deref(), Some(SERVER));
    assert_eq!(world.token_form("resource").as_deref(), Some(SERVER));
    assert_eq!(world.token_form("redirect_uri").as_deref(), Some(CALLBACK));
    assert_eq!(world.token_form("client_id").as_deref(), Some("registered"));
    let verifier = world.token_form("code_verifier").unwrap();
    assert_eq!(world.asked("code_challenge"), Some(super::super::pkce::digest(&verifier)));
}

#[test]
fn the_resource_is_sent_as_it_names_itself() {
    let mut world = world().set("mcp.example.com/.well-known/oauth-protected-resource/mcp", 404, Value::Null).set(
        "mcp.example.com/.well-known/oauth-protected-resource",
        200,
        resource("https://mcp.example.com"),
    );
    world.run().unwrap();
    assert_eq!(world.asked("resource").as_deref(), Some("https://mcp.example.com"));
    assert_eq!(world.token_form("resource").as_deref(), Some("https://mcp.example.com"));
}

#[test]
fn a_server_without_resource_metadata_is_its_own_authorization_server() {
    let own = json!({
        "issuer": "https://mcp.example.com",
        "authorization_endpoint": "https://mcp.example.com/oauth/authorize",
        "token_endpoint": "https://mcp.example.com/oauth/token",
        "registration_endpoint": "https://mcp.example.com/oauth/register",
        "code_challenge_methods_supported": ["S256"],
    });
    let mut world = world();
    world.answers = vec![
        ("mcp.example.com/.well-known/oauth-authorization-server", 200, own),
        ("mcp.example.com/oauth/register", 201, json!({"client_id": "c"})),
        ("mcp.example.com/oauth/token", 200, tokens()),
    ];
    assert_eq!(world.run().unwrap().tokens.issuer(), "https://mcp.example.com");
    assert_eq!(world.asked("resource").as_deref(), Some(SERVER));
}

#[test]
fn a_server_that_publishes_nothing_has_default_endpoints_if_that_is_understood() {
    let mut world = world();
    world.answers =
        vec![("mcp.example.com/register", 201, json!({"client_id": "c"})), ("mcp.example.com/token", 200, tokens())];
    world.run().unwrap();
    assert_eq!(world.visited[0].path(), "/authorize");
    world.profile = world.profile.legacy_discovery(false);
    assert_eq!(world.run().unwrap_err(), Error::NoResourceMetadata);
}

#[test]
fn metadata_is_followed_within_its_origin_only() {
    let moved = json!({"location": "/elsewhere"});
    let mut world = world().set("mcp.example.com/.well-known/oauth-protected-resource/mcp", 302, moved).set(
        "mcp.example.com/elsewhere",
        200,
        resource(SERVER),
    );
    world.run().unwrap();
    let away = json!({"location": "https://auth.example.com/evil"});
    let mut world = super::tests::world()
        .set(
            "auth.example.com/.well-known/oauth-authorization-server",
            302,
            json!({"location": "https://evil.example/"}),
        )
        .set("auth.example.com/evil", 200, resource(SERVER))
        .set("mcp.example.com/.well-known/oauth-protected-resource/mcp", 302, away);
    world.profile = world.profile.legacy_discovery(false);
    assert_eq!(world.run().unwrap_err(), Error::NoResourceMetadata);
    assert!(!world.paths().iter().any(|path| path.contains("evil")));
    let endless = json!({"location": "/.well-known/oauth-protected-resource/mcp"});
    let mut world = super::tests::world().set("mcp.example.com/.well-known/oauth-protected-resource/mcp", 302, endless);
    world.profile = world.profile.legacy_discovery(false);
    assert_eq!(world.run().unwrap_err(), Error::NoResourceMetadata);
}

#[test]
fn another_resource_or_issuer_ends_the_flow_before_anything_is_sent_there() {
    let mut world = world().set(
        "mcp.example.com/.well-known/oauth-protected-resource/mcp",
        200,
        resource("https://evil.example.com/mcp"),
    );
    assert!(matches!(world.run(), Err(Error::ResourceMismatch { .. })));
    assert_eq!(world.seen.len(), 1);
    let mut world = super::tests::world().metadata(json!({"issuer": "https://attacker.example"}));
    assert!(matches!(world.run(), Err(Error::IssuerMismatch { .. })));
    assert_eq!((world.seen.len(), world.visited.len()), (2, 0));
}

#[test]
fn no_code_is_sent_when_the_issuer_of_the_redirect_is_wrong_or_missing() {
    for (advertised, redirect) in [
        (true, ""),
        (true, "&iss=https%3A%2F%2Fevil.example.com"),
        (false, "&iss=https%3A%2F%2Fevil.example.com"),
        (true, "&iss=https%3A%2F%2Fauth.example.com%2F"),
    ] {
        let mut world = world().metadata(json!({"authorization_response_iss_parameter_supported": advertised}));
        world.redirect = redirect;
        assert!(matches!(world.run(), Err(Error::InvalidRedirect(_))), "{advertised} {redirect}");
        assert!(!world.paths().iter().any(|path| path.contains("token")));
    }
}

#[test]
fn a_server_without_pkce_is_refused_before_the_client_registers() {
    let mut world = world().metadata(json!({"code_challenge_methods_supported": ["plain"]}));
    assert_eq!(world.run().unwrap_err(), Error::NoPkce);
    assert_eq!(world.seen.len(), 2);
}

#[test]
fn the_document_is_the_name_where_it_is_understood() {
    let mut world = world().metadata(json!({"client_id_metadata_document_supported": true}));
    world.profile = world.profile.document("https://app.example.com/client.json").unwrap();
    let outcome = world.run().unwrap();
    assert_eq!(world.asked("client_id").as_deref(), Some("https://app.example.com/client.json"));
    assert!(outcome.registration.is_none());
}

#[test]
fn a_registration_is_used_again() {
    let mut world = world();
    world.registration = world.run().unwrap().registration;
    world.seen.clear();
    world.run().unwrap();
    assert!(!world.paths().iter().any(|path| path.contains("register")));
}

#[test]
fn a_client_that_wants_more_than_it_registered_for_registers_again() {
    let mut world = world();
    world.registration = world.run().unwrap().registration;
    world.seen.clear();
    world.input.challenge =
        Some(WwwAuthenticateChallenge { scope: "a".parse().ok(), ..WwwAuthenticateChallenge::default() });
    world.run().unwrap();
    let registered: Value = serde_json::from_str(&world.seen[2].1).unwrap();
    assert_eq!(registered["scope"], "a");
}

#[test]
fn a_step_up_asks_for_the_union_and_does_not_refresh() {
    let mut world = world();
    let challenge = |scope: &str| {
        Some(WwwAuthenticateChallenge { scope: scope.parse().ok(), ..WwwAuthenticateChallenge::default() })
    };
    world.input.challenge = challenge("basic");
    let first = world.run().unwrap();
    assert_eq!(world.asked("scope").as_deref(), Some("basic"));
    world.input =
        OAuthFlowStart { challenge: challenge("write"), tokens: Some(first.tokens), ..OAuthFlowStart::default() };
    let second = world.run().unwrap();
    assert_eq!(world.asked("scope").as_deref(), Some("basic write"));
    assert_eq!(second.tokens.requested, "basic write".parse().ok());
}

#[test]
fn what_was_asked_from_another_issuer_is_not_asked_from_this_one() {
    let mut world = world();
    let mut before = world.run().unwrap().tokens;
    before.issuer = String::from("https://old.example.com");
    before.requested = "old".parse().ok();
    world.input = OAuthFlowStart { tokens: Some(before), may_refresh: true, ..OAuthFlowStart::default() };
    world.run().unwrap();
    assert_eq!(world.asked("scope"), None);
    assert_eq!(world.token_form("grant_type").as_deref(), Some("authorization_code"), "nor is the old token shown");
    assert!(world.paths().contains(&"POST https://auth.example.com/register"), "it registers anew");
}

#[test]
fn tokens_are_refreshed_before_the_user_is_asked() {
    let mut world = world();
    let first = world.run().unwrap();
    world.registration = first.registration;
    world.visited.clear();
    world.input = OAuthFlowStart { tokens: Some(first.tokens), may_refresh: true, ..OAuthFlowStart::default() };
    let mut answer = tokens();
    answer["refresh_token"] = Value::Null;
    answer["access_token"] = json!("second");
    let mut world = world.set("auth.example.com/token", 200, answer);
    let second = world.run().unwrap().tokens;
    assert_eq!(world.token_form("grant_type").as_deref(), Some("refresh_token"));
    assert_eq!(world.token_form("resource").as_deref(), Some(SERVER));
    assert_eq!(second.access_token.expose(), "second");
    assert_eq!(second.refresh_token.unwrap().expose(), "refresh", "the old one stays");
    assert!(world.visited.is_empty());
}

#[test]
fn a_refresh_token_that_is_over_leads_to_the_user() {
    let mut world = world();
    let first = world.run().unwrap();
    world.registration = first.registration;
    world.visited.clear();
    world.input = OAuthFlowStart { tokens: Some(first.tokens), may_refresh: true, ..OAuthFlowStart::default() };
    let mut world = world.set("auth.example.com/token", 400, json!({"error": "invalid_grant"}));
    assert!(matches!(world.run(), Err(Error::TokenRefused(_))));
    assert_eq!(world.visited.len(), 1);
    // Without discovery there is no authorization server to ask.
    let mut flow = world.flow();
    let first = flow.begin_refresh(world.registration.as_ref(), now());
    world.seen.clear();
    assert!(matches!(world.drive(flow, first), Err(Error::TokenRefused(_))));
    assert_eq!(world.paths(), ["POST https://auth.example.com/token"]);
}

#[test]
fn an_authorization_server_that_gives_no_refresh_token_is_done_without() {
    let mut answer = tokens();
    answer.as_object_mut().unwrap().remove("refresh_token");
    let mut world = world().set("auth.example.com/token", 200, answer);
    let first = world.run().unwrap();
    assert!(!first.tokens.is_refreshable());
    world.registration = first.registration;
    world.input = OAuthFlowStart { tokens: Some(first.tokens), may_refresh: true, ..OAuthFlowStart::default() };
    world.run().unwrap();
    assert_eq!((world.visited.len(), world.token_form("grant_type").as_deref()), (2, Some("authorization_code")));
}

#[test]
fn a_client_that_the_authorization_server_does_not_know_is_not_kept() {
    for code in ["invalid_client", "unauthorized_client"] {
        let mut world = world();
        world.registration = world.run().unwrap().registration;
        let mut flow = world.flow();
        let mut command = flow.begin();
        let state = loop {
            let event = match command {
                OAuthFlowCommand::Send(request) => OAuthFlowCommandResult::Response(world.answer(&request)),
                OAuthFlowCommand::LoadRegistration { .. } => {
                    OAuthFlowCommandResult::RegistrationLoaded(world.registration.clone())
                }
                OAuthFlowCommand::PrepareRedirect { .. } => OAuthFlowCommandResult::RedirectReady(CALLBACK.to_owned()),
                OAuthFlowCommand::Visit(url) => break super::super::authorize::state_of(url.query().unwrap()).unwrap(),
                other => panic!("{other:?}"),
            };
            command = flow.handle(event, now());
        };
        assert!(flow.take_invalidation().client.is_none());
        let answer = OAuthFlowCommandResult::Redirected(format!("error={code}&state={state}"));
        assert!(matches!(flow.handle(answer, now()), OAuthFlowCommand::Failed(Error::Denied(_))));
        let known = (String::from("https://auth.example.com"), String::from("registered"));
        assert_eq!(flow.take_invalidation().client, Some(known));
    }
}

#[test]
fn a_client_for_itself_shows_its_secret() {
    let mut world = world().metadata(json!({"token_endpoint_auth_methods_supported": ["client_secret_post"]}));
    world.profile = world.profile.grant(Grant::ClientCredentials).registered(("me", "s3cr3t").into());
    world.input.challenge =
        Some(WwwAuthenticateChallenge { scope: "a".parse().ok(), ..WwwAuthenticateChallenge::default() });
    world.run().unwrap();
    assert_eq!(world.token_form("grant_type").as_deref(), Some("client_credentials"));
    assert_eq!(world.token_form("client_secret").as_deref(), Some("s3cr3t"));
    assert_eq!(world.token_form("scope").as_deref(), Some("a"));
    assert_eq!(world.token_form("resource").as_deref(), Some(SERVER));
    assert!(world.visited.is_empty());
}

#[test]
fn a_client_for_itself_signs() {
    use p256::pkcs8::{EncodePrivateKey as _, LineEnding};

    let pem = p256::SecretKey::from_slice(&[7; 32]).unwrap().to_pkcs8_pem(LineEnding::LF).unwrap();
    let key = ClientKey::from_pem(&Secret::new(pem.as_str()), "ES256").unwrap();
    let mut world = world().metadata(json!({"token_endpoint_auth_methods_supported": ["private_key_jwt"]}));
    let registered = PreRegisteredClient::new("me", ClientCredential::Key(key));
    world.profile = world.profile.grant(Grant::ClientCredentials).registered(registered);
    world.run().unwrap();
    assert_eq!(world.token_form("client_assertion").unwrap().split('.').count(), 3);
}

#[test]
fn an_identity_is_exchanged_for_an_assertion_and_that_for_tokens() {
    let jag = json!({
        "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
        "access_token": "the-jag",
        "token_type": "N_A",
    });
    let mut world = world().metadata(json!({"token_endpoint_auth_methods_supported": ["client_secret_basic"]})).set(
        "idp.example.com/token",
        200,
        jag,
    );
    let provider = IdentityProvider::new("https://idp.example.com", "https://idp.example.com/token", "at-idp").unwrap();
    world.profile = world.profile.grant(Grant::EnterpriseManaged(provider)).registered(("me", "s3cr3t").into());
    world.run().unwrap();
    let exchanged = |name: &str| world.form(2, name).unwrap();
    assert_eq!(exchanged("grant_type"), "urn:ietf:params:oauth:grant-type:token-exchange");
    assert_eq!(exchanged("audience"), "https://auth.example.com");
    assert_eq!(exchanged("resource"), SERVER);
    assert_eq!(exchanged("subject_token"), "the-assertion");
    assert_eq!(exchanged("client_id"), "at-idp");
    assert_eq!(world.token_form("grant_type").as_deref(), Some("urn:ietf:params:oauth:grant-type:jwt-bearer"));
    assert_eq!(world.token_form("assertion").as_deref(), Some("the-jag"));
    assert_eq!(world.token_form("client_id"), None, "it is in the header");
}

#[test]
fn a_workload_shows_its_assertion_once() {
    let mut world = world();
    world.profile =
        world.profile.grant(Grant::WorkloadIdentity).registered(PreRegisteredClient::new("me", ClientCredential::None));
    world.run().unwrap();
    assert_eq!(world.token_form("assertion").as_deref(), Some("the-assertion"));
    assert_eq!(world.token_form("client_id").as_deref(), Some("me"));
    let mut world = world.set("auth.example.com/token", 400, json!({"error": "invalid_grant"}));
    world.seen.clear();
    assert!(matches!(world.run(), Err(Error::TokenRefused(_))));
    assert_eq!(world.paths().iter().filter(|path| path.contains("/token")).count(), 1);
}

#[test]
fn tokens_are_bound_to_a_key_when_the_server_takes_no_others() {
    let mut bound = tokens();
    bound["token_type"] = json!("DPoP");
    let mut world = world().set("auth.example.com/token", 200, bound);
    world.input.challenge =
        Some(WwwAuthenticateChallenge { scheme: AuthScheme::Dpop, ..WwwAuthenticateChallenge::default() });
    let outcome = world.run().unwrap();
    assert!(outcome.tokens.key.is_some() && outcome.tokens.scheme == AuthScheme::Dpop);
    assert!(world.asked("dpop_jkt").is_some());
    let mut world = world.set("auth.example.com/token", 200, tokens());
    assert!(world.run().is_err(), "a bearer token would be refused there");
}

#[test]
fn nothing_secret_is_in_a_debug_form() {
    let mut world = world();
    let outcome = world.run().unwrap();
    let mut flow = world.flow();
    let command = flow.begin();
    let visit = OAuthFlowCommand::Visit(world.visited[0].clone());
    let event = OAuthFlowCommandResult::Redirected(String::from("code=the-code"));
    let shown = format!(
        "{outcome:?} {flow:?} {command:?} {visit:?} {event:?} {:?}",
        OAuthFlowCommand::Authorized(Box::new(outcome.clone()))
    );
    for secret in ["\"access\"", "\"refresh\"", "the-code", "state="] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
}

#[test]
fn an_event_out_of_turn_ends_the_flow() {
    let mut flow = world().flow();
    let _ = flow.begin();
    assert!(matches!(
        flow.handle(OAuthFlowCommandResult::RegistrationLoaded(None), now()),
        OAuthFlowCommand::Failed(Error::Misuse(_))
    ));
    assert!(matches!(flow.begin(), OAuthFlowCommand::Failed(Error::Misuse(_))));
}
