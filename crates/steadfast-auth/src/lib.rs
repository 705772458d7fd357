//! Authorization for the Model Context Protocol: servers that check tokens, and clients that get them.
//!
//! A server over HTTP that is not for everybody is an OAuth 2.1 resource server: it takes a bearer token with every request,
//! makes sure that the token was issued for it, and tells clients without one where to get it. The module
//! [`resource_server`] has what that takes, as tower layers that go around any HTTP service.
//!
//! ```
//! use http::{Request, Response};
//! use http_body_util::Full;
//! use steadfast_auth::resource_server::{Principal, Rejection, RequireBearer, ResourceMetadata, Token, verify_with};
//! use tower::{Layer, ServiceExt, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Where tokens for this server come from.
//! let metadata = ResourceMetadata::new("https://mcp.example.com/mcp", ["https://auth.example.com"])?
//!     .scopes("files:read".parse()?);
//!
//! // Who a token is for: here a closure; JwtVerifier and Introspection are for real ones.
//! let verifier = verify_with(async |token: Token| match token.expose() {
//!     "good" => Ok(Principal::new("alice").with_scopes("files:read".parse().unwrap_or_default())),
//!     _ => Err(Rejection::Invalid("unknown token")),
//! });
//!
//! // The server itself: it finds out who is asking, and never sees a token.
//! let server = service_fn(async |request: Request<String>| {
//!     let principal = request.extensions().get::<Principal>();
//!     let name = principal.and_then(Principal::subject).unwrap_or("nobody").to_owned();
//!     Ok::<_, std::convert::Infallible>(Response::new(Full::<bytes::Bytes>::from(name)))
//! });
//! let server = RequireBearer::new(verifier, &metadata).scopes("files:read".parse()?).layer(server);
//! let server = metadata.layer().layer(server);
//!
//! let request = Request::post("/mcp").header("Authorization", "Bearer good").body(String::new())?;
//! assert_eq!(server.clone().oneshot(request).await?.status(), 200);
//!
//! let request = Request::post("/mcp").body(String::new())?;
//! let refused = server.clone().oneshot(request).await?;
//! assert_eq!(refused.status(), 401);
//! assert_eq!(
//!     refused.headers()["WWW-Authenticate"],
//!     "Bearer scope=\"files:read\", \
//!      resource_metadata=\"https://mcp.example.com/.well-known/oauth-protected-resource/mcp\""
//! );
//!
//! let request = Request::get("/.well-known/oauth-protected-resource/mcp").body(String::new())?;
//! assert_eq!(server.oneshot(request).await?.status(), 200);
//! # Ok(())
//! # }
//! ```
//!
//! A client of such a server is an OAuth 2.1 client: it finds out who issues tokens for the server, gets them, keeps them and
//! shows them. That is the module `client`.
//!
//! # In front of a server of `steadfast`
//!
//! Its HTTP service finds the principal by itself. Handlers have it as `ctx.principal()`, with the scopes and claims of the
//! token that came with their request; sessions, tasks and what is remembered between rounds belong to it.
//!
//! ```
//! use steadfast::transport::http::{HttpOptions, HttpService};
//! use steadfast::{Context, Server, Tool};
//! use steadfast_auth::resource_server::{RequireBearer, ResourceMetadata};
//! # use steadfast_auth::resource_server::{Principal, Rejection, Token, verify_with};
//! use tower::Layer;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let whoami = Tool::new("whoami").handler(|ctx: Context| async move {
//!     ctx.principal().map_or("nobody", |principal| principal.name()).to_owned()
//! });
//! let server = Server::builder("files", "1.0.0").tools([whoami]).build();
//! let metadata = ResourceMetadata::new("https://mcp.example.com/mcp", ["https://auth.example.com"])?;
//! # let verifier = verify_with(async |_: Token| Err::<Principal, _>(Rejection::Invalid("unknown token")));
//!
//! let service = HttpService::new(server, HttpOptions::new());
//! let service = RequireBearer::new(verifier, &metadata).layer(service);
//! let service = metadata.layer().layer(service);
//! # drop(service);
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! - `jwt` (default): tokens that are signed, `JwtVerifier`.
//! - `client`: how a client gets tokens, the module `client`.
//! - `reqwest`: an HTTP client for all that asks an authorization server something, `ReqwestClient`.
#![forbid(unsafe_code)]

#[cfg(feature = "client")]
pub mod client;
mod http_client;
#[cfg(feature = "reqwest")]
mod names;
#[cfg(any(feature = "client", feature = "reqwest"))]
mod place;
#[cfg(feature = "reqwest")]
mod reqwest_client;
pub mod resource_server;
mod scope;
mod shown;

pub use http_client::{HttpClient, HttpError, InsecureEndpoint, NamedBy, Payload, Reply};
#[cfg(feature = "reqwest")]
pub use reqwest_client::ReqwestClient;
pub use steadfast_model::{InvalidScope, Scopes};

/// The example of the README, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
