//! The client id at an authorization server: a pre-registered one, the URL of the client ID metadata document, or one from
//! dynamic registration (RFC 7591), in that order.

use std::time::SystemTime;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Request, Response};
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::Url;

use super::credentials::{ClientAuthMethod, ClientCredential, OAuthClientIdentity};
use super::discovery::{AuthorizationServerMetadata, or_default};
use super::dpop::seconds;
use super::error::OAuthErrorResponse;
use super::profile::OAuthClientSettings;
use super::scope::is_step_up;
use super::secret::reveal_option;
use super::token::scopes_text;
use super::url_policy::{is_loopback, redact_url};
use super::{Error, Secret};
use crate::{HttpClientBody, Scopes};

pub(super) const WHAT: &str = "a client registration";

/// A dynamic registration of the client at one authorization server, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientRegistration {
    pub(super) client_id: String,
    #[serde(default, serialize_with = "reveal_option", skip_serializing_if = "Option::is_none")]
    pub(super) client_secret: Option<Secret>,
    /// The time when the client secret expires, in seconds since 1970; 0 means never.
    #[serde(default)]
    pub(super) client_secret_expires_at: u64,
    pub(super) method: ClientAuthMethod,
    pub(super) redirect_uri: String,
    /// The scopes in the client registration: some authorization servers grant the client no others.
    #[serde(default, with = "scopes_text")]
    pub(super) scopes: Option<Scopes>,
}

/// The redirect URI and the scopes that a client registration must have to be usable.
pub(super) struct RegistrationRequirements<'a> {
    pub(super) redirect_uri: &'a str,
    pub(super) scopes: Option<&'a Scopes>,
}

impl ClientRegistration {
    /// The redirect URI in the client registration.
    pub fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    pub(super) fn client(&self) -> OAuthClientIdentity {
        let credential = self.client_secret.clone().map_or(ClientCredential::None, ClientCredential::Secret);
        OAuthClientIdentity { id: self.client_id.clone(), credential, method: self.method }
    }

    pub(super) fn is_usable(&self, parameters: &RegistrationRequirements<'_>, now: SystemTime) -> bool {
        let expired = self.client_secret_expires_at != 0 && self.client_secret_expires_at <= seconds(now);
        self.redirect_uri == parameters.redirect_uri && !is_step_up(parameters.scopes, self.scopes.as_ref()) && !expired
    }
}

/// The client identity that needs no dynamic registration: the pre-registered client, or the client ID metadata document if the
/// authorization server supports such documents.
///
/// `bound` is the issuer that the MCP server's metadata named when it was last read.
pub(super) fn known_client(
    profile: &OAuthClientSettings,
    server: &AuthorizationServerMetadata,
    bound: Option<&str>,
) -> Result<Option<OAuthClientIdentity>, Error> {
    if let Some(registered) = &profile.registered {
        let issuer = registered.issuer.as_deref().or(bound);
        if let Some(issuer) = issuer.filter(|issuer| *issuer != server.issuer) {
            return Err(Error::IssuerChanged { registered: redact_url(issuer), found: redact_url(&server.issuer) });
        }
        return Ok(Some(client(&registered.id, &registered.credential, server)));
    }
    let document = profile.document.as_ref().filter(|_| server.reads_client_documents);
    Ok(document.map(|(url, credential)| client(url, credential, server)))
}

fn client(id: &str, credential: &ClientCredential, server: &AuthorizationServerMetadata) -> OAuthClientIdentity {
    let method = ClientAuthMethod::choose(credential, server.token_auth_methods.as_deref());
    OAuthClientIdentity { id: id.to_owned(), credential: credential.clone(), method }
}

/// The registration request.
pub(super) fn request(
    profile: &OAuthClientSettings,
    server: &AuthorizationServerMetadata,
    parameters: &RegistrationRequirements<'_>,
    bound_to_key: bool,
) -> Result<Request<HttpClientBody>, Error> {
    let Some(endpoint) = &server.registration_endpoint else {
        return Err(Error::NoClient { issuer: redact_url(&server.issuer) });
    };
    let mut body = json!({
        "client_name": profile.name,
        "redirect_uris": [parameters.redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": authentication(server.token_auth_methods.as_deref()).as_str(),
        "application_type": application_type(parameters.redirect_uri),
    });
    if let Some(members) = body.as_object_mut() {
        if let Some(uri) = &profile.uri {
            members.insert(String::from("client_uri"), json!(uri));
        }
        if let Some(scopes) = parameters.scopes {
            members.insert(String::from("scope"), json!(scopes.to_string()));
        }
        if bound_to_key {
            members.insert(String::from("dpop_bound_access_tokens"), json!(true));
        }
    }
    Request::post(endpoint.as_str())
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json")
        .body(HttpClientBody::from(body.to_string()))
        .map_err(|_| Error::UnsafeUrl(redact_url(endpoint.as_str())))
}

/// The authentication method that the client registers. A program on a user's machine cannot keep a secret, so it requests no
/// client secret unless the authorization server requires one.
fn authentication(supported: Option<&[String]>) -> ClientAuthMethod {
    let Some(supported) = supported else { return ClientAuthMethod::None };
    let order = [ClientAuthMethod::None, ClientAuthMethod::ClientSecretBasic, ClientAuthMethod::ClientSecretPost];
    order
        .into_iter()
        .find(|method| supported.iter().any(|name| name == method.as_str()))
        .unwrap_or(ClientAuthMethod::None)
}

/// The `application_type` of the client registration: `web` if the redirect URI is an `https` URL on another machine, otherwise
/// `native`.
fn application_type(redirect_uri: &str) -> &'static str {
    let is_web = Url::parse(redirect_uri).is_ok_and(|url| url.scheme() == "https" && !is_loopback(&url));
    if is_web { "web" } else { "native" }
}

/// Reads the response.
pub(super) fn read(
    response: &Response<HttpClientBody>,
    server: &AuthorizationServerMetadata,
    parameters: &RegistrationRequirements<'_>,
) -> Result<ClientRegistration, Error> {
    #[derive(Deserialize)]
    struct RegistrationResponse {
        client_id: String,
        client_secret: Option<Secret>,
        #[serde(default, deserialize_with = "or_default")]
        client_secret_expires_at: u64,
        token_endpoint_auth_method: Option<String>,
    }
    #[derive(Deserialize)]
    struct ErrorBody {
        error: String,
        error_description: Option<String>,
    }
    let body = response.body().as_bytes();
    if !response.status().is_success() {
        let Ok(refused) = serde_json::from_slice::<ErrorBody>(body) else {
            return Err(Error::Unavailable { what: WHAT, status: response.status().as_u16() });
        };
        let refusal = OAuthErrorResponse::new(&refused.error, refused.error_description.as_deref(), &[]);
        return Err(Error::RegistrationRefused(refusal));
    }
    let invalid = |problem| Error::Invalid { what: "client registration", problem };
    let answer: RegistrationResponse = serde_json::from_slice(body).map_err(|_| invalid("is malformed"))?;
    if answer.client_id.is_empty() {
        return Err(invalid("has no `client_id`"));
    }
    let credential = answer.client_secret.clone().map_or(ClientCredential::None, ClientCredential::Secret);
    let method = match answer.token_endpoint_auth_method.as_deref() {
        Some(name) => ClientAuthMethod::parse(name).ok_or(invalid("has an unknown `token_endpoint_auth_method`"))?,
        None => ClientAuthMethod::choose(&credential, server.token_auth_methods.as_deref()),
    };
    let needs_secret = matches!(method, ClientAuthMethod::ClientSecretBasic | ClientAuthMethod::ClientSecretPost);
    if method == ClientAuthMethod::PrivateKeyJwt || (needs_secret && answer.client_secret.is_none()) {
        return Err(invalid("requires a client credential that the registration response does not contain"));
    }
    Ok(ClientRegistration {
        client_id: answer.client_id,
        client_secret: answer.client_secret,
        client_secret_expires_at: answer.client_secret_expires_at,
        method,
        redirect_uri: parameters.redirect_uri.to_owned(),
        scopes: parameters.scopes.cloned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::profile::PreRegisteredClient;

    const CALLBACK: &str = "http://127.0.0.1:1/callback";

    fn server(methods: &[&str]) -> AuthorizationServerMetadata {
        let base = Url::parse("https://auth.example.com/").unwrap();
        let mut server =
            AuthorizationServerMetadata::with_default_endpoints(&base, String::from("https://auth.example.com"));
        server.token_auth_methods = Some(methods.iter().map(ToString::to_string).collect());
        server
    }

    fn wanted<'a>(redirect_uri: &'a str, scopes: Option<&'a Scopes>) -> RegistrationRequirements<'a> {
        RegistrationRequirements { redirect_uri, scopes }
    }

    fn answered(status: u16, body: &str) -> Result<ClientRegistration, Error> {
        let response = Response::builder().status(status).body(HttpClientBody::from(body.to_owned())).unwrap();
        read(&response, &server(&["client_secret_post"]), &wanted(CALLBACK, None))
    }

    #[test]
    fn a_given_name_comes_before_a_document_and_a_document_before_registration() {
        let mut server = server(&["none"]);
        let profile = OAuthClientSettings::new("x").document("https://example.com/c").unwrap();
        assert!(known_client(&profile, &server, None).unwrap().is_none());
        server.reads_client_documents = true;
        assert_eq!(known_client(&profile, &server, None).unwrap().unwrap().id, "https://example.com/c");
        let profile = profile.registered(PreRegisteredClient::new("me", ClientCredential::None));
        assert_eq!(known_client(&profile, &server, None).unwrap().unwrap().id, "me");
    }

    #[test]
    fn a_given_name_is_not_shown_to_another_issuer() {
        let registered = PreRegisteredClient::new("me", ClientCredential::None);
        let server = server(&["none"]);
        let profile = OAuthClientSettings::new("x").registered(registered.clone());
        assert!(matches!(
            known_client(&profile, &server, Some("https://old.example")),
            Err(Error::IssuerChanged { .. })
        ));
        assert!(known_client(&profile, &server, Some("https://auth.example.com")).is_ok());
        let profile = OAuthClientSettings::new("x").registered(registered.with_issuer("https://auth.example.com/"));
        assert!(matches!(known_client(&profile, &server, None), Err(Error::IssuerChanged { .. })));
    }

    #[test]
    fn the_request_says_what_kind_of_client_it_is() {
        let body = |redirect: &str, methods: &[&str]| -> serde_json::Value {
            let request =
                request(&OAuthClientSettings::new("Test"), &server(methods), &wanted(redirect, None), false).unwrap();
            serde_json::from_slice(request.body().as_bytes()).unwrap()
        };
        let native = body(CALLBACK, &["client_secret_basic", "none"]);
        assert_eq!(
            (native["application_type"].as_str(), native["client_name"].as_str()),
            (Some("native"), Some("Test"))
        );
        assert_eq!(native["token_endpoint_auth_method"], "none");
        assert_eq!(native["grant_types"], json!(["authorization_code", "refresh_token"]));
        let web = body("https://app.example.com/callback", &["client_secret_post"]);
        assert_eq!(web["application_type"], "web");
        assert_eq!(web["token_endpoint_auth_method"], "client_secret_post");
    }

    #[test]
    fn the_answer_says_how_to_authenticate() {
        let found = answered(
            201,
            r#"{"client_id":"c","client_secret":"s","token_endpoint_auth_method":"client_secret_basic"}"#,
        );
        assert_eq!(found.unwrap().method, ClientAuthMethod::ClientSecretBasic);
        let found = answered(201, r#"{"client_id":"c","client_secret":"s"}"#);
        assert_eq!(found.unwrap().method, ClientAuthMethod::ClientSecretPost, "as the metadata says");
        assert_eq!(answered(201, r#"{"client_id":"c"}"#).unwrap().method, ClientAuthMethod::None);
        let found = answered(201, r#"{"client_id":"c","client_secret":null,"client_secret_expires_at":null}"#);
        assert_eq!(found.unwrap().client_secret_expires_at, 0);
        assert!(answered(201, r#"{"client_id":"c","token_endpoint_auth_method":"client_secret_basic"}"#).is_err());
        assert!(answered(201, r#"{"client_id":""}"#).is_err());
    }

    #[test]
    fn a_refusal_is_explained() {
        let refused =
            answered(400, r#"{"error":"invalid_redirect_uri","error_description":"no loopback"}"#).unwrap_err();
        assert_eq!(refused.to_string(), "client registration failed: invalid_redirect_uri (no loopback)");
        assert!(matches!(answered(503, "<html>"), Err(Error::Unavailable { status: 503, .. })));
    }

    #[test]
    fn a_registration_is_used_again_for_the_same_redirect_until_its_secret_ends() {
        let body = r#"{"client_id":"c","client_secret":"s","client_secret_expires_at":100}"#;
        let found = answered(201, body).unwrap();
        let at = |second| SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(second);
        assert!(found.is_usable(&wanted(CALLBACK, None), at(99)));
        assert!(!found.is_usable(&wanted(CALLBACK, None), at(100)));
        assert!(!found.is_usable(&wanted("http://127.0.0.1:2/callback", None), at(99)));
        let more: Scopes = "a b".parse().unwrap();
        assert!(!found.is_usable(&wanted(CALLBACK, Some(&more)), at(99)), "it never said that it would ask for these");
        let found = ClientRegistration { scopes: Some(more.clone()), ..found };
        assert!(found.is_usable(&wanted(CALLBACK, Some(&more)), at(99)));
        assert!(!format!("{found:?}").contains("\"s\""));
    }
}
