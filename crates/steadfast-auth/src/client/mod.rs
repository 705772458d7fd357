//! An OAuth 2.1 client: obtains access tokens for an MCP server, stores them and adds them to requests.
//!
//! [`OAuthClientSettings`] describes the application as an OAuth client. An [`Authorizer`] provides tokens for one
//! MCP server to all requests: it discovers the authorization server, registers the client if necessary, asks the
//! user, stores tokens in a [`TokenStore`], refreshes them once for all waiting requests, and requests new tokens
//! when the server rejects one or requires more scopes.
//!
//! ```no_run
//! # #[cfg(feature = "reqwest")]
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use steadfast_auth::OAuthReqwestClient;
//! use steadfast_auth::client::{Authorizer, FileTokenStore, LoopbackUserAgent, OAuthClientSettings, OAuthResponseAction};
//!
//! let server = "https://mcp.example.com/mcp";
//! let profile = OAuthClientSettings::new("Example editor").document("https://editor.example.com/oauth/client.json")?;
//! let authorizer = Authorizer::builder(server, profile, OAuthReqwestClient::new()?)?
//!     .store(FileTokenStore::open("/home/me/.config/editor/tokens")?)
//!     .user_agent(LoopbackUserAgent::new())
//!     .build();
//!
//! // For each request, with any HTTP client:
//! let mut attempt = authorizer.attempt(http::Method::POST, server)?;
//! loop {
//!     let mut headers = http::HeaderMap::new();
//!     attempt.sign(&mut headers).await?;
//!     let response = send(headers).await;
//!     if attempt.answered(response.status(), response.headers()).await? == OAuthResponseAction::Deliver {
//!         break;
//!     }
//! }
//! # async fn send(_: http::HeaderMap) -> http::Response<()> { http::Response::default() }
//! # Ok(())
//! # }
//! ```
//!
//! An [`Authorizer`] drives an [`OAuthFlow`], a state machine of the OAuth steps without I/O, which can also be used with
//! another runtime.
//!
//! Guarantees: a token is sent only to the origin of its server; a URL from a server's metadata is used only if it is encrypted
//! (or on this machine) and does not refer from the internet to a private network (`OAuthReqwestClient` checks the resolved
//! addresses, and any other [`HttpClient`](crate::HttpClient) must do so too); redirects to other origins are not followed; no
//! error, log line or `Debug` output contains a secret.

mod authorize;
mod challenge;
mod credentials;
mod discovery;
mod dpop;
mod driver;
mod error;
mod flow;
mod pkce;
mod profile;
mod random;
mod registration;
mod scope;
mod secret;
mod store;
mod token;
mod url_policy;

pub use challenge::{AuthScheme, WwwAuthenticateChallenge};
pub use credentials::{ClientCredential, ClientKey};
pub use dpop::ClientDpopPolicy;
pub use driver::{
    AssertionSource, Authorizer, AuthorizerBuilder, LoopbackUserAgent, OAuthRequestAttempt, OAuthResponseAction,
    UserAgent, UserLogin, open_browser,
};
pub use error::{Error, OAuthErrorResponse};
pub use flow::{
    CredentialInvalidation, OAuthFlow, OAuthFlowCommand, OAuthFlowCommandResult, OAuthFlowStart, OAuthGrant,
};
pub use profile::{Grant, IdentityProvider, OAuthClientSettings, PreRegisteredClient};
pub use random::{RandomSource, RandomUnavailable, SystemRandomness};
pub use registration::ClientRegistration;
pub use secret::Secret;
pub use store::{
    BoxFuture, FileTokenStore, MemoryTokenStore, TokenStore, TokenStoreError, TokenStoreKey, TokenStoreLockGuard,
};
pub use token::Tokens;
pub use url::Url;
