//! One request to the server, however often it has to be sent.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use url::Url;

use super::Authorizer;
use super::renew::Need;
use crate::client::Error;
use crate::client::challenge::{Challenge, Scheme};
use crate::client::dpop::{PROOF, Proof, ProofKey, USE_NONCE};
use crate::client::scope::is_step_up;
use crate::client::token::{Tokens, nonce};

/// How often one request is sent again for a nonce, for another token, and for more scopes.
const NONCES: u8 = 2;
const RENEWALS: u8 = 2;
const STEP_UPS: u8 = 2;

/// What to do with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is the answer.
    Deliver,
    /// Throw it away, sign the request again, and send it again.
    Again,
}

/// One request to the server: signed before each time that it is sent, and asked about each answer.
///
/// However the server behaves, it is sent a few times at most.
///
/// It is for one URL, and so is the proof of a token that needs one. Who follows a redirect begins another attempt.
pub struct Attempt {
    authorizer: Authorizer,
    method: Method,
    url: Url,
    used: Option<Arc<Tokens>>,
    nonces: u8,
    renewals: u8,
    step_ups: u8,
}

impl Attempt {
    pub(super) fn new(authorizer: Authorizer, method: Method, url: Url) -> Self {
        Self { authorizer, method, url, used: None, nonces: 0, renewals: 0, step_ups: 0 }
    }

    /// Puts the token into the headers of the request, and a proof if the token needs one. Without a token it leaves them as
    /// they are: the server will say what it wants.
    pub async fn sign(&mut self, headers: &mut HeaderMap) -> Result<(), Error> {
        headers.remove(AUTHORIZATION);
        headers.remove(PROOF);
        self.used = self.authorizer.usable().await?;
        let Some(tokens) = &self.used else { return Ok(()) };
        let token = &tokens.access_token;
        let value = zeroize::Zeroizing::new(format!("{} {}", tokens.scheme.as_str(), token.expose()));
        headers.insert(AUTHORIZATION, sensitive(&value)?);
        if tokens.scheme == Scheme::Dpop {
            let key = tokens.key.as_ref().ok_or(Error::UnusableKey("the key of the token is lost"))?;
            let nonce = self.authorizer.nonce();
            let proof =
                Proof { method: self.method.as_str(), url: &self.url, token: Some(token), nonce: nonce.as_deref() };
            let proof = ProofKey::import(key)?.prove(&proof, SystemTime::now(), self.authorizer.randomness())?;
            headers.insert(PROOF, sensitive(&proof)?);
        }
        Ok(())
    }

    /// Takes the status and the headers of an answer. Gets another token if the server wants one, which may mean asking the
    /// user. An error means that no token will do.
    ///
    /// A user who was asked for more scopes in vain is not asked for the same again for ten minutes, unless they log in anew:
    /// the error is then the one of before.
    pub async fn answered(&mut self, status: StatusCode, headers: &HeaderMap) -> Result<Verdict, Error> {
        let given = nonce(headers);
        let has_nonce = given.is_some();
        if has_nonce {
            self.authorizer.remember_nonce(given);
        }
        let challenge = Challenge::from_headers(headers);
        let error = challenge.as_ref().and_then(|challenge| challenge.error.as_deref());
        match status {
            StatusCode::UNAUTHORIZED if error == Some(USE_NONCE) && has_nonce && self.used.is_some() => {
                self.nonces += 1;
                if self.nonces > NONCES { Err(Error::Rejected) } else { Ok(Verdict::Again) }
            }
            // Another kind of credentials is asked for, which are not ours to give.
            StatusCode::UNAUTHORIZED if challenge.is_none() && headers.contains_key(WWW_AUTHENTICATE) => {
                Ok(Verdict::Deliver)
            }
            StatusCode::UNAUTHORIZED => self.renew(challenge).await,
            StatusCode::FORBIDDEN if error == Some("insufficient_scope") => self.step_up(challenge).await,
            _ => {
                if let Some(used) = &self.used {
                    self.authorizer.accepted(used);
                }
                Ok(Verdict::Deliver)
            }
        }
    }

    async fn renew(&mut self, challenge: Option<Challenge>) -> Result<Verdict, Error> {
        self.renewals += 1;
        if self.renewals > RENEWALS {
            return Err(Error::Rejected);
        }
        let need = Need::Another { may_refresh: self.renewals == 1 };
        self.authorizer.renew(self.used.as_ref(), challenge, need).await?;
        Ok(Verdict::Again)
    }

    async fn step_up(&mut self, challenge: Option<Challenge>) -> Result<Verdict, Error> {
        self.step_ups += 1;
        let wanted = challenge.as_ref().and_then(|challenge| challenge.scope.clone());
        let before = self.used.as_ref().and_then(|tokens| tokens.requested.as_ref());
        if self.step_ups > STEP_UPS || !is_step_up(wanted.as_ref(), before) {
            return Err(Error::InsufficientScope(wanted));
        }
        if let Some(used) = &self.used {
            self.authorizer.accepted(used);
        }
        self.authorizer.renew(self.used.as_ref(), challenge, Need::MoreScopes).await?;
        Ok(Verdict::Again)
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Attempt({} {})", self.method, crate::client::reach::shown(self.url.as_str()))
    }
}

fn sensitive(text: &str) -> Result<HeaderValue, Error> {
    let problem = Error::Invalid { what: "token response", problem: "has a token that does not fit in a header" };
    let mut value = HeaderValue::from_str(text).map_err(|_| problem)?;
    value.set_sensitive(true);
    Ok(value)
}
