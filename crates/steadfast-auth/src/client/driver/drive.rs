//! Doing what a flow says: requests are sent, assertions fetched, users asked, and what it brings is kept. What to do is the flow's
//! to say; only how long it may take is decided here.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{Method, Request};
use tokio::time::Instant;

use super::kept::Locked;
use super::{Authorizer, Visit};
use crate::client::Error;
use crate::client::flow::{Command, Event, Flow, Situation};
use crate::client::store::Key;
use crate::{HttpError, NamedBy, Payload};

/// No document or token is longer.
pub(super) const LONGEST: usize = 256 * 1024;
/// How long one request may take, whatever the HTTP client thinks, and all the looking for metadata: others wait for it.
const PATIENCE: Duration = Duration::from_secs(30);

/// How far a flow came without the user.
pub(super) enum Progress {
    Done,
    NeedsUser(Box<(Flow, Command)>),
}

impl Authorizer {
    pub(super) fn flow(&self, situation: Situation) -> Result<Flow, Error> {
        let (profile, random) = (Arc::clone(&self.0.profile), Arc::clone(&self.0.random));
        Flow::new(profile, &self.0.server_text, situation, random)
    }

    /// Does what a flow says, up to its end or to the user.
    pub(super) async fn drive(
        &self,
        mut flow: Flow,
        mut command: Command,
        lock: &mut Option<Locked>,
    ) -> Result<Progress, Error> {
        let begun = Instant::now();
        loop {
            // Its debug form has nothing secret.
            tracing::debug!(?command, "authorization");
            self.discard(flow.forgotten()).await?;
            let event = match command {
                Command::Send(mut request) => {
                    self.say_who_named(&mut request);
                    // Metadata may be in several places; all of them together get no more time than one would.
                    let is_search = request.method() == Method::GET;
                    let end = if is_search { begun } else { Instant::now() } + PATIENCE;
                    match tokio::time::timeout_at(end, self.0.http.send(request, LONGEST)).await {
                        Ok(Ok(response)) => Event::Response(response),
                        Ok(Err(error)) => Event::Unreachable(error),
                        Err(_) => Event::Unreachable(HttpError::new("no answer in time")),
                    }
                }
                Command::Recall { issuer } => Event::Recalled(self.load_value(&Key::Client { issuer }).await?),
                Command::PrepareRedirect { .. } | Command::Visit(_) => {
                    return Ok(Progress::NeedsUser(Box::new((flow, command))));
                }
                Command::Assert { issuer, resource } => {
                    let nobody = || Error::NoAssertion(String::from("nothing gives any"));
                    let source = self.0.assertions.as_ref().ok_or_else(nobody)?;
                    let assertion = tokio::time::timeout(PATIENCE, source.assertion(&issuer, &resource)).await;
                    let late = |_| Error::NoAssertion(String::from("none came in time"));
                    Event::Assertion(assertion.map_err(late)??)
                }
                Command::Authorized(outcome) => {
                    self.remember(*outcome, lock).await?;
                    return Ok(Progress::Done);
                }
                Command::Failed(error) => return Err(error),
            };
            command = flow.handle(event, SystemTime::now());
        }
    }

    /// Lets the HTTP client know that it is the server who sends us there, unless the program does.
    pub(super) fn say_who_named(&self, request: &mut Request<Payload>) {
        let host = request.uri().host().unwrap_or_default();
        if let Some(server) = self.0.server.host_str().filter(|_| !self.0.profile.names(host)) {
            request.extensions_mut().insert(NamedBy::new(server));
        }
    }

    /// Does what needs the user.
    pub(super) async fn ask_user(&self, command: Command, visit: &mut Option<Box<dyn Visit>>) -> Result<Event, Error> {
        match command {
            Command::PrepareRedirect { preferred } => {
                let nobody = || Error::NoUser(String::from("there is nobody to ask"));
                let user = self.0.user.as_ref().ok_or_else(nobody)?;
                let ready = visit.insert(user.prepare(preferred.as_deref()).await?);
                Ok(Event::RedirectReady(ready.redirect_uri().to_owned()))
            }
            Command::Visit(url) => {
                let visit = visit.take().ok_or(Error::Misuse("nobody is ready for the answer"))?;
                Ok(Event::Redirected(visit.visit(url).await?))
            }
            _ => Err(Error::Misuse("this needs no user")),
        }
    }
}
