//! Whether the server lets us in: what signs requests, and what is remembered of those that were turned away, or found nobody.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{HeaderMap, Method, StatusCode};
use steadfast::transport::http::{Attempt, Authorize, Authorizing};
use steadfast_auth::client::Authorizer;

/// Signs requests if somebody can, and remembers whether the last message was turned away for who sent it, or for where.
#[derive(Clone, Default)]
pub(super) struct Admission {
    authorizer: Option<Authorizer>,
    noted: Arc<Noted>,
}

/// What became of the last message.
#[derive(Default)]
struct Noted {
    locked_out: AtomicBool,
    nobody_there: AtomicBool,
}

impl Admission {
    pub(super) fn new(authorizer: Option<Authorizer>) -> Self {
        Self { authorizer, noted: Arc::default() }
    }

    pub(super) fn is_locked_out(&self) -> bool {
        self.noted.locked_out.load(Ordering::Relaxed)
    }

    /// Nothing that takes messages was found at the URL.
    pub(super) fn found_nobody(&self) -> bool {
        self.noted.nobody_there.load(Ordering::Relaxed)
    }
}

impl Authorize for Admission {
    fn attempt(&self, method: &Method, url: &str) -> Box<dyn Attempt> {
        let attempt = self.authorizer.as_ref().map(|authorizer| Authorize::attempt(authorizer, method, url));
        // A stream that is not to be had says nothing of the messages.
        let noted = if method == Method::POST { Arc::clone(&self.noted) } else { Arc::default() };
        Box::new(Watched { attempt, noted })
    }
}

struct Watched {
    attempt: Option<Box<dyn Attempt>>,
    noted: Arc<Noted>,
}

impl Attempt for Watched {
    fn sign<'a>(&'a mut self, headers: &'a mut HeaderMap) -> Authorizing<'a, ()> {
        Box::pin(async move {
            let Some(attempt) = &mut self.attempt else { return Ok(()) };
            let signed = attempt.sign(headers).await;
            if signed.is_err() {
                self.noted.locked_out.store(true, Ordering::Relaxed);
            }
            signed
        })
    }

    fn answered<'a>(&'a mut self, status: StatusCode, headers: &'a HeaderMap) -> Authorizing<'a, bool> {
        Box::pin(async move {
            let refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
            let nobody = matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED);
            // Noted first: whoever waits for this may be gone before there is an answer.
            self.noted.locked_out.store(refused, Ordering::Relaxed);
            self.noted.nobody_there.store(nobody, Ordering::Relaxed);
            match &mut self.attempt {
                Some(attempt) => attempt.answered(status, headers).await,
                None => Ok(false),
            }
        })
    }
}
