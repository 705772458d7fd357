//! Runs the program's [`Authorize`] for one request.
//!
//! An authorizer is code of the program, so it runs on the worker threads, as handlers do, and delays only its own
//! request (law L6). If the authorizer panics, the request fails, unless the server has already accepted it.

use std::error::Error as StdError;
use std::sync::Arc;

use http::{HeaderMap, Method, StatusCode};

use super::{Authorize, OutgoingHttpRequest, RequestAuthorization};
use crate::runtime::{Runtime, on_workers};

type BoxError = Box<dyn StdError + Send + Sync>;

/// Authorizes one HTTP request of the client.
pub(crate) struct ClientRequestAuthorizer {
    runtime: Arc<dyn Runtime>,
    stage: RequestAuthorizationStage,
}

/// Where the authorization of a request is: it is moved to a worker while one of its steps runs, and lost if that step
/// panics.
enum RequestAuthorizationStage {
    NotBegun { authorize: Arc<dyn Authorize>, method: Method, url: String },
    Begun(Box<dyn RequestAuthorization>),
    OnWorker,
}

impl ClientRequestAuthorizer {
    pub(crate) fn new(authorize: &Arc<dyn Authorize>, method: &Method, url: &str, runtime: &Arc<dyn Runtime>) -> Self {
        let (authorize, method, url) = (Arc::clone(authorize), method.clone(), url.to_owned());
        Self { runtime: Arc::clone(runtime), stage: RequestAuthorizationStage::NotBegun { authorize, method, url } }
    }

    /// Has the authorizer add credentials to the headers of the request.
    pub(crate) async fn sign(&mut self, mut headers: HeaderMap) -> Result<HeaderMap, BoxError> {
        let stage = std::mem::replace(&mut self.stage, RequestAuthorizationStage::OnWorker);
        let signed = on_workers(&self.runtime, async move {
            let mut attempt = stage.begin()?;
            attempt.sign(&mut headers).await?;
            Ok((attempt, headers))
        });
        let (attempt, headers) = signed.await.unwrap_or_else(panicked)?;
        self.stage = RequestAuthorizationStage::Begun(attempt);
        Ok(headers)
    }

    /// Passes the server's response to the authorizer, and returns whether to send the request again.
    pub(crate) async fn answered(&mut self, status: StatusCode, headers: HeaderMap) -> Result<bool, BoxError> {
        let stage = std::mem::replace(&mut self.stage, RequestAuthorizationStage::OnWorker);
        let answered = on_workers(&self.runtime, async move {
            let mut attempt = stage.begin()?;
            let again = attempt.answered(status, &headers).await?;
            Ok((attempt, again))
        });
        let (attempt, again) = answered.await.unwrap_or_else(panicked)?;
        self.stage = RequestAuthorizationStage::Begun(attempt);
        Ok(again)
    }
}

impl RequestAuthorizationStage {
    fn begin(self) -> Result<Box<dyn RequestAuthorization>, BoxError> {
        match self {
            Self::NotBegun { authorize, method, url } => {
                Ok(authorize.attempt(&OutgoingHttpRequest::new(&method, &url)))
            }
            Self::Begun(attempt) => Ok(attempt),
            Self::OnWorker => panicked(),
        }
    }
}

fn panicked<T>() -> Result<T, BoxError> {
    Err("the authorizer panicked, or its runtime shut down".into())
}
