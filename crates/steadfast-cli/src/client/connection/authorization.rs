//! Authorizes the HTTP requests of the command, and records what the last response meant: not authorized, or no MCP endpoint at
//! the URL.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{HeaderMap, Method, StatusCode};
use steadfast::transport::http::{Authorize, OutgoingHttpRequest, RequestAuthorization, RequestAuthorizationFuture};
use steadfast_auth::client::Authorizer;

/// Adds tokens to HTTP requests if there is an authorizer, and records the status of the last response.
#[derive(Clone, Default)]
pub(crate) struct CliAuthorizer {
    authorizer: Option<Authorizer>,
    last_response: Arc<CliLastPostStatus>,
}

/// What the status of the last response to an HTTP POST meant.
#[derive(Default)]
struct CliLastPostStatus {
    unauthorized: AtomicBool,
    no_endpoint: AtomicBool,
}

impl CliAuthorizer {
    pub(crate) fn new(authorizer: Option<Authorizer>) -> Self {
        Self { authorizer, last_response: Arc::default() }
    }

    pub(crate) fn is_unauthorized(&self) -> bool {
        self.last_response.unauthorized.load(Ordering::Relaxed)
    }

    /// Whether the last HTTP response was 404 or 405: then the URL is not that of an MCP endpoint.
    pub(crate) fn found_no_endpoint(&self) -> bool {
        self.last_response.no_endpoint.load(Ordering::Relaxed)
    }
}

impl Authorize for CliAuthorizer {
    fn attempt(&self, request: &OutgoingHttpRequest<'_>) -> Box<dyn RequestAuthorization> {
        let attempt = self.authorizer.as_ref().map(|authorizer| Authorize::attempt(authorizer, request));
        // Servers may refuse the GET of an event stream: its status says nothing about requests.
        let last_response =
            if request.method == Method::POST { Arc::clone(&self.last_response) } else { Arc::default() };
        Box::new(CliRequestAuthorization { attempt, last_response })
    }
}

struct CliRequestAuthorization {
    attempt: Option<Box<dyn RequestAuthorization>>,
    last_response: Arc<CliLastPostStatus>,
}

impl RequestAuthorization for CliRequestAuthorization {
    fn sign<'a>(&'a mut self, headers: &'a mut HeaderMap) -> RequestAuthorizationFuture<'a, ()> {
        Box::pin(async move {
            let Some(attempt) = &mut self.attempt else { return Ok(()) };
            let signed = attempt.sign(headers).await;
            if signed.is_err() {
                self.last_response.unauthorized.store(true, Ordering::Relaxed);
            }
            signed
        })
    }

    fn answered<'a>(&'a mut self, status: StatusCode, headers: &'a HeaderMap) -> RequestAuthorizationFuture<'a, bool> {
        Box::pin(async move {
            let unauthorized = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
            let no_endpoint = matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED);
            // Stored first: this future may be dropped while the authorizer runs.
            self.last_response.unauthorized.store(unauthorized, Ordering::Relaxed);
            self.last_response.no_endpoint.store(no_endpoint, Ordering::Relaxed);
            match &mut self.attempt {
                Some(attempt) => attempt.answered(status, headers).await,
                None => Ok(false),
            }
        })
    }
}
