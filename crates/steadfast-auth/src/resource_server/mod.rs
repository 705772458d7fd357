//! An OAuth 2.1 resource server: rejects requests without a valid access token.
//!
//! [`BearerLayer`] is a tower layer that verifies the token of each request with a [`TokenVerifier`] and replaces it with a
//! [`Principal`]. [`ResourceMetadata`] refers clients to the authorization server.
//!
//! Verifiers:
//!
//! - `JwtVerifier` (feature `jwt`), for signed tokens, with the keys of a `KeySet` or a `RemoteKeySet`;
//! - [`IntrospectionVerifier`], for opaque tokens, which the authorization server is asked about;
//! - [`verify_with`], for a function of your own.
//!
//! Requests to an authorization server use an [`HttpClient`]: `OAuthReqwestClient` (feature `reqwest`), or your own.
//!
//! The module `resource_server` never issues, stores or logs tokens, and sends a token only to the introspection
//! endpoint.

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
pub use crate::OAuthReqwestClient;
pub use crate::{
    HttpClient, HttpClientBody, HttpClientError, HttpClientFuture, InsecureEndpoint, InvalidScope, Scopes,
};
pub use bearer::{BearerLayer, BearerService, MethodScopes};
pub use introspection::IntrospectionVerifier;
#[cfg(feature = "jwt")]
pub use jwt::{Algorithm, InvalidKeySet, JwtVerifier, KeySet, KeySource, KeysFuture, KeysUnavailable, RemoteKeySet};
pub use metadata::{InvalidResourceMetadata, MetadataLayer, MetadataService, ResourceMetadata};
pub use steadfast_model::Principal;
pub use token::AccessToken;
pub use verifier::{TokenRejection, TokenVerifier, TokenVerifierFuture, verify_with};
