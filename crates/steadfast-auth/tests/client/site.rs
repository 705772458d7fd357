//! A server and its authorization server on one port, which validate their requests.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use steadfast_auth::client::{
    Authorizer, AuthorizerBuilder, Error, LoopbackUserAgent, OAuthClientSettings, OAuthResponseAction, Url,
};
use steadfast_auth::{HttpClient as _, HttpClientBody};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::wire::MinimalHttpClient;

type Form = HashMap<String, String>;
type ResponseFuture = Response<Full<Bytes>>;

/// How the servers behave.
#[derive(Clone)]
pub(crate) struct SiteOptions {
    /// The location of the resource metadata, and whether the challenge contains it.
    pub(crate) resource_path: &'static str,
    pub(crate) challenge_names_it: bool,
    pub(crate) resource_suffix: &'static str,
    pub(crate) server_path: &'static str,
    pub(crate) more: Value,
    pub(crate) client_secret: Option<&'static str>,
    pub(crate) client_key: Option<String>,
    pub(crate) lifetimes: Vec<u64>,
    pub(crate) iss: Option<&'static str>,
    pub(crate) dpop: bool,
    pub(crate) takes_nothing: bool,
    pub(crate) denies: bool,
    /// Revocation is supported.
    pub(crate) revokes: bool,
    /// No refresh tokens are issued.
    pub(crate) gives_no_refresh_token: bool,
}

impl Default for SiteOptions {
    fn default() -> Self {
        Self {
            resource_path: "/.well-known/oauth-protected-resource/mcp",
            challenge_names_it: true,
            resource_suffix: "/mcp",
            server_path: "/.well-known/oauth-authorization-server",
            more: json!({}),
            client_secret: None,
            client_key: None,
            lifetimes: Vec::new(),
            iss: None,
            dpop: false,
            takes_nothing: false,
            denies: false,
            revokes: false,
            gives_no_refresh_token: false,
        }
    }
}

#[derive(Default)]
pub(crate) struct SiteState {
    /// The path of each request.
    pub(crate) paths: Vec<String>,
    pub(crate) authorizations: Vec<Form>,
    pub(crate) grants: Vec<Form>,
    pub(crate) revocations: Vec<Form>,
    codes: HashMap<String, Form>,
    /// Access tokens, and the scopes and the key of each.
    tokens: HashMap<String, (String, Option<String>)>,
    refresh_tokens: HashSet<String>,
    proofs: HashSet<String>,
    issued: usize,
}

#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) origin: String,
    options: Arc<SiteOptions>,
    seen: Arc<Mutex<SiteState>>,
    /// How many refreshes may be answered.
    pub(crate) refreshes: Arc<Semaphore>,
    /// How many codes may be redeemed.
    pub(crate) redemptions: Arc<Semaphore>,
    /// Whether the user denies access.
    denies: Arc<AtomicBool>,
    /// The error for refreshes, if they fail.
    refusal: Arc<Mutex<Option<(u16, &'static str)>>>,
}

impl Site {
    pub(crate) async fn start(options: SiteOptions) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let refreshes = Arc::new(Semaphore::new(1000));
        let redemptions = Arc::new(Semaphore::new(1000));
        let denies = Arc::new(AtomicBool::new(options.denies));
        let (options, refusal) = (Arc::new(options), Arc::default());
        let site = Self { origin, options, seen: Arc::default(), refreshes, redemptions, denies, refusal };
        let serving = site.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let site = serving.clone();
                let service = service_fn(move |request: Request<hyper::body::Incoming>| {
                    let site = site.clone();
                    async move {
                        let (parts, body) = request.into_parts();
                        let body = body.collect().await.unwrap().to_bytes();
                        Ok::<_, Infallible>(site.answer(&parts, &body).await)
                    }
                });
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        site
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/mcp", self.origin)
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, SiteState> {
        self.seen.lock().unwrap()
    }

    pub(crate) fn count(&self, path: &str) -> usize {
        self.seen().paths.iter().filter(|seen| seen.as_str() == path).count()
    }

    pub(crate) fn refreshed(&self) -> usize {
        self.seen().grants.iter().filter(|form| form["grant_type"] == "refresh_token").count()
    }

    /// Invalidates all refresh tokens, as if they had been used.
    pub(crate) fn forget_refresh_tokens(&self) {
        self.seen().refresh_tokens.clear();
    }

    /// Invalidates all access tokens, as if they had been revoked.
    pub(crate) fn forget_access_tokens(&self) {
        self.seen().tokens.clear();
    }

    /// Sets the error for refreshes.
    pub(crate) fn refuse_refreshes(&self, refusal: Option<(u16, &'static str)>) {
        *self.refusal.lock().unwrap() = refusal;
    }

    /// Sets whether the user denies access.
    pub(crate) fn deny(&self, denies: bool) {
        self.denies.store(denies, Ordering::Relaxed);
    }

    /// An authorizer whose user agrees at once, with a browser that follows the redirect.
    pub(crate) fn authorizer(&self, profile: OAuthClientSettings) -> AuthorizerBuilder {
        let runtime = tokio::runtime::Handle::current();
        let browser = LoopbackUserAgent::new().opener(move |url| {
            runtime.spawn(browse(url.clone()));
            Ok(())
        });
        Authorizer::builder(&self.url(), profile, MinimalHttpClient).unwrap().user_agent(browser)
    }

    async fn answer(&self, parts: &http::request::Parts, body: &[u8]) -> ResponseFuture {
        let path = parts.uri.path();
        self.seen().paths.push(path.to_owned());
        let query = parts.uri.query().unwrap_or_default();
        match path {
            "/mcp" => self.resource(&parts.headers, query),
            "/register" => {
                let asked: Value = serde_json::from_slice(body).unwrap();
                assert_eq!(asked["application_type"], "native");
                let secret = self.options.client_secret;
                let count = self.count("/register");
                respond(201, &json!({"client_id": format!("client-{count}"), "client_secret": secret}))
            }
            "/authorize" => self.authorize(form(query.as_bytes())),
            "/revoke" => {
                let form = form(body);
                self.check_client(&parts.headers, &form, Some(&String::from("client-1")));
                self.seen().revocations.push(form);
                respond(200, &Value::Null)
            }
            "/token" => self.token(&parts.headers, form(body)).await,
            path if path == self.options.resource_path => {
                let resource = format!("{}{}", self.origin, self.options.resource_suffix);
                respond(200, &json!({"resource": resource, "authorization_servers": [self.origin]}))
            }
            path if path == self.options.server_path => respond(200, &self.metadata()),
            _ => respond(404, &Value::Null),
        }
    }

    fn metadata(&self) -> Value {
        let endpoint = |path: &str| format!("{}{path}", self.origin);
        let mut metadata = json!({
            "issuer": self.origin,
            "authorization_endpoint": endpoint("/authorize"),
            "token_endpoint": endpoint("/token"),
            "registration_endpoint": endpoint("/register"),
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": true,
        });
        if self.options.revokes {
            metadata["revocation_endpoint"] = endpoint("/revoke").into();
        }
        for (name, value) in self.options.more.as_object().unwrap() {
            metadata[name] = value.clone();
        }
        metadata
    }

    /// The server: requires a token with the scope `basic`, and with the one in the query.
    fn resource(&self, headers: &HeaderMap, query: &str) -> ResponseFuture {
        let scheme = if self.options.dpop { "DPoP" } else { "Bearer" };
        let named = format!(", resource_metadata=\"{}{}\"", self.origin, self.options.resource_path);
        let named = if self.options.challenge_names_it { named.as_str() } else { "" };
        let challenge = |status, more: &str| {
            let mut response = respond(status, &Value::Null);
            let challenge = format!("{scheme} {more}{named}");
            response.headers_mut().insert("www-authenticate", challenge.parse().unwrap());
            response.headers_mut().insert("dpop-nonce", "resource-nonce".parse().unwrap());
            response
        };
        let token = headers.get("authorization").map(|value| value.to_str().unwrap());
        let token = token.and_then(|value| value.strip_prefix(scheme)).map(str::trim).unwrap_or_default();
        let Some((scopes, key)) = self.seen().tokens.get(token).cloned().filter(|_| !self.options.takes_nothing) else {
            return challenge(401, "scope=\"basic\"");
        };
        if self.options.dpop {
            let expected = format!("{}/mcp", self.origin);
            let (proven, claims) = self.proof(headers, &expected);
            assert_eq!(Some(proven), key, "the token is bound to another key");
            assert_eq!(claims["ath"], URL_SAFE_NO_PAD.encode(Sha256::digest(token)));
            if claims["nonce"] != "resource-nonce" {
                return challenge(401, "error=\"use_dpop_nonce\"");
            }
        }
        if !query.is_empty() && !scopes.split(' ').any(|scope| scope == query) {
            return challenge(403, &format!("error=\"insufficient_scope\", scope=\"{query}\""));
        }
        respond(200, &json!({"scopes": scopes}))
    }

    fn authorize(&self, asked: Form) -> ResponseFuture {
        assert_eq!((asked["response_type"].as_str(), asked["code_challenge_method"].as_str()), ("code", "S256"));
        assert_eq!(asked["resource"], format!("{}{}", self.origin, self.options.resource_suffix));
        let code = format!("code-{}", self.seen().authorizations.len());
        let iss = self.options.iss.unwrap_or(&self.origin);
        let outcome =
            if self.denies.load(Ordering::Relaxed) { ("error", "access_denied") } else { ("code", code.as_str()) };
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs([outcome, ("state", asked["state"].as_str()), ("iss", iss)])
            .finish();
        let location = format!("{}?{query}", asked["redirect_uri"]);
        self.seen().authorizations.push(asked.clone());
        self.seen().codes.insert(code, asked);
        let mut response = respond(302, &Value::Null);
        response.headers_mut().insert("location", location.parse().unwrap());
        response
    }

    async fn token(&self, headers: &HeaderMap, form: Form) -> ResponseFuture {
        let key = self.options.dpop.then(|| self.proof(headers, &format!("{}/token", self.origin)));
        if let Some((_, claims)) = &key
            && claims["nonce"] != "token-nonce"
        {
            let mut response = respond(400, &json!({"error": "use_dpop_nonce"}));
            response.headers_mut().insert("dpop-nonce", "token-nonce".parse().unwrap());
            return response;
        }
        assert_eq!(form["resource"], format!("{}{}", self.origin, self.options.resource_suffix));
        self.seen().grants.push(form.clone());
        let scopes = match form["grant_type"].as_str() {
            "authorization_code" => {
                self.redemptions.acquire().await.unwrap().forget();
                let asked = self.seen().codes.remove(&form["code"]).expect("a code is good once");
                let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(&form["code_verifier"]));
                assert_eq!(asked["code_challenge"], digest, "PKCE");
                assert_eq!(asked["redirect_uri"], form["redirect_uri"]);
                self.check_client(headers, &form, Some(&asked["client_id"]));
                asked.get("scope").cloned().unwrap_or_default()
            }
            "refresh_token" => {
                let token = form["refresh_token"].clone();
                self.refreshes.acquire().await.unwrap().forget();
                if let Some((status, error)) = *self.refusal.lock().unwrap() {
                    return respond(status, &json!({"error": error}));
                }
                if !self.seen().refresh_tokens.remove(&token) {
                    return respond(400, &json!({"error": "invalid_grant", "error_description": token}));
                }
                String::from("basic")
            }
            "client_credentials" => {
                self.check_client(headers, &form, None);
                form.get("scope").cloned().unwrap_or_default()
            }
            other => panic!("{other}"),
        };
        self.issue(scopes, key.map(|(key, _)| key))
    }

    fn check_client(&self, headers: &HeaderMap, form: &Form, id: Option<&String>) {
        if let Some(key) = &self.options.client_key {
            let mut validation = Validation::new(Algorithm::ES256);
            validation.set_audience(&[&self.origin]);
            let key = DecodingKey::from_ec_pem(key.as_bytes()).unwrap();
            let claims = jsonwebtoken::decode::<Value>(&form["client_assertion"], &key, &validation).unwrap().claims;
            assert_eq!((claims["iss"].as_str(), claims["sub"].as_str()), (Some("me"), Some("me")));
        } else if let Some(secret) = self.options.client_secret {
            let header = headers["authorization"].to_str().unwrap().strip_prefix("Basic ").unwrap();
            let shown = String::from_utf8(STANDARD.decode(header).unwrap()).unwrap();
            assert_eq!(shown.split_once(':').unwrap().1, secret);
        } else {
            assert_eq!(form.get("client_id"), id);
        }
    }

    fn issue(&self, scopes: String, key: Option<String>) -> ResponseFuture {
        let mut seen = self.seen();
        let number = seen.issued;
        seen.issued += 1;
        let lifetime = self.options.lifetimes.get(number).copied().unwrap_or(3600);
        let (access, refresh) = (format!("access-{number}"), format!("refresh-{number}"));
        let token_type = if key.is_some() { "DPoP" } else { "Bearer" };
        seen.tokens.insert(access.clone(), (scopes, key));
        seen.refresh_tokens.insert(refresh.clone());
        let refresh = (!self.options.gives_no_refresh_token).then_some(refresh);
        respond(
            200,
            &json!({"access_token": access, "token_type": token_type, "expires_in": lifetime, "refresh_token": refresh}),
        )
    }

    /// Verifies a proof, and returns its key and its claims.
    fn proof(&self, headers: &HeaderMap, url: &str) -> (String, Value) {
        assert_eq!(headers.get_all("dpop").iter().count(), 1);
        let proof = headers["dpop"].to_str().unwrap();
        let header = jsonwebtoken::decode_header(proof).unwrap();
        assert_eq!(header.typ.as_deref(), Some("dpop+jwt"));
        let jwk = header.jwk.unwrap();
        let mut validation = Validation::new(Algorithm::ES256);
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        let key = DecodingKey::from_jwk(&jwk).unwrap();
        let claims = jsonwebtoken::decode::<Value>(proof, &key, &validation).unwrap().claims;
        assert_eq!((claims["htm"].as_str(), claims["htu"].as_str()), (Some("POST"), Some(url)));
        assert!(self.seen().proofs.insert(claims["jti"].to_string()), "a proof is good once");
        (serde_json::to_string(&jwk).unwrap(), claims)
    }
}

/// A browser: sends a request, and follows the redirect.
async fn browse(url: Url) {
    let get = |url: &str| MinimalHttpClient.send(Request::get(url).body(HttpClientBody::default()).unwrap(), 10_000);
    let sent = get(url.as_str()).await.unwrap();
    let location = sent.headers()["location"].to_str().unwrap().to_owned();
    let shown = get(&location).await.unwrap();
    assert_eq!(shown.status(), 200);
}

/// Sends one request to the server, as a transport would.
pub(crate) async fn call(authorizer: &Authorizer, url: &str) -> Result<(u16, String), Error> {
    let mut attempt = authorizer.attempt(http::Method::POST, url)?;
    loop {
        let mut request = Request::post(url).body(HttpClientBody::default()).unwrap();
        attempt.sign(request.headers_mut()).await?;
        assert!(!format!("{request:?}").contains("access-"), "a token is shown");
        let response = MinimalHttpClient.send(request, 10_000).await.unwrap();
        if attempt.answered(response.status(), response.headers()).await? == OAuthResponseAction::Deliver {
            let body = String::from_utf8_lossy(response.body().as_bytes()).into_owned();
            return Ok((response.status().as_u16(), body));
        }
    }
}

fn form(body: &[u8]) -> Form {
    let mut form = Form::new();
    for (name, value) in form_urlencoded::parse(body) {
        assert!(form.insert(name.into_owned(), value.into_owned()).is_none(), "nothing is said twice");
    }
    form
}

fn respond(status: u16, body: &Value) -> ResponseFuture {
    Response::builder().status(status).body(Full::from(body.to_string())).unwrap()
}
