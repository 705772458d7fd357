//! Executes the commands of a flow: sends requests, fetches assertions, asks the user, stores the result. The flow decides what
//! to do; only timeouts are decided here.

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

/// Limit of the length of a response.
pub(super) const MAX_BYTES: usize = 256 * 1024;
/// Timeout of one request, and of the whole metadata discovery: other callers wait for them.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// How far a flow got without the user.
pub(super) enum NonInteractiveOutcome {
    Done,
    NeedsUser(Box<(OAuthFlow, OAuthFlowCommand)>),
}

impl Authorizer {
    pub(super) fn flow(&self, input: OAuthFlowStart) -> Result<OAuthFlow, Error> {
        let (profile, random) = (Arc::clone(&self.0.profile), Arc::clone(&self.0.random));
        OAuthFlow::new(profile, &self.0.server_text, input, random)
    }

    /// Executes the commands of a flow until it ends or needs the user.
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

    /// Marks the request as one to a URL from the server's metadata, unless the application configured its host.
    pub(super) fn add_referrer(&self, request: &mut Request<HttpClientBody>) {
        let host = request.uri().host().unwrap_or_default();
        if let Some(server) = self.0.server.host_str().filter(|_| !self.0.profile.configures_host(host)) {
            request.extensions_mut().insert(MetadataSourceHost::new(server));
        }
    }

    /// Executes a command that needs the user.
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
                let visit = visit.take().ok_or(Error::Misuse("a visit needs a prepared redirect"))?;
                Ok(OAuthFlowCommandResult::Redirected(visit.visit(url).await?))
            }
            _ => Err(Error::Misuse("the command needs no user")),
        }
    }
}
