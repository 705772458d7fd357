//! Replaces tokens that an MCP server rejected: with tokens that another caller or process obtained meanwhile, or with the
//! result of an OAuth flow, which refreshes the tokens or asks the user.
//!
//! If the MCP server requires more scopes, the user is asked. If the request for more scopes fails, the same scopes are not
//! requested again at once (`denied_scopes`).

use std::sync::Arc;
use std::time::SystemTime;

use tokio::time::Instant;

use super::Authorizer;
use super::drive::NonInteractiveOutcome;
use super::persistence::key;
use super::renewal_permit::{TokenRenewalPermit, run_detached};
use crate::Scopes;
use crate::client::Error;
use crate::client::challenge::WwwAuthenticateChallenge;
use crate::client::flow::{OAuthFlowCommand, OAuthFlowStart};
use crate::client::scope::is_step_up;
use crate::client::token::Tokens;

/// Why the OAuth client needs new tokens.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenRenewalReason {
    /// The MCP server rejected the access token. A refresh of the tokens may help, unless a refresh was tried
    /// already.
    TokenRejected { may_refresh: bool },
    /// The MCP server requires more scopes, which a refresh of the tokens would not grant.
    MoreScopes,
}

/// How the client replaces tokens that the MCP server rejected.
enum TokenRenewalPlan {
    /// Retry with the current tokens: another caller has already replaced the rejected ones.
    UseCurrent,
    /// Request new tokens, with the given scopes if the MCP server requires more scopes.
    RequestTokens { scopes: Option<Scopes> },
}

/// The result of an OAuth flow that was run to renew tokens.
struct OAuthFlowResult {
    permit: TokenRenewalPermit,
    user_was_asked: bool,
    result: Result<(), Error>,
}

impl Authorizer {
    /// Replaces the tokens that the MCP server rejected.
    pub(super) async fn renew(
        &self,
        used: Option<&Arc<Tokens>>,
        challenge: Option<WwwAuthenticateChallenge>,
        reason: TokenRenewalReason,
    ) -> Result<(), Error> {
        let permit = self.acquire_renewal_permit().await;
        self.load().await?;
        self.check_concurrent_failure(&permit)?;
        if reason == TokenRenewalReason::MoreScopes {
            // The user may have granted them in another process.
            self.adopt_stored().await?;
        }
        let required = challenge.as_ref().and_then(|challenge| challenge.scope.as_ref());
        let scopes = match self.plan(used, required, reason, &permit)? {
            TokenRenewalPlan::UseCurrent => return Ok(()),
            TokenRenewalPlan::RequestTokens { scopes } => scopes,
        };
        let may_refresh = reason == TokenRenewalReason::TokenRejected { may_refresh: true };
        let OAuthFlowResult { permit, user_was_asked, result } = self.run_flow(permit, challenge, may_refresh).await?;
        if let (Some(scopes), Err(error)) = (scopes, &result)
            && (user_was_asked || is_refusal(error))
        {
            self.state().denied_scopes.insert(scopes, error.clone(), Instant::now());
        }
        self.finish(result.as_ref().err(), permit);
        result
    }

    /// Decides from the authorizer's state in memory whether new tokens have to be requested.
    fn plan(
        &self,
        used: Option<&Arc<Tokens>>,
        required: Option<&Scopes>,
        reason: TokenRenewalReason,
        permit: &TokenRenewalPermit,
    ) -> Result<TokenRenewalPlan, Error> {
        let others = self.others_finished(permit);
        let state = self.state();
        let same = match (state.tokens.as_ref(), used) {
            (Some(tokens), Some(used)) => tokens.access_token == used.access_token,
            (None, _) => true,
            (Some(tokens), None) => tokens.is_expired(SystemTime::now()) && !tokens.is_refreshable(),
        };
        let requested = state.tokens.as_ref().and_then(|tokens| tokens.requested.as_ref());
        if (others || !same) && !is_step_up(required, requested) {
            return Ok(TokenRenewalPlan::UseCurrent);
        }
        if same && state.unproven && used.is_some() {
            return Err(Error::TokenRejected);
        }
        let scopes = required.filter(|_| reason == TokenRenewalReason::MoreScopes).cloned();
        let scopes = scopes.map(|required| required.union(requested.cloned().unwrap_or_default()));
        let error = scopes.as_ref().and_then(|scopes| state.denied_scopes.error_for(scopes, Instant::now()));
        error.map_or(Ok(TokenRenewalPlan::RequestTokens { scopes }), Err)
    }

    /// Runs a whole OAuth flow, and asks the user if necessary.
    async fn run_flow(
        &self,
        permit: TokenRenewalPermit,
        challenge: Option<WwwAuthenticateChallenge>,
        may_refresh: bool,
    ) -> Result<OAuthFlowResult, Error> {
        let this = self.clone();
        let begun = async move { this.run_without_user(challenge, may_refresh).await };
        let (mut permit, mut progress) = run_detached(permit, begun).await?;
        let (mut visit, mut user_was_asked) = (None, false);
        let result = loop {
            let (mut flow, command) = match progress {
                Ok(NonInteractiveOutcome::NeedsUser(paused)) => *paused,
                Ok(NonInteractiveOutcome::Done) => break Ok(()),
                Err(error) => break Err(error),
            };
            user_was_asked |= matches!(command, OAuthFlowCommand::Visit(_));
            // Not detached: dropping the caller cancels the login and closes the listener.
            let event = match self.ask_user(command, &mut visit).await {
                Ok(event) => event,
                Err(error) => {
                    flow.visit_failed();
                    break self.discard(flow.take_invalidation()).await.and(Err(error));
                }
            };
            let command = flow.handle(event, SystemTime::now());
            let this = self.clone();
            (permit, progress) =
                run_detached(permit, async move { this.drive(flow, command, &mut None).await }).await?;
        };
        Ok(OAuthFlowResult { permit, user_was_asked, result })
    }

    /// Runs the part of an OAuth flow that needs no user. The lock of the tokens in the token store is held if the flow may
    /// refresh them.
    async fn run_without_user(
        &self,
        challenge: Option<WwwAuthenticateChallenge>,
        may_refresh: bool,
    ) -> Result<NonInteractiveOutcome, Error> {
        let mut old = self.state().tokens.clone();
        let mut lock = None;
        if may_refresh {
            self.save(&mut None).await?;
            let (mut stored, _) = self.stored().await?;
            // The stored tokens count: another process may have replaced them.
            let newest = stored.as_ref().or(old.as_deref());
            if let Some(newest) = newest.filter(|tokens| tokens.is_refreshable()) {
                lock = Some(self.lock(key(newest)).await?);
                (stored, _) = self.stored().await?;
            }
            let is_other = |stored: &Tokens| old.as_ref().is_none_or(|old| stored.access_token != old.access_token);
            if let Some(stored) = stored {
                let stored = Arc::new(stored);
                if is_other(&stored) && !stored.is_expired(SystemTime::now()) {
                    self.adopt(stored, false);
                    return Ok(NonInteractiveOutcome::Done);
                }
                old = Some(stored);
            }
        }
        let issuer = self.state().issuer.clone();
        let tokens = old.map(|tokens| (*tokens).clone());
        let mut flow = self.flow(OAuthFlowStart { challenge, tokens, may_refresh, issuer })?;
        let first = flow.begin();
        self.drive(flow, first, &mut lock).await
    }
}

/// Whether the error means that the authorization server refused the request, as opposed to being unreachable.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Denied(_) | Error::TokenRefused(_) | Error::RegistrationRefused(_))
}
