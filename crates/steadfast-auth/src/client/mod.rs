//! How a client gets tokens for a server, keeps them, and shows them: an OAuth 2.1 client.
//!
//! [`Profile`] says what the application is. An [`Authorizer`] hands out tokens for one server to everybody who sends requests
//! there: it finds the authorization server, registers the client if need be, asks the user, keeps tokens in a [`TokenStore`],
//! refreshes them once however many wait for it, and takes up what the server asks for when it refuses.
//!
//! ```no_run
//! # #[cfg(feature = "reqwest")]
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use steadfast_auth::ReqwestClient;
//! use steadfast_auth::client::{Authorizer, FileStore, Loopback, Profile, Verdict};
//!
//! let server = "https://mcp.example.com/mcp";
//! let profile = Profile::new("Example editor").document("https://editor.example.com/oauth/client.json")?;
//! let authorizer = Authorizer::builder(server, profile, ReqwestClient::new()?)?
//!     .store(FileStore::open("/home/me/.config/editor/tokens")?)
//!     .user_agent(Loopback::new())
//!     .build();
//!
//! // For each request, in whatever way it is sent:
//! let mut attempt = authorizer.attempt(http::Method::POST, server)?;
//! loop {
//!     let mut headers = http::HeaderMap::new();
//!     attempt.sign(&mut headers).await?;
//!     let response = send(headers).await;
//!     if attempt.answered(response.status(), response.headers()).await? == Verdict::Deliver {
//!         break;
//!     }
//! }
//! # async fn send(_: http::HeaderMap) -> http::Response<()> { http::Response::default() }
//! # Ok(())
//! # }
//! ```
//!
//! Under it is [`Flow`], the steps of OAuth as a machine that does no input or output, for those who want another shell.
//!
//! What is never done: a token is not sent to another origin than its server's; a URL that a server names is not asked unless
//! it is encrypted (or on this machine), and not if it points inside from outside (where names lead is seen to by
//! `ReqwestClient`, and has to be by any other [`HttpClient`](crate::HttpClient)); redirects to other origins are not followed;
//! nothing secret is in an error, a log line or a debug form.

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
mod reach;
mod registration;
mod scope;
mod secret;
mod store;
mod token;

pub use challenge::{Challenge, Scheme};
pub use credentials::{ClientKey, Credential};
pub use dpop::Dpop;
pub use driver::{
    AssertionSource, Attempt, Authorizer, AuthorizerBuilder, Loopback, UserAgent, Verdict, Visit, open_browser,
};
pub use error::{Error, Refusal};
pub use flow::{Command, Event, Flow, Forgotten, Outcome, Situation};
pub use profile::{Grant, IdentityProvider, PreRegistered, Profile};
pub use random::{NoRandomness, Randomness, SystemRandomness};
pub use registration::Registration;
pub use secret::Secret;
pub use store::{FileStore, Key, Later, Lock, MemoryStore, StoreError, TokenStore};
pub use token::Tokens;
pub use url::Url;
