//! One request, as whoever authorizes it knows it.
//!
//! That is somebody else's code. It runs where handlers run, so that nobody but its own request waits for it (L6); its panic is its
//! failure, and nobody waits for ever.

use std::error::Error as StdError;
use std::sync::Arc;

use http::{HeaderMap, Method, StatusCode};

use super::{Attempt, Authorize};
use crate::runtime::{Runtime, on_workers};

type Failure = Box<dyn StdError + Send + Sync>;

pub(crate) struct Signing {
    runtime: Arc<dyn Runtime>,
    stage: Stage,
}

/// Where the attempt is. It is away while a step of it runs, and does not come back from one that panics.
enum Stage {
    NotBegun { authorize: Arc<dyn Authorize>, method: Method, url: String },
    Begun(Box<dyn Attempt>),
    Away,
}

impl Signing {
    pub(crate) fn new(authorize: &Arc<dyn Authorize>, method: &Method, url: &str, runtime: &Arc<dyn Runtime>) -> Self {
        let (authorize, method, url) = (Arc::clone(authorize), method.clone(), url.to_owned());
        Self { runtime: Arc::clone(runtime), stage: Stage::NotBegun { authorize, method, url } }
    }

    /// These headers, with those that let the request in.
    pub(crate) async fn sign(&mut self, mut headers: HeaderMap) -> Result<HeaderMap, Failure> {
        let stage = std::mem::replace(&mut self.stage, Stage::Away);
        let signed = on_workers(&self.runtime, async move {
            let mut attempt = stage.begin()?;
            attempt.sign(&mut headers).await?;
            Ok((attempt, headers))
        });
        let (attempt, headers) = signed.await.unwrap_or_else(panicked)?;
        self.stage = Stage::Begun(attempt);
        Ok(headers)
    }

    /// Whether it should be made again.
    pub(crate) async fn answered(&mut self, status: StatusCode, headers: HeaderMap) -> Result<bool, Failure> {
        let stage = std::mem::replace(&mut self.stage, Stage::Away);
        let answered = on_workers(&self.runtime, async move {
            let mut attempt = stage.begin()?;
            let again = attempt.answered(status, &headers).await?;
            Ok((attempt, again))
        });
        let (attempt, again) = answered.await.unwrap_or_else(panicked)?;
        self.stage = Stage::Begun(attempt);
        Ok(again)
    }
}

impl Stage {
    fn begin(self) -> Result<Box<dyn Attempt>, Failure> {
        match self {
            Self::NotBegun { authorize, method, url } => Ok(authorize.attempt(&method, &url)),
            Self::Begun(attempt) => Ok(attempt),
            Self::Away => panicked(),
        }
    }
}

fn panicked<T>() -> Result<T, Failure> {
    Err("it failed unexpectedly".into())
}
