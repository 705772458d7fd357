//! Executes the commands of an OAuth flow: sends HTTP requests, fetches assertions, asks the user, and stores the tokens. The
//! OAuth flow decides what to do next; its driver adds only the timeouts.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{Method, Request};
use tokio::time::Instant;

use super::persistence::TokenLock;
use super::{Authorizer, UserLogin};
use crate::client::Error;
use crate::client::flow::{OAuthFlow, OAuthFlowCommand, OAuthFlowCommandResult, OAuthFlowStart};
use crate::client::store::TokenStoreKey;
use crate::{HttpClientBody, HttpClientError, MetadataSourceHost};

/// Limit of the body of an HTTP response in an OAuth flow, in bytes.
pub(super) const MAX_BYTES: usize = 256 * 1024;
/// Timeout of one HTTP request of an OAuth flow, and of the whole metadata discovery. The timeout is needed because other
/// callers wait for the tokens.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The outcome of the part of an OAuth flow that needs no user.
pub(super) enum NonInteractiveOutcome {
    Done,
    NeedsUser(Box<(OAuthFlow, OAuthFlowCommand)>),
}

impl Authorizer {
    pub(super) fn flow(&self, input: OAuthFlowStart) -> Result<OAuthFlow, Error> {
        let (profile, random) = (Arc::clone(&self.0.profile), Arc::clone(&self.0.random));
        OAuthFlow::new(profile, &self.0.server_text, input, random)
    }

    /// Executes the commands of an OAuth flow until the flow ends or needs the user.
    pub(super) async fn drive(
        &self,
        mut flow: OAuthFlow,
        mut command: OAuthFlowCommand,
        lock: &mut Option<TokenLock>,
    ) -> Result<NonInteractiveOutcome, Error> {
        let begun = Instant::now();
        loop {
            // Its `Debug` contains no secret.
            tracing::debug!(?command, "authorization");
            self.discard(flow.take_invalidation()).await?;
            let event = match command {
                OAuthFlowCommand::Send(mut request) => {
                    self.add_referrer(&mut request);
                    // Metadata may be at several URLs: one timeout for all of them.
                    let is_search = request.method() == Method::GET;
                    let end = if is_search { begun } else { Instant::now() } + REQUEST_TIMEOUT;
                    match tokio::time::timeout_at(end, self.0.http.send(request, MAX_BYTES)).await {
                        Ok(Ok(response)) => OAuthFlowCommandResult::Response(response),
                        Ok(Err(error)) => OAuthFlowCommandResult::Unreachable(error),
                        Err(_) => OAuthFlowCommandResult::Unreachable(HttpClientError::new("request timed out")),
                    }
                }
                OAuthFlowCommand::LoadRegistration { issuer } => OAuthFlowCommandResult::RegistrationLoaded(
                    self.load_value(&TokenStoreKey::Client { issuer }).await?,
                ),
                OAuthFlowCommand::PrepareRedirect { .. } | OAuthFlowCommand::Visit(_) => {
                    return Ok(NonInteractiveOutcome::NeedsUser(Box::new((flow, command))));
                }
                OAuthFlowCommand::FetchAssertion { issuer, resource } => {
                    let unconfigured = || Error::NoAssertion(String::from("no assertion source is configured"));
                    let source = self.0.assertions.as_ref().ok_or_else(unconfigured)?;
                    let assertion = tokio::time::timeout(REQUEST_TIMEOUT, source.assertion(&issuer, &resource)).await;
                    let late = |_| Error::NoAssertion(String::from("the assertion source timed out"));
                    OAuthFlowCommandResult::Assertion(assertion.map_err(late)??)
                }
                OAuthFlowCommand::Authorized(authorization) => {
                    self.store_authorization(*authorization, lock).await?;
                    return Ok(NonInteractiveOutcome::Done);
                }
                OAuthFlowCommand::Failed(error) => return Err(error),
            };
            command = flow.handle(event, SystemTime::now());
        }
    }

    /// Marks an HTTP request as sent to a URL from the MCP server's metadata, unless the application configured the host of
    /// that URL.
    pub(super) fn add_referrer(&self, request: &mut Request<HttpClientBody>) {
        let host = request.uri().host().unwrap_or_default();
        if let Some(server) = self.0.server.host_str().filter(|_| !self.0.profile.configures_host(host)) {
            request.extensions_mut().insert(MetadataSourceHost::new(server));
        }
    }

    /// Executes a command of an OAuth flow that needs the user.
    pub(super) async fn ask_user(
        &self,
        command: OAuthFlowCommand,
        visit: &mut Option<Box<dyn UserLogin>>,
    ) -> Result<OAuthFlowCommandResult, Error> {
        match command {
            OAuthFlowCommand::PrepareRedirect { preferred } => {
                let unconfigured = || Error::UserUnavailable(String::from("no user agent is configured"));
                let user = self.0.user.as_ref().ok_or_else(unconfigured)?;
                let ready = visit.insert(user.prepare(preferred.as_deref()).await?);
                Ok(OAuthFlowCommandResult::RedirectReady(ready.redirect_uri().to_owned()))
            }
            OAuthFlowCommand::Visit(url) => {
                let visit = visit.take().ok_or(Error::Misuse(
                    "the redirect must be prepared before the user visits the authorization URL",
                ))?;
                Ok(OAuthFlowCommandResult::Redirected(visit.visit(url).await?))
            }
            _ => Err(Error::Misuse("the command of the OAuth flow needs no user")),
        }
    }
}
