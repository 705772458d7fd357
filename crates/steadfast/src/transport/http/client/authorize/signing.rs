//! Runs the program's [`Authorize`] for one request.
//!
//! It is code of the program, so it runs on the workers, as handlers do, and delays only its own request (L6). If it panics, the
//! request fails.

use std::error::Error as StdError;
use std::sync::Arc;

use http::{HeaderMap, Method, StatusCode};

use super::{Authorize, RequestAuthorization};
use crate::runtime::{Runtime, on_workers};

type BoxError = Box<dyn StdError + Send + Sync>;

/// Authorizes one request.
pub(crate) struct ClientRequestAuthorizer {
    runtime: Arc<dyn Runtime>,
    stage: RequestAuthorizationStage,
}

/// Where the attempt is: moved to a worker while a step runs, and lost if a step panics.
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

    /// Adds the credentials to these headers.
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

    /// Whether to send the request again.
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
            Self::NotBegun { authorize, method, url } => Ok(authorize.attempt(&method, &url)),
            Self::Begun(attempt) => Ok(attempt),
            Self::OnWorker => panicked(),
        }
    }
}

fn panicked<T>() -> Result<T, BoxError> {
    Err("the authorizer panicked, or its runtime shut down".into())
}
