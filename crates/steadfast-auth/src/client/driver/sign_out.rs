//! Signing out: tokens are forgotten here and in the store, and then taken back where they came from, as far as that goes.

use std::time::{Duration, SystemTime};

use http::Request;

use super::Authorizer;
use super::drive::LONGEST;
use super::kept::key;
use crate::Payload;
use crate::client::Error;
use crate::client::flow::Situation;
use crate::client::store::Key;
use crate::client::token::Tokens;

/// How long it may take to tell an authorization server that tokens are not used any more. They are gone here already.
const REVOCATION: Duration = Duration::from_secs(5);

impl Authorizer {
    /// Forgets the tokens of this server, here and in the store, and then tells the authorization server that they are not used
    /// any more, if it wants to know: for a few seconds at most, and whatever comes of it. What the client is called there stays
    /// for the next login, and for other servers that have the same one.
    pub async fn sign_out(&self) -> Result<(), Error> {
        let turn = self.turn().await;
        let revocations = self.forget_tokens().await?;
        drop(turn);
        self.revoke(revocations).await;
        Ok(())
    }

    /// Signs out, and forgets also who issues tokens for this server, and what the client is called there. True if it had
    /// registered. The next login registers it anew.
    ///
    /// Other servers with the same authorization server share that name: their tokens serve until they are over, and then the
    /// user is asked again. The authorization server is not told, since it lets few clients take themselves away.
    pub async fn forget(&self) -> Result<bool, Error> {
        let turn = self.turn().await;
        let revocations = self.forget_tokens().await?;
        let (_, stored) = self.stored().await?;
        let held = self.held().issuer.take();
        let mut was_registered = false;
        for issuer in [stored.filter(|stored| held.as_ref() != Some(stored)), held].into_iter().flatten() {
            let key = Key::Client { issuer };
            was_registered |= self.0.store.load(&key).await?.is_some();
            self.0.store.remove(&key).await?;
        }
        self.0.store.remove(&self.server_key()).await?;
        drop(turn);
        self.revoke(revocations).await;
        Ok(was_registered)
    }

    /// What is left to do is to tell the authorization server.
    async fn forget_tokens(&self) -> Result<Vec<Request<Payload>>, Error> {
        self.load().await?;
        let (tokens, unsaved) = {
            let mut held = self.held();
            held.unproven = false;
            held.refusals.clear();
            (held.tokens.take(), held.unsaved.take())
        };
        // Another process may have got some since.
        let (stored, _) = self.stored().await?;
        let (held, stored) = (tokens.as_deref().map(key), stored.as_ref().map(key));
        let mut revocations = Vec::new();
        for key in [stored.filter(|stored| held.as_ref() != Some(stored)), held].into_iter().flatten() {
            // Who is about to refresh them would bring them back.
            let locked = self.lock(key).await?;
            let last: Option<Tokens> = self.load_value(&locked.key).await?;
            self.0.store.remove(&locked.key).await?;
            let ours = tokens.as_deref().filter(|tokens| self::key(tokens) == locked.key).cloned();
            // What no store took is newer than what is there.
            let last = if unsaved.is_some() { ours.or(last) } else { last.or(ours) };
            if let Some(last) = last {
                // That nobody can be told is no reason to stay.
                revocations.extend(self.revocation(last).await.unwrap_or_default());
            }
        }
        Ok(revocations)
    }

    async fn revocation(&self, tokens: Tokens) -> Result<Vec<Request<Payload>>, Error> {
        let registration = self.load_value(&Key::Client { issuer: tokens.issuer.clone() }).await?;
        let flow = self.flow(Situation { tokens: Some(tokens), ..Situation::default() })?;
        Ok(flow.revocation(registration.as_ref(), SystemTime::now()))
    }

    /// Takes tokens back that nobody has any more.
    async fn revoke(&self, revocations: Vec<Request<Payload>>) {
        let each = async {
            for mut request in revocations {
                self.say_who_named(&mut request);
                match self.0.http.send(request, LONGEST).await {
                    Ok(answer) => tracing::debug!(status = answer.status().as_u16(), "asked to take a token back"),
                    Err(error) => tracing::debug!(%error, "nobody was there to take a token back"),
                }
            }
        };
        if tokio::time::timeout(REVOCATION, each).await.is_err() {
            tracing::debug!("nobody took the tokens back in time");
        }
    }
}
