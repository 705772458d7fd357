//! Authorization for the Model Context Protocol: servers that verify access tokens, and clients that obtain them.
//!
//! A protected server over HTTP is an OAuth 2.1 resource server: it requires a bearer token with every request, verifies that
//! the token was issued for it, and refers clients without one to its authorization server. The module [`resource_server`] has
//! tower layers that verify the tokens and can wrap any HTTP service.
//!
//! ```
//! use http::{Request, Response};
//! use http_body_util::Full;
//! use steadfast_auth::resource_server::{Principal, TokenRejection, BearerLayer, ResourceMetadata, AccessToken, verify_with};
//! use tower::{Layer, ServiceExt, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Where tokens for this server come from.
//! let metadata = ResourceMetadata::new("https://mcp.example.com/mcp", ["https://auth.example.com"])?
//!     .scopes("files:read".parse()?);
//!
//! // Verifies tokens: here a closure; use JwtVerifier or IntrospectionVerifier for real ones.
//! let verifier = verify_with(async |token: AccessToken| match token.expose() {
//!     "good" => Ok(Principal::new("alice").with_scopes("files:read".parse().unwrap_or_default())),
//!     _ => Err(TokenRejection::Invalid("unknown token")),
//! });
//!
//! // The server itself: it gets the principal of the request, and never sees a token.
//! let server = service_fn(async |request: Request<String>| {
//!     let principal = request.extensions().get::<Principal>();
//!     let name = principal.and_then(Principal::subject).unwrap_or("nobody").to_owned();
//!     Ok::<_, std::convert::Infallible>(Response::new(Full::<bytes::Bytes>::from(name)))
//! });
//! let server = BearerLayer::new(verifier, &metadata).scopes("files:read".parse()?).layer(server);
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
//! An MCP client of a protected server is an OAuth 2.1 client: it discovers the authorization server, obtains tokens,
//! stores them and sends them with its requests. The module `client` implements the OAuth client for MCP clients.
//!
//! # In front of a server of `steadfast`
//!
//! The HTTP service of `steadfast` reads the principal from the extensions of the HTTP request. Handlers get the principal as
//! `ctx.principal()`, with the scopes and claims of the token of their request. MCP sessions, MCP tasks and the request state
//! that a client sends back with requested input are bound to the principal.
//!
//! ```
//! use steadfast::transport::http::{HttpServerOptions, HttpService};
//! use steadfast::{Context, Server, ServerTool};
//! use steadfast_auth::resource_server::{BearerLayer, ResourceMetadata};
//! # use steadfast_auth::resource_server::{Principal, TokenRejection, AccessToken, verify_with};
//! use tower::Layer;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let whoami = ServerTool::new("whoami").handler(|ctx: Context| async move {
//!     ctx.principal().map_or("nobody", |principal| principal.name()).to_owned()
//! });
//! let server = Server::builder("files", "1.0.0").tools([whoami]).build();
//! let metadata = ResourceMetadata::new("https://mcp.example.com/mcp", ["https://auth.example.com"])?;
//! # let verifier = verify_with(async |_: AccessToken| Err::<Principal, _>(TokenRejection::Invalid("unknown token")));
//!
//! let service = HttpService::new(server, HttpServerOptions::new());
//! let service = BearerLayer::new(verifier, &metadata).layer(service);
//! let service = metadata.layer().layer(service);
//! # drop(service);
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! - `jwt` (default): verification of signed tokens, `JwtVerifier`.
//! - `client`: obtaining tokens, the module `client`.
//! - `reqwest`: an HTTP client for requests to authorization servers, `OAuthReqwestClient`.
#![forbid(unsafe_code)]

#[cfg(feature = "client")]
pub mod client;
mod http_client;
#[cfg(any(feature = "client", feature = "reqwest"))]
mod network_zone;
mod redact;
#[cfg(feature = "reqwest")]
mod reqwest_client;
#[cfg(feature = "reqwest")]
mod resolver;
pub mod resource_server;
mod scope;

pub use crate::http_client::{
    HttpClient, HttpClientBody, HttpClientError, HttpClientFuture, InsecureEndpoint, MetadataSourceHost,
};
#[cfg(feature = "reqwest")]
pub use crate::reqwest_client::OAuthReqwestClient;
pub use steadfast_model::{InvalidScope, Scopes};

/// Compiles the examples of the README as doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDoctests;
