//! The tower layer that rejects HTTP requests without a valid access token.

mod challenge;
mod credentials;
mod requirement;
#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::request::Parts;
use http::{Request, Response};
use tower_layer::Layer;
use tower_service::Service;

use super::{Principal, ResourceMetadata, Scopes, TokenRejection, TokenVerifier};
use challenge::RequestDenial;
use credentials::InboundRequestCredentials;
pub use requirement::MethodScopes;
use requirement::ScopeRequirement;

/// A tower layer that passes on only requests with exactly one valid bearer token.
///
/// A request that is passed on has a [`Principal`] in its extensions and no `Authorization` header. A request that is not
/// passed on gets a response with an empty body and one of these statuses:
///
/// - 401 and a challenge when there is no token, or an invalid one;
/// - 403 and a challenge when the token's scopes are not enough;
/// - 400 when a token is in the query, or there is more than one `Authorization` header;
/// - 503 when the verifier is not available.
///
/// A browser's CORS preflight has no token: put the layer that answers CORS preflights outside of this layer.
#[derive(Clone)]
pub struct BearerLayer {
    shared: Arc<BearerLayerState>,
}

#[derive(Clone)]
struct BearerLayerState {
    verifier: Arc<dyn TokenVerifier>,
    metadata_url: String,
    requirement: ScopeRequirement,
}

impl BearerLayer {
    /// Creates a layer that verifies tokens with this verifier. The challenges of the layer refer clients to the given
    /// protected resource metadata.
    pub fn new(verifier: impl TokenVerifier, metadata: &ResourceMetadata) -> Self {
        let verifier = Arc::new(verifier);
        let (metadata_url, requirement) = (metadata.url(), ScopeRequirement::default());
        Self { shared: Arc::new(BearerLayerState { verifier, metadata_url, requirement }) }
    }

    /// Requires these scopes for every request.
    pub fn scopes(mut self, scopes: Scopes) -> Self {
        self.requirement().always = scopes;
        self
    }

    /// Requires additional scopes, which this function returns for the head of each HTTP request. [`MethodScopes`] provides
    /// such a function by the MCP method.
    pub fn scopes_by(mut self, scopes: impl Fn(&Parts) -> Scopes + Send + Sync + 'static) -> Self {
        self.requirement().by_request = Some(Arc::new(scopes));
        self
    }

    /// Sets the function that tells whether a granted scope (the first argument) implies a required scope (the second
    /// argument). By default a scope implies only itself.
    pub fn implied_by(mut self, broader: impl Fn(&str, &str) -> bool + Send + Sync + 'static) -> Self {
        self.requirement().broader = Some(Arc::new(broader));
        self
    }

    fn requirement(&mut self) -> &mut ScopeRequirement {
        &mut Arc::make_mut(&mut self.shared).requirement
    }
}

impl fmt::Debug for BearerLayer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("BearerLayer")
            .field("metadata_url", &self.shared.metadata_url)
            .field("requirement", &self.shared.requirement)
            .finish_non_exhaustive()
    }
}

impl<S> Layer<S> for BearerLayer {
    type Service = BearerService<S>;

    fn layer(&self, inner: S) -> BearerService<S> {
        BearerService { shared: self.shared.clone(), inner }
    }
}

/// The service that [`BearerLayer`] produces.
#[derive(Clone)]
pub struct BearerService<S> {
    shared: Arc<BearerLayerState>,
    inner: S,
}

impl<S: fmt::Debug> fmt::Debug for BearerService<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Bearer").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S, B, R> Service<Request<B>> for BearerService<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
    R: Default,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let shared = self.shared.clone();
        // The service that is ready takes the request; the clone has to be polled for readiness itself.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            let credentials = credentials::take(&mut parts);
            let needed = shared.requirement.of(&parts);
            match shared.authorize(credentials, &needed).await {
                Ok(principal) => {
                    parts.extensions.insert(principal);
                    inner.call(Request::from_parts(parts, body)).await
                }
                Err(denial) => Ok(denial.response(&shared.metadata_url, &needed)),
            }
        })
    }
}

impl BearerLayerState {
    async fn authorize(
        &self,
        credentials: InboundRequestCredentials,
        needed: &Scopes,
    ) -> Result<Principal, RequestDenial> {
        let token = match credentials {
            InboundRequestCredentials::Absent => return Err(RequestDenial::NoToken),
            InboundRequestCredentials::Malformed => {
                return Err(RequestDenial::Rejected(TokenRejection::Invalid("the token is malformed")));
            }
            InboundRequestCredentials::Misplaced(reason) => return Err(RequestDenial::Misplaced(reason)),
            InboundRequestCredentials::Bearer(token) => token,
        };
        let principal = self.verifier.verify(&token).await.map_err(|rejection| {
            match &rejection {
                TokenRejection::Unavailable(reason) => tracing::warn!(reason, "token verification is unavailable"),
                other => tracing::debug!(reason = other.reason(), "token rejected"),
            }
            RequestDenial::Rejected(rejection)
        })?;
        if self.requirement.is_met(principal.scopes(), needed) {
            Ok(principal)
        } else {
            Err(RequestDenial::Rejected(TokenRejection::InsufficientScope(needed.clone())))
        }
    }
}
