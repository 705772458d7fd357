//! A server that only talks to clients with a good token: an OAuth 2.1 resource server.
//!
//! [`RequireBearer`] is the tower layer that asks a [`Verifier`] about the token of each request and puts a [`Principal`] in
//! the token's place. [`ResourceMetadata`] tells clients where tokens come from.
//!
//! Verifiers:
//!
//! - `JwtVerifier` (feature `jwt`), for tokens that are signed. Its keys are a `KeySet`, or `FetchedKeys`;
//! - [`Introspection`], for tokens that the authorization server has to be asked about;
//! - [`verify_with`], for a function of your own.
//!
//! Both that ask an authorization server do so through an [`HttpClient`]: `ReqwestClient` (feature `reqwest`), or your own.
//!
//! Nothing here issues tokens, keeps them, passes them on or writes them anywhere.

mod audience;
mod bearer;
mod claims;
mod introspection;
#[cfg(feature = "jwt")]
mod jwt;
mod metadata;
mod token;
mod verifier;

#[cfg(feature = "reqwest")]
pub use crate::ReqwestClient;
pub use crate::{HttpClient, HttpError, InsecureEndpoint, InvalidScope, Payload, Reply, Scopes};
pub use bearer::{Bearer, MethodScopes, RequireBearer};
pub use introspection::Introspection;
#[cfg(feature = "jwt")]
pub use jwt::{Algorithm, FetchedKeys, InvalidKeySet, JwtVerifier, KeySet, KeySource, Keys, KeysUnavailable};
pub use metadata::{InvalidMetadata, ResourceMetadata, ServeMetadata, WithMetadata};
pub use steadfast_model::Principal;
pub use token::Token;
pub use verifier::{Rejection, Verdict, Verifier, verify_with};
