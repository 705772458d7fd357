//! The authorization of one HTTP request of the client to the MCP server, including the retries of the request.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use url::Url;

use super::Authorizer;
use super::renew::TokenRenewalReason;
use crate::client::Error;
use crate::client::challenge::{AuthScheme, WwwAuthenticateChallenge};
use crate::client::dpop::{DpopProofKey, DpopProofParameters, PROOF, USE_NONCE};
use crate::client::scope::is_step_up;
use crate::client::token::{Tokens, nonce};

/// The maximum numbers of retries of one HTTP request: with a DPoP nonce, with a new token, and with more scopes.
const MAX_NONCE_RETRIES: u8 = 2;
const MAX_RENEWALS: u8 = 2;
const MAX_STEP_UPS: u8 = 2;

/// What the caller has to do with a response of the MCP server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OAuthResponseAction {
    /// Pass the MCP server's response on to the application, and do not retry the request.
    Deliver,
    /// Discard the response, call `sign` for the request again, and resend the request.
    Retry,
}

/// Authorizes one HTTP request to the MCP server: call [`sign`](Self::sign) each time before the request is sent, and
/// [`answered`](Self::answered) with each response.
///
/// The number of retries of a request is limited, whatever the MCP server responds.
///
/// An attempt is for one URL, because a DPoP proof is valid for one URL. To follow a redirect, start another attempt for the
/// new URL.
pub struct OAuthRequestAttempt {
    authorizer: Authorizer,
    method: Method,
    url: Url,
    used: Option<Arc<Tokens>>,
    nonces: u8,
    renewals: u8,
    step_ups: u8,
}

impl OAuthRequestAttempt {
    pub(super) fn new(authorizer: Authorizer, method: Method, url: Url) -> Self {
        Self { authorizer, method, url, used: None, nonces: 0, renewals: 0, step_ups: 0 }
    }

    /// Adds the access token to the headers of the request, and a DPoP proof if the token needs one. If the client has no token
    /// yet, adds nothing: the MCP server then responds with a challenge.
    pub async fn sign(&mut self, headers: &mut HeaderMap) -> Result<(), Error> {
        headers.remove(AUTHORIZATION);
        headers.remove(PROOF);
        self.used = self.authorizer.usable().await?;
        let Some(tokens) = &self.used else { return Ok(()) };
        let token = &tokens.access_token;
        let value = zeroize::Zeroizing::new(format!("{} {}", tokens.scheme.as_str(), token.expose()));
        headers.insert(AUTHORIZATION, sensitive(&value)?);
        if tokens.scheme == AuthScheme::Dpop {
            let key = tokens.key.as_ref().ok_or(Error::UnusableKey("the DPoP key of the access token is missing"))?;
            let nonce = self.authorizer.nonce();
            let proof = DpopProofParameters {
                method: self.method.as_str(),
                url: &self.url,
                token: Some(token),
                nonce: nonce.as_deref(),
            };
            let proof = DpopProofKey::import(key)?.prove(&proof, SystemTime::now(), self.authorizer.randomness())?;
            headers.insert(PROOF, sensitive(&proof)?);
        }
        Ok(())
    }

    /// Decides by the status and headers of the MCP server's response whether to send the request again. If the response
    /// requires another token, obtains the token first, which may ask the user. Returns an error if no token could be obtained
    /// that the MCP server may accept.
    ///
    /// If the user refused additional scopes, the same scopes are not requested again for ten minutes, unless the user logs in
    /// again; meanwhile the error of the refusal is returned.
    pub async fn answered(&mut self, status: StatusCode, headers: &HeaderMap) -> Result<OAuthResponseAction, Error> {
        let nonce_header = nonce(headers);
        let has_nonce = nonce_header.is_some();
        if has_nonce {
            self.authorizer.remember_nonce(nonce_header);
        }
        let challenge = WwwAuthenticateChallenge::from_headers(headers);
        let error = challenge.as_ref().and_then(|challenge| challenge.error.as_deref());
        match status {
            StatusCode::UNAUTHORIZED if error == Some(USE_NONCE) && has_nonce && self.used.is_some() => {
                self.nonces += 1;
                if self.nonces > MAX_NONCE_RETRIES { Err(Error::TokenRejected) } else { Ok(OAuthResponseAction::Retry) }
            }
            // The server requires another authentication scheme, which this crate does not provide.
            StatusCode::UNAUTHORIZED if challenge.is_none() && headers.contains_key(WWW_AUTHENTICATE) => {
                Ok(OAuthResponseAction::Deliver)
            }
            StatusCode::UNAUTHORIZED => self.renew(challenge).await,
            StatusCode::FORBIDDEN if error == Some("insufficient_scope") => self.step_up(challenge).await,
            _ => {
                if let Some(used) = &self.used {
                    self.authorizer.accepted(used);
                }
                Ok(OAuthResponseAction::Deliver)
            }
        }
    }

    async fn renew(&mut self, challenge: Option<WwwAuthenticateChallenge>) -> Result<OAuthResponseAction, Error> {
        self.renewals += 1;
        if self.renewals > MAX_RENEWALS {
            return Err(Error::TokenRejected);
        }
        let reason = TokenRenewalReason::TokenRejected { may_refresh: self.renewals == 1 };
        self.authorizer.renew(self.used.as_ref(), challenge, reason).await?;
        Ok(OAuthResponseAction::Retry)
    }

    async fn step_up(&mut self, challenge: Option<WwwAuthenticateChallenge>) -> Result<OAuthResponseAction, Error> {
        self.step_ups += 1;
        let required = challenge.as_ref().and_then(|challenge| challenge.scope.clone());
        let before = self.used.as_ref().and_then(|tokens| tokens.requested.as_ref());
        if self.step_ups > MAX_STEP_UPS || !is_step_up(required.as_ref(), before) {
            return Err(Error::InsufficientScope(required));
        }
        if let Some(used) = &self.used {
            self.authorizer.accepted(used);
        }
        self.authorizer.renew(self.used.as_ref(), challenge, TokenRenewalReason::MoreScopes).await?;
        Ok(OAuthResponseAction::Retry)
    }
}

impl fmt::Debug for OAuthRequestAttempt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "OAuthRequestAttempt({} {})",
            self.method,
            crate::client::url_policy::redact_url(self.url.as_str())
        )
    }
}

fn sensitive(text: &str) -> Result<HeaderValue, Error> {
    let problem = Error::Invalid {
        what: "token response",
        problem: "has a token with characters that are not allowed in a header",
    };
    let mut value = HeaderValue::from_str(text).map_err(|_| problem)?;
    value.set_sensitive(true);
    Ok(value)
}
