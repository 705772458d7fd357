//! Lets the HTTP client transport of `steadfast` authorize its requests with an [`Authorizer`].

use http::{HeaderMap, StatusCode};
use steadfast::transport::http as transport;
use steadfast::transport::http::RequestAuthorizationFuture;

use super::{Authorizer, OAuthRequestAttempt, OAuthResponseAction};
use crate::client::Error;

/// ```no_run
/// # #[cfg(feature = "reqwest")]
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use steadfast::Client;
/// use steadfast::transport::http::HttpTarget;
/// use steadfast_auth::OAuthReqwestClient;
/// use steadfast_auth::client::{Authorizer, LoopbackUserAgent, OAuthClientSettings};
///
/// let server = "https://mcp.example.com/mcp";
/// let authorizer = Authorizer::builder(server, OAuthClientSettings::new("Example editor"), OAuthReqwestClient::new()?)?
///     .user_agent(LoopbackUserAgent::new())
///     .build();
/// let client = Client::connect(HttpTarget::new(server).authorize(authorizer)).await?;
/// # Ok(()) }
/// ```
impl transport::Authorize for Authorizer {
    fn attempt(&self, request: &transport::OutgoingHttpRequest<'_>) -> Box<dyn transport::RequestAuthorization> {
        Box::new(RequestAuthorizationAdapter(self.attempt(request.method.clone(), request.url).map_err(Some)))
    }
}

/// The [`OAuthRequestAttempt`] of one HTTP request, or the error with which it could not be started.
struct RequestAuthorizationAdapter(Result<OAuthRequestAttempt, Option<Error>>);

impl transport::RequestAuthorization for RequestAuthorizationAdapter {
    fn sign<'a>(&'a mut self, headers: &'a mut HeaderMap) -> RequestAuthorizationFuture<'a, ()> {
        Box::pin(async move {
            match &mut self.0 {
                Ok(attempt) => attempt.sign(headers).await.map_err(Into::into),
                Err(error) => Err(error.take().map_or_else(|| "the request cannot be authorized".into(), Into::into)),
            }
        })
    }

    fn answered<'a>(&'a mut self, status: StatusCode, headers: &'a HeaderMap) -> RequestAuthorizationFuture<'a, bool> {
        Box::pin(async move {
            let Ok(attempt) = &mut self.0 else { return Ok(false) };
            Ok(attempt.answered(status, headers).await? != OAuthResponseAction::Deliver)
        })
    }
}
