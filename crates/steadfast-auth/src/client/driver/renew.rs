//! Other tokens than those that a server refused: those that somebody else got meanwhile, or those that a flow brings, by a refresh
//! or from the user.
//!
//! A server that wants more scopes is a question to the user, and one that came to nothing is not put again at once (`refusals`).

use std::sync::Arc;
use std::time::SystemTime;

use tokio::time::Instant;

use super::Authorizer;
use super::drive::Progress;
use super::kept::key;
use super::turn::{Turn, apart};
use crate::Scopes;
use crate::client::Error;
use crate::client::challenge::Challenge;
use crate::client::flow::{Command, Situation};
use crate::client::scope::is_step_up;
use crate::client::token::Tokens;

/// Why other tokens are needed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// The server does not take the token. Refreshing it may help, unless that was tried.
    Another { may_refresh: bool },
    /// The server wants more scopes, which refreshing would not bring.
    MoreScopes,
}

/// What is to be done about a refusal.
enum Plan {
    /// Nothing: somebody else was faster.
    TryAgain,
    /// Asking for tokens. For more scopes this is the question.
    Ask { question: Option<Scopes> },
}

/// How a flow ended.
struct Ended {
    turn: Turn,
    user_was_asked: bool,
    result: Result<(), Error>,
}

impl Authorizer {
    /// Other tokens than these, which the server did not take.
    pub(super) async fn renew(
        &self,
        used: Option<&Arc<Tokens>>,
        challenge: Option<Challenge>,
        need: Need,
    ) -> Result<(), Error> {
        let turn = self.turn().await;
        self.load().await?;
        self.failed_meanwhile(&turn)?;
        if need == Need::MoreScopes {
            // The user may have granted them elsewhere, and what they granted there is not to be lost.
            self.catch_up().await?;
        }
        let wanted = challenge.as_ref().and_then(|challenge| challenge.scope.as_ref());
        let question = match self.plan(used, wanted, need, &turn)? {
            Plan::TryAgain => return Ok(()),
            Plan::Ask { question } => question,
        };
        let may_refresh = need == Need::Another { may_refresh: true };
        let Ended { turn, user_was_asked, result } = self.ask_for_tokens(turn, challenge, may_refresh).await?;
        if let (Some(question), Err(error)) = (question, &result)
            && (user_was_asked || is_refusal(error))
        {
            self.held().refusals.note(question, error.clone(), Instant::now());
        }
        self.ended(result.as_ref().err(), turn);
        result
    }

    /// What to do, from what is known here.
    fn plan(
        &self,
        used: Option<&Arc<Tokens>>,
        wanted: Option<&Scopes>,
        need: Need,
        turn: &Turn,
    ) -> Result<Plan, Error> {
        let others = self.others_ended(turn);
        let held = self.held();
        let same = match (held.tokens.as_ref(), used) {
            (Some(tokens), Some(used)) => tokens.access_token == used.access_token,
            (None, _) => true,
            (Some(tokens), None) => tokens.is_over(SystemTime::now()) && !tokens.is_refreshable(),
        };
        let requested = held.tokens.as_ref().and_then(|tokens| tokens.requested.as_ref());
        if (others || !same) && !is_step_up(wanted, requested) {
            return Ok(Plan::TryAgain);
        }
        if same && held.unproven && used.is_some() {
            return Err(Error::Rejected);
        }
        let question = wanted.filter(|_| need == Need::MoreScopes).cloned();
        let question = question.map(|wanted| wanted.union(requested.cloned().unwrap_or_default()));
        let answer = question.as_ref().and_then(|question| held.refusals.answer(question, Instant::now()));
        answer.map_or(Ok(Plan::Ask { question }), Err)
    }

    /// A whole flow, with the user if it needs them.
    async fn ask_for_tokens(
        &self,
        turn: Turn,
        challenge: Option<Challenge>,
        may_refresh: bool,
    ) -> Result<Ended, Error> {
        let this = self.clone();
        let begun = async move { this.without_user(challenge, may_refresh).await };
        let (mut turn, mut progress) = apart(turn, begun).await?;
        let (mut visit, mut user_was_asked) = (None, false);
        let result = loop {
            let (mut flow, command) = match progress {
                Ok(Progress::NeedsUser(paused)) => *paused,
                Ok(Progress::Done) => break Ok(()),
                Err(error) => break Err(error),
            };
            user_was_asked |= matches!(command, Command::Visit(_));
            // With the user it is the caller's own time: dropping the caller closes the listener.
            let event = match self.ask_user(command, &mut visit).await {
                Ok(event) => event,
                Err(error) => {
                    flow.unanswered();
                    break self.discard(flow.forgotten()).await.and(Err(error));
                }
            };
            let command = flow.handle(event, SystemTime::now());
            let this = self.clone();
            (turn, progress) = apart(turn, async move { this.drive(flow, command, &mut None).await }).await?;
        };
        Ok(Ended { turn, user_was_asked, result })
    }

    /// All of a flow that needs no user, with refreshing kept from others.
    async fn without_user(&self, challenge: Option<Challenge>, may_refresh: bool) -> Result<Progress, Error> {
        let mut old = self.held().tokens.clone();
        let mut lock = None;
        if may_refresh {
            self.save(&mut None).await?;
            let (mut stored, _) = self.stored().await?;
            // Those in the store count: another process may have got or refreshed them since.
            let newest = stored.as_ref().or(old.as_deref());
            if let Some(newest) = newest.filter(|tokens| tokens.is_refreshable()) {
                lock = Some(self.lock(key(newest)).await?);
                (stored, _) = self.stored().await?;
            }
            let is_other = |stored: &Tokens| old.as_ref().is_none_or(|old| stored.access_token != old.access_token);
            if let Some(stored) = stored {
                let stored = Arc::new(stored);
                if is_other(&stored) && !stored.is_over(SystemTime::now()) {
                    self.adopt(stored, false);
                    return Ok(Progress::Done);
                }
                old = Some(stored);
            }
        }
        let issuer = self.held().issuer.clone();
        let tokens = old.map(|tokens| (*tokens).clone());
        let mut flow = self.flow(Situation { challenge, tokens, may_refresh, issuer })?;
        let first = flow.begin();
        self.drive(flow, first, &mut lock).await
    }
}

/// Whether an authorization server said no, and not only nothing.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Denied(_) | Error::TokenRefused(_) | Error::RegistrationRefused(_))
}
