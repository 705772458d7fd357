//! Authorization of the client: its metadata, its credentials, and a user who agrees without a browser.

use http::Request;
use http::header::LOCATION;
use serde::Deserialize;
use steadfast_auth::client::{
    Authorizer, BoxFuture, ClientCredential, ClientKey, Error, Grant, IdentityProvider, OAuthClientSettings,
    PreRegisteredClient, Secret, Url, UserAgent, UserLogin,
};
use steadfast_auth::{HttpClient as _, HttpClientBody, OAuthReqwestClient};

/// The URL of the application's client metadata. The suite knows the address, and it is never fetched.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// The redirect URI. There is no listener: the redirect is read from the response.
const REDIRECT: &str = "http://localhost:3000/callback";

/// The credentials that the suite gives to the client before a scenario.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SuiteCredentials {
    client_id: Option<String>,
    client_secret: Option<String>,
    private_key_pem: Option<String>,
    signing_algorithm: Option<String>,
    idp_client_id: Option<String>,
    idp_id_token: Option<String>,
    idp_issuer: Option<String>,
    idp_token_endpoint: Option<String>,
    valid_jwt: Option<String>,
}

/// Who gets tokens for the server. `alone`: there is no user. `old`: servers of before there was metadata are understood.
pub(crate) fn authorizer(
    url: &str,
    credentials: &SuiteCredentials,
    alone: bool,
    old: bool,
) -> Result<Authorizer, Box<dyn std::error::Error>> {
    let mut profile =
        OAuthClientSettings::new("Steadfast conformance client").document(DOCUMENT)?.legacy_discovery(old);
    if let Some(id) = &credentials.client_id {
        profile = profile.registered(PreRegisteredClient::new(id, credentials.credential()?));
    }
    let mut assertion = None;
    if let (Some(issuer), Some(endpoint), Some(client)) =
        (&credentials.idp_issuer, &credentials.idp_token_endpoint, &credentials.idp_client_id)
    {
        assertion.clone_from(&credentials.idp_id_token);
        profile = profile.grant(Grant::EnterpriseManaged(IdentityProvider::new(issuer, endpoint, client)?));
    } else if let Some(jwt) = &credentials.valid_jwt {
        assertion = Some(jwt.clone());
        profile = profile.grant(Grant::WorkloadIdentity);
    } else if alone {
        profile = profile.grant(Grant::ClientCredentials);
    }
    let builder = Authorizer::builder(url, profile, OAuthReqwestClient::new()?)?
        .user_agent(AutoAccept(OAuthReqwestClient::new()?));
    Ok(match assertion {
        Some(assertion) => builder.assertions(Secret::new(assertion)).build(),
        None => builder.build(),
    })
}

impl SuiteCredentials {
    fn credential(&self) -> Result<ClientCredential, Error> {
        if let (Some(pem), Some(algorithm)) = (&self.private_key_pem, &self.signing_algorithm) {
            return Ok(ClientCredential::Key(ClientKey::from_pem(&Secret::new(pem), algorithm)?));
        }
        Ok(self
            .client_secret
            .as_ref()
            .map_or(ClientCredential::None, |secret| ClientCredential::Secret(Secret::new(secret))))
    }
}

/// A user who accepts: it fetches the URL and returns the redirect of the authorization server.
#[derive(Clone)]
struct AutoAccept(OAuthReqwestClient);

/// What an authorization server may show to the user.
const PAGE: usize = 64 * 1024;

impl UserAgent for AutoAccept {
    fn prepare<'a>(&'a self, _: Option<&'a str>) -> BoxFuture<'a, Result<Box<dyn UserLogin>, Error>> {
        let visit: Box<dyn UserLogin> = Box::new(self.clone());
        Box::pin(std::future::ready(Ok(visit)))
    }
}

impl UserLogin for AutoAccept {
    fn redirect_uri(&self) -> &str {
        REDIRECT
    }

    fn visit(self: Box<Self>, url: Url) -> BoxFuture<'static, Result<String, Error>> {
        Box::pin(async move {
            let no_redirect = || Error::UserUnavailable("the authorization server sent no redirect".to_owned());
            let request = Request::get(url.as_str()).body(HttpClientBody::from("")).map_err(|_| no_redirect())?;
            let response = self.0.send(request, PAGE).await.map_err(|_| no_redirect())?;
            let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
            let back = location.and_then(|location| Url::parse(location).ok());
            back.and_then(|back| back.query().map(str::to_owned)).ok_or_else(no_redirect)
        })
    }
}
