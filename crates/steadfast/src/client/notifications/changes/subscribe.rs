//! Subscriptions of the older revisions: each resource is subscribed to, and taken back when nobody listens any more. They
//! belong to their connection, and are never made on another.

use std::sync::{Arc, Weak};
use std::time::Duration;

use steadfast_model::request::{self, Request};
use steadfast_model::{ResourceParams, Revision, SubscriptionFilter, era};
use steadfast_proto::mutant;
use tokio::sync::{oneshot, watch};

use super::listeners::{ChangeListeners, Failure, Listener};
use crate::client::connection::live::{LiveConnection, wait_until_audible};
use crate::client::{Client, Inner};
use crate::error::{Error, Outcome};
use crate::runtime::connection::call_result::{CallLoss, result_of};
use crate::runtime::timeout::{timeout_at, unless_stopped};
use crate::runtime::{CallOptions, Mailbox, PendingCall, Runtime};

/// How long the server may take for each.
const SUBSCRIBING: Duration = Duration::from_secs(60);

/// How long the server may take for one that nobody waits for any more, and to take it back. Others may wait behind it.
const TAKING_BACK: Duration = Duration::from_secs(10);

/// How long the server may take for the stream on which it tells of changes.
const OPENING: Duration = Duration::from_secs(5);

/// Begins to listen on a connection.
pub(crate) fn hear(client: &Client, live: &Arc<LiveConnection>, filter: SubscriptionFilter) -> Arc<Listener> {
    let (listener, gone) = Listener::new(filter);
    live.told.add(&listener);
    let subscriptions = ResourceSubscriptions {
        client: Arc::downgrade(&client.inner),
        runtime: Arc::clone(client.inner.runtime()),
        told: live.told.clone(),
        mailbox: Arc::clone(&live.mailbox),
        audible: live.audible(),
        revision: live.peer.revision,
        gone: NoListeners { listening: gone, said: false },
    };
    let filter = listener.filter.clone();
    client.inner.runtime().spawn(Box::pin(subscriptions.keep(Arc::downgrade(&listener), filter)));
    listener
}

/// It keeps nothing open: what nobody has any more ends, whatever the server is still to be told.
struct ResourceSubscriptions {
    /// Never held while something is waited for: the last client ends all of this.
    client: Weak<Inner>,
    runtime: Arc<dyn Runtime>,
    told: ChangeListeners,
    mailbox: Arc<Mailbox>,
    audible: watch::Receiver<bool>,
    revision: Revision,
    gone: NoListeners,
}

/// Tells when nobody listens any more.
struct NoListeners {
    listening: oneshot::Receiver<()>,
    said: bool,
}

impl NoListeners {
    async fn wait(&mut self) {
        if !self.said {
            // Nothing is ever sent: that it is dropped says so.
            let _ = (&mut self.listening).await;
            self.said = true;
        }
    }
}

impl ResourceSubscriptions {
    /// Makes them, says so, and takes them back when nobody listens any more, also while they are being made.
    async fn keep(mut self, listener: Weak<Listener>, filter: SubscriptionFilter) {
        if let Some(made) = self.make(&filter).await {
            if let Some(listener) = listener.upgrade() {
                match made {
                    Ok(()) => listener.begin(),
                    Err(failure) => listener.fail(failure),
                }
            }
            self.gone.wait().await;
        }
        self.take_back(&filter).await;
    }

    /// `None` if nobody listens any more.
    async fn make(&mut self, filter: &SubscriptionFilter) -> Option<Result<(), Failure>> {
        // What the server tells before its stream is open may be lost. Some say nothing of it before there is something to tell.
        let opening =
            timeout_at(&*self.runtime, Some(self.runtime.now() + OPENING), wait_until_audible(self.audible.clone()));
        unless_stopped(self.gone.wait(), opening).await?;
        for uri in &filter.resource_subscriptions {
            if let Err(failure) = self.subscribe(uri).await? {
                return Some(Err(failure));
            }
        }
        Some(Ok(()))
    }

    /// `None` if nobody listens any more. What is under way then is waited for, for a while: it is not to arrive behind what takes it
    /// back.
    async fn subscribe(&mut self, uri: &str) -> Option<Result<(), Failure>> {
        let mut turn = unless_stopped(self.gone.wait(), self.told.subscribed.turn(uri)).await?;
        let mut call = match self.ask::<request::Subscribe>(uri, SUBSCRIBING) {
            Ok(call) => call,
            Err(error) => return Some(Err(Failure { error, loss: None })),
        };
        let told_before = std::mem::replace(&mut *turn, true);
        let Some(ending) = unless_stopped(self.gone.wait(), &mut call).await else {
            let _ = timeout_at(&*self.runtime, Some(self.runtime.now() + TAKING_BACK), call).await;
            return None;
        };
        let loss = CallLoss::from_end(&ending);
        Some(result_of::<request::Subscribe>(ending).map(drop).map_err(|error| {
            // What was lost on the way back is there all the same.
            if matches!(error.outcome(), Outcome::NotSent | Outcome::Refused) || mutant!(ForgetLostSubscriptions) {
                *turn = told_before;
            }
            Failure { error, loss }
        }))
    }

    async fn take_back(self, filter: &SubscriptionFilter) {
        for uri in &filter.resource_subscriptions {
            let mut turn = self.told.subscribed.turn(uri).await;
            // Others may still want to hear of it. If the server cannot be told, it tells for nothing.
            if *turn && !self.told.wants(uri) {
                let room = self.told.subscribed.room_to_unsubscribe();
                let _room = if mutant!(UnsubscribeWithoutRoom) { None } else { room.await };
                let holding = mutant!(HoldWhileUnsubscribing);
                let _held = holding.then(|| self.client.upgrade());
                let time = if holding { SUBSCRIBING } else { TAKING_BACK };
                if let Ok(call) = self.ask::<request::Unsubscribe>(uri, time) {
                    let ending = result_of::<request::Unsubscribe>(call.await);
                    *turn = ending.is_err_and(|error| error.outcome() == Outcome::NotSent);
                }
            }
        }
    }

    fn ask<R: Request<Params = ResourceParams>>(&self, uri: &str, timeout: Duration) -> Result<PendingCall, Error> {
        let Some(client) = self.client.upgrade() else {
            return Err(Error::closed(Outcome::NotSent));
        };
        let (params, decoration) = (ResourceParams::new(uri), &client.connection.opener.decoration);
        let text = era::params_text(self.revision, &params, decoration).map_err(Error::encode)?;
        let options = CallOptions { timeout: Some(timeout), ..CallOptions::default() };
        Ok(PendingCall::new(&self.mailbox, R::METHOD, Some(text), options))
    }
}
