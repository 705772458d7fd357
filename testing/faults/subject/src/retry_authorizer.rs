//! Authorization that never gives up: whatever the response, the request is retried.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, StatusCode};
use steadfast::transport::http::{Authorize, OutgoingHttpRequest, RequestAuthorization, RequestAuthorizationFuture};

#[derive(Clone)]
pub(crate) struct RetryAuthorizer {
    token: String,
}

impl RetryAuthorizer {
    pub(crate) fn new(token: &str) -> Self {
        Self { token: format!("Bearer {token}") }
    }
}

impl Authorize for RetryAuthorizer {
    fn attempt(&self, _: &OutgoingHttpRequest<'_>) -> Box<dyn RequestAuthorization> {
        Box::new(self.clone())
    }
}

impl RequestAuthorization for RetryAuthorizer {
    fn sign<'a>(&'a mut self, headers: &'a mut HeaderMap) -> RequestAuthorizationFuture<'a, ()> {
        Box::pin(async {
            headers.insert(AUTHORIZATION, HeaderValue::try_from(&self.token)?);
            Ok(())
        })
    }

    fn answered<'a>(&'a mut self, _: StatusCode, _: &'a HeaderMap) -> RequestAuthorizationFuture<'a, bool> {
        Box::pin(async { Ok(true) })
    }
}
